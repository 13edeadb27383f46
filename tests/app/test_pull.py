"""`dragoman pull`: whole and right files in their places, or a reason and an exit status."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from app.cli import pull as pulling
from providers.onnx.extra import EMBEDDED
from tests.app.hub import MODEL, Hub, Reply, Request, cut, ranged, sibling, status, whole
from tests.app.onnx_served import events, folded
from tests.backends.gateway import Gateway

TINY = {path.name: path.read_bytes() for path in sorted((EMBEDDED / "tiny-chat").iterdir())}
WEIGHTS = "model.onnx.data"
TOKEN = "hf_secret"


def place(home: Path) -> Path:
    return home / "dragoman" / "models" / MODEL


def held(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_what_is_pulled_is_found_and_answers(tmp_path: Path) -> None:
    with Hub({**TINY, "README.md": b"#", ".gitattributes": b"", "cpu/old.onnx": b""}) as hub:
        result = hub.pull(tmp_path)
    assert result.exit_code == 0, result.output
    assert held(place(tmp_path)) == TINY
    assert result.stdout.strip().startswith(f"use it as local/{MODEL}: dragoman serve")
    env = {"OLLAMA_HOST": "127.0.0.1:9", "XDG_DATA_HOME": str(tmp_path)}
    turn = [{"role": "user", "content": "Say hello."}]
    body = {"model": f"local/{MODEL}", "messages": turn, "stream": True}
    with Gateway(tmp_path, env=env) as running, running.client() as client:
        told = folded(events(client.post("/v1/chat/completions", json=body)))
    assert told["content"] == "Hello! How can I help you today?"


def test_another_folder_and_what_is_said_then(tmp_path: Path) -> None:
    with Hub(TINY) as hub:
        result = hub.pull(tmp_path, "--to", str(tmp_path / "here"))
    assert held(tmp_path / "here") == TINY
    assert (
        f'use it as local/here with: [[providers]] name = "local" kind = "onnx" path = "{tmp_path}'
        in result.stdout
    )


def test_what_is_here_is_not_fetched_again(tmp_path: Path) -> None:
    with Hub(TINY) as hub:
        hub.pull(tmp_path)
        before = len(hub.fetched())
        assert hub.pull(tmp_path).exit_code == 0
        assert len(hub.fetched()) == before == len(TINY)


def test_a_cut_is_gone_on_from(tmp_path: Path) -> None:
    cuts = iter([1_000, 5_000])

    def odd(request: Request) -> Reply | None:
        if not request.path.endswith(WEIGHTS) or (length := next(cuts, None)) is None:
            return None
        return cut(TINY[WEIGHTS], length) if "range" not in request.headers else None

    with Hub(TINY, odd) as hub:
        assert hub.pull(tmp_path).exit_code == 0
        ranges = [each.headers.get("range") for each in hub.server.requests if each.path.endswith(WEIGHTS)]
    assert ranges == [None, "bytes=1000-"]
    assert held(place(tmp_path)) == TINY


@pytest.mark.parametrize("known", [True, False], ids=["checksum", "none"])
def test_a_part_of_an_earlier_try(known: bool, tmp_path: Path) -> None:
    """Without a checksum nobody would notice that the two halves are of different versions."""
    place(tmp_path).mkdir(parents=True)
    (place(tmp_path) / f"{WEIGHTS}.part").write_bytes(TINY[WEIGHTS][:700] if known else b"old" * 100)
    siblings = [sibling(*each) for each in TINY.items()]
    if not known:
        siblings = [{"rfilename": each["rfilename"], "size": each["size"]} for each in siblings]
    with Hub(TINY, siblings=siblings) as hub:
        assert hub.pull(tmp_path).exit_code == 0
        (asked,) = [each.headers.get("range") for each in hub.server.requests if each.path.endswith(WEIGHTS)]
    assert asked == ("bytes=700-" if known else None)
    assert held(place(tmp_path)) == TINY


def test_a_whole_part_is_only_checked(tmp_path: Path) -> None:
    place(tmp_path).mkdir(parents=True)
    (place(tmp_path) / f"{WEIGHTS}.part").write_bytes(TINY[WEIGHTS])
    with Hub(TINY) as hub:
        assert hub.pull(tmp_path).exit_code == 0
        assert WEIGHTS not in hub.fetched()
    assert held(place(tmp_path)) == TINY


def test_a_hub_that_knows_no_ranges(tmp_path: Path) -> None:
    place(tmp_path).mkdir(parents=True)
    (place(tmp_path) / f"{WEIGHTS}.part").write_bytes(b"x" * 700)
    with Hub(TINY, lambda each: whole(TINY[WEIGHTS]) if each.path.endswith(WEIGHTS) else None) as hub:
        assert hub.pull(tmp_path).exit_code == 0
    assert held(place(tmp_path)) == TINY


def test_connections_that_all_break(tmp_path: Path) -> None:
    def odd(request: Request) -> Reply | None:
        if not request.path.endswith(WEIGHTS):
            return None
        whole_reply = ranged(request, TINY[WEIGHTS])
        (rest,) = whole_reply.pieces
        assert isinstance(rest, bytes)
        return Reply(whole_reply.status, whole_reply.headers, [rest[:10], 0.05], "cut")

    with Hub(TINY, odd) as hub:
        result = hub.pull(tmp_path)
    assert result.exit_code == 1
    assert "the connection broke" in result.stderr
    assert "pull again to go on" in result.stderr
    part = place(tmp_path) / f"{WEIGHTS}.part"
    assert part.read_bytes() == TINY[WEIGHTS][: 10 * pulling.TRIES]


class Wrong(NamedTuple):
    told: str
    body: bytes


OTHER = b"x" + TINY[WEIGHTS][1:]
WRONG = {
    "checksum": Wrong("its checksum is wrong", OTHER),
    "short": Wrong("bytes instead of", TINY[WEIGHTS][:-1]),
    "long": Wrong("bytes instead of", TINY[WEIGHTS] + b"x"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_file_is_removed(wrong: Wrong, tmp_path: Path) -> None:
    with Hub(TINY, lambda each: whole(wrong.body) if each.path.endswith(WEIGHTS) else None) as hub:
        result = hub.pull(tmp_path)
    assert result.exit_code == 1
    assert wrong.told in result.stderr
    assert [name for name in held(place(tmp_path)) if name.startswith(WEIGHTS)] == []


def test_a_part_longer_than_the_hubs_file(tmp_path: Path) -> None:
    place(tmp_path).mkdir(parents=True)
    (place(tmp_path) / f"{WEIGHTS}.part").write_bytes(b"x" * 700)
    with Hub(TINY, lambda each: status(416) if "range" in each.headers else None) as hub:
        assert "pull again" in hub.pull(tmp_path).stderr
        assert hub.pull(tmp_path).exit_code == 0


REFUSED = [
    (401, "", "accept its terms there and set HF_TOKEN"),
    (401, TOKEN, "HF_TOKEN is not allowed to read it"),
    (403, TOKEN, "HF_TOKEN is not allowed to read it"),
    (404, "", "no such model, revision or file"),
    (503, "", "try again later"),
]


@pytest.mark.parametrize(("code", "token", "told"), REFUSED)
@pytest.mark.parametrize("at", ["/api/", "/resolve/"])
def test_refusals(code: int, token: str, told: str, at: str, tmp_path: Path) -> None:
    with Hub(TINY, lambda each: status(code) if at in each.path else None) as hub:
        result = hub.pull(tmp_path, HF_TOKEN=token)
    assert result.exit_code == 1
    assert f": {code} from 127.0.0.1: " in result.stderr
    assert told in result.stderr
    assert TOKEN not in result.output


def test_the_token_stays_with_the_hub(tmp_path: Path) -> None:
    with Hub(TINY) as store:

        def odd(request: Request) -> Reply | None:
            # Another port is another origin; a second name for this machine is not needed.
            return status(302, location=store.origin + request.path) if "/resolve/" in request.path else None

        with Hub(TINY, odd) as hub:
            result = hub.pull(tmp_path, HF_TOKEN=TOKEN)
    assert result.exit_code == 0
    assert {each.headers.get("authorization") for each in hub.server.requests} == {f"Bearer {TOKEN}"}
    assert [each.headers.get("authorization") for each in store.server.requests] == [None] * len(TINY)
    assert TOKEN not in result.output
    assert held(place(tmp_path)) == TINY


HOSTILE = [
    "../evil.json", "/evil.json", "onnx/../../evil.json", "..\\evil.json", "C:evil.json", "a//b.json",
    "./a.json", "a\0.json", "", "..",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_lead_out_of_the_folder(name: str, tmp_path: Path) -> None:
    with Hub({**TINY, name: b"{}"}) as hub:
        result = hub.pull(tmp_path / "home")
        assert hub.fetched() == []
    assert result.exit_code == 1
    assert "outside of the model's folder" in result.stderr
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("model", ["../../x", "/etc/x", "a/b/c", "org/..", "org/na me", "-x"])
def test_ids_that_are_none(model: str, tmp_path: Path) -> None:
    with Hub(TINY) as hub:
        assert hub.pull(tmp_path, model=model).exit_code != 0
        assert hub.server.requests == []


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"siblings": [1]}', b'{"siblings": [{}]}'])
def test_a_server_that_is_no_hub(body: bytes, tmp_path: Path) -> None:
    with Hub(TINY, lambda _: whole(body)) as hub:
        result = hub.pull(tmp_path)
    assert (result.exit_code, result.stderr) == (1, "127.0.0.1 gave no list of files: is it such a hub?\n")


ENVIRONMENTS = [
    ({"HF_ENDPOINT": "huggingface.co"}, "HF_ENDPOINT is no address"),
    ({"HF_ENDPOINT": "http://[::"}, "HF_ENDPOINT is no address"),
    ({"HF_ENDPOINT": "http://me:hunter2@127.0.0.1:9"}, "127.0.0.1 cannot be asked"),
    ({"HF_TOKEN": f"{TOKEN}\nx"}, "HF_TOKEN holds characters"),
]


@pytest.mark.parametrize(("environ", "told"), ENVIRONMENTS)
def test_environments(environ: dict[str, str], told: str, tmp_path: Path) -> None:
    with Hub(TINY) as hub:
        result = hub.pull(tmp_path, **environ)
    assert result.exit_code == 1
    assert told in result.stderr
    assert TOKEN not in result.output
    assert "hunter2" not in result.output


class _Usage(NamedTuple):
    free: int


def test_a_disk_that_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: _Usage(free=10))
    with Hub(TINY) as hub:
        result = hub.pull(tmp_path)
        assert hub.fetched() == []
    assert "bytes are needed, 10 are free" in result.stderr


def test_a_disk_that_fills_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pulling.Hub, "_stream", full)
    with Hub(TINY) as hub:
        result = hub.pull(tmp_path)
    assert result.exit_code == 1
    assert "No space left on device; free some space and pull again to go on" in result.stderr


def test_what_cannot_be_run_is_said(tmp_path: Path) -> None:
    with Hub({name: body for name, body in TINY.items() if name != "chat_template.jinja"}) as hub:
        result = hub.pull(tmp_path)
    assert result.exit_code == 1
    assert "but cannot be run: it has no chat template" in result.stderr


def test_no_server_at_all(tmp_path: Path) -> None:
    with Hub(TINY) as hub:
        pass
    result = hub.pull(tmp_path)
    assert result.exit_code == 1
    assert "127.0.0.1 cannot be asked" in result.stderr
