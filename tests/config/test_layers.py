"""Unknown keys, `extra_body` and the environment, as `dragoman check` tells them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from config.load import parse
from providers.profiles import BY_NAME
from providers.registry import build
from tests.backends.gateway import COMMAND
from tests.config.test_load import PROVIDER, errors

BAD = """\
[server]
prot = 1
port = "${PORT}"

[providrs]

[[providers]]
nam = "x"
name = "a"
kind = "openai"
base_url = "http://h/v1"
[providers.extra_body]
anything = 1
model = "x"
stream = true
big = inf
[providers.overrides]
reqest = {}
request = {contxt_window = 3}
"""
FAULTS = [
    (2, 'server.prot: unknown key, did you mean "port"?'),
    (3, "server.port: should be less than or equal to 65535"),
    (5, 'providrs: unknown key, did you mean "providers"?'),
    (8, 'providers[0].nam: unknown key, did you mean "name"?'),
    (14, "providers[0].extra_body.model: cannot be set here"),
    (15, "providers[0].extra_body.stream: cannot be set here"),
    (16, "providers[0].extra_body.big: holds what JSON cannot"),
    (18, 'providers[0].overrides.reqest: unknown key, did you mean "request"?'),
    (19, 'providers[0].overrides.request.contxt_window: unknown key, did you mean "context_window"?'),
]


def check(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **environ}
    argv = [str(COMMAND), "check", *arguments]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=30)


def test_every_unknown_key_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(BAD)
    done = check(tmp_path, "--config", str(file), PORT="99999")
    assert done.returncode == 2
    lines = (done.stdout + done.stderr).strip().splitlines()
    assert len(lines) == len(FAULTS)
    for line, (number, words) in zip(lines, FAULTS, strict=True):
        assert line.startswith(f"{file}:{number}: {words}")


def test_numbers_may_come_from_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "good.toml"
    file.write_text(f'[server]\nport = "${{PORT}}"\nkeepalive_s = "${{ALIVE}}"\n{PROVIDER}')
    assert check(tmp_path, "--config", str(file), PORT="8080", ALIVE="2.5").returncode == 0
    config = parse(file.read_text(), {"PORT": "8080", "ALIVE": "2.5"}, BY_NAME)
    assert (config.server.port, config.server.keepalive_s) == (8080, 2.5)


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    done = check(tmp_path, DRAGOMAN_CONFIG="", DRAGOMAN_LOG_LEVEL="")
    assert done.returncode == 0
    assert "built-in defaults" in done.stdout


@pytest.mark.parametrize(("level", "warned"), [("", False), ("Debug", False), ("verbose", True)])
def test_an_unknown_log_level_is_warned_of(tmp_path: Path, level: str, warned: bool) -> None:
    file = tmp_path / "good.toml"
    file.write_text(PROVIDER)
    done = check(tmp_path, "--config", str(file), DRAGOMAN_LOG_LEVEL=level)
    assert done.returncode == 0
    assert ("DRAGOMAN_LOG_LEVEL is none of debug, info, warning, error" in done.stderr) is warned


def test_the_extra_body_is_free_in_its_keys() -> None:
    text = PROVIDER + '[providers.extra_body]\nany = {thing = [1, "x"], when = 2026-01-01}\nkey = "${K}"\n'
    config = parse(text, {"K": "v"}, BY_NAME)
    (provider,) = build(config)
    extra = provider.extra_body
    assert extra is not None
    assert extra.over({"any": {"else": 1}, "key": "v"})["any"].keys() == {"thing", "when", "else"}
    assert [extra.sets(path) for path in (("any",), ("any", "thing", "*"), ("any", "no"), ("no",))] == [
        True,
        True,
        False,
        False,
    ]


def test_none_is_none() -> None:
    assert build(parse(PROVIDER, {}, BY_NAME))[0].extra_body is None


@pytest.mark.parametrize("value", ["nan", "[1, {a = -inf}]", "123456789012345678901234567890"])
def test_what_json_cannot_hold_is_a_fault(value: str) -> None:
    (fault,) = errors(f"{PROVIDER}[providers.extra_body]\nx = {value}\n")
    assert "extra_body.x: holds what JSON cannot" in fault


@pytest.mark.parametrize(("bounds", "fault"), [("[2, 1]", True), ("[1, 1]", False), ("[0, 1.5]", False)])
def test_bounds_are_in_order(bounds: str, fault: bool) -> None:
    text = f"{PROVIDER}[providers.overrides]\nrequest = {{clamp = {{temperature = {bounds}}}}}\n"
    if fault:
        (told,) = errors(text)
        assert told.endswith("overrides.request.clamp.temperature: should be [least, most]")
    else:
        assert parse(text, {}, BY_NAME)


@pytest.mark.parametrize("key", ["model", "stream"])
def test_what_the_gateway_goes_by_cannot_be_set(key: str) -> None:
    (fault,) = errors(f'{PROVIDER}[providers.extra_body]\n{key} = "x"\n')
    assert f"extra_body.{key}: cannot be set here: " in fault
