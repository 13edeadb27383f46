"""A configuration that asks for what is not installed: `check` says so, and so does `/ready`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli.main import cli
from config.extras import lacking
from config.schema import Config
from providers import extras
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

DATABASE = 'kind = "postgres"\nurl = "postgresql://u:a-secret@h/d"\n'
SECTIONS = [
    ("[store]\n" + DATABASE, 2, "store.kind", "postgres"),
    ('[store]\npath = "r.db"\nencryption_key = "a-secret-of-32-characters-or-more"\n', 3, "", "encryption"),
    ('[limits]\nstorage = "redis://:a-secret@h:1"\n', 2, "limits.storage", "redis"),
    ('[telemetry]\nendpoint = "http://h:4318"\n', 2, "telemetry.endpoint", "otel"),
]
ONNX = '[[providers]]\nname = "o"\nkind = "onnx"\npath = "x"\n'
SDK = '[[providers]]\nname = "d"\nkind = "databricks"\nbase_url = "https://h"\nauth = "sdk"\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    return tmp_path


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without any extra."""
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    monkeypatch.setattr("app.cli.configuration.extra_is_installed", lambda: False)


def check(here: Path, text: str) -> Any:
    (here / "dragoman.toml").write_text(text)
    return CliRunner().invoke(cli, ["check"])


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("text", "line", "place", "extra"), SECTIONS, ids=[each[3] for each in SECTIONS])
def test_a_section_without_its_extra_is_a_fault(
    here: Path, text: str, line: int, place: str, extra: str
) -> None:
    done = check(here, text)
    assert (done.exit_code, done.stdout) == (2, "")
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"{here}/dragoman.toml:{line}: {place}")
    assert said.endswith(f"pip install '.[{extra}]' in the project's folder")
    assert "a-secret" not in said


@pytest.mark.usefixtures("bare")
def test_all_are_named_at_once(here: Path) -> None:
    done = check(here, "".join(each[0] for each in (SECTIONS[0], *SECTIONS[2:])) + ONNX)
    assert len(done.stderr.splitlines()) == 3


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(("text", "extra"), [(ONNX, "onnx"), (SDK, "databricks")])
def test_a_provider_without_its_extra_is_a_warning(here: Path, text: str, extra: str) -> None:
    """The others can be served: it is only unavailable."""
    done = check(here, text)
    assert done.exit_code == 0
    assert (
        f"pip install '.[{extra}]' in the project's folder; until then its models answer 503" in done.stderr
    )


def test_a_workspace_that_cannot_be_signed_in_to_is_a_warning(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_API_KEY", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    done = check(here, SDK.replace("sdk", "pat"))
    assert done.exit_code == 0
    assert "warning: d: " in done.stderr
    assert "; until then its models answer 503" in done.stderr


@pytest.mark.usefixtures("bare")
def test_serve_warns_and_goes_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Config] = []
    monkeypatch.setattr("app.server.run", lambda config, _origin: served.append(config))
    (here / "dragoman.toml").write_text(SECTIONS[2][0])
    done = CliRunner().invoke(cli, ["serve"])
    assert len(served) == 1
    assert "warning: limits.storage: limits in Redis need the extra: pip install '.[redis]'" in done.stderr


def test_what_is_installed_is_not_lacking(here: Path) -> None:
    for text, *_ in SECTIONS:
        assert check(here, text).exit_code == 0


@pytest.mark.usefixtures("bare")
def test_a_store_that_encrypts_nothing_needs_no_extra() -> None:
    for kind in ("memory", "off"):
        store = {"kind": kind, "encryption_key": "k" * 32}
        assert not list(lacking(Config.model_validate({"store": store})))


@pytest.mark.parametrize("extra", extras.MODULES)
def test_every_extra_that_is_declared_is_known(extra: str) -> None:
    assert extras.is_installed(extra)


def test_the_known_extras_are_the_declared_ones() -> None:
    import tomllib

    root = Path(extras.__file__).parents[1]
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(declared) == set(extras.MODULES)


@pytest.mark.usefixtures("bare")
def test_ready_has_each_reason(serve: Serve, scripted: ScriptedBackend) -> None:
    gateway = serve(
        fresh=True,
        providers=[provider(scripted)],
        store={"kind": "postgres", "url": "postgresql://u:a-secret@h/d"},
        limits={"storage": "redis://:a-secret@h:1"},
        telemetry={"endpoint": "http://127.0.0.1:9"},
    )
    with gateway.client() as client:
        reply = client.get("/ready")
    assert (reply.status_code, reply.json()["status"]) == (200, "degraded")
    told = reply.json()["not_ready"]
    assert {name: reason.partition("pip install ")[2].split("'")[1] for name, reason in told.items()} == {
        "store": ".[postgres]",
        "limits": ".[redis]",
        "telemetry": ".[otel]",
    }
    assert "a-secret" not in reply.text
