"""What `dragoman pull` tells a person, the layout of `onnx-community`, and what discovery makes of it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from app.cli import pull_command as cli_pull
from app.cli.discover import discover
from app.cli.pull import RemoteFile
from providers.onnx import extra
from providers.onnx.extra import EMBEDDED, NO_EXTRA, pulled_models
from tests.app.hub import MODEL, Hub
from tests.providers.onnx.layouts import community, copied

TINY = {path.name: path.read_bytes() for path in sorted((EMBEDDED / "tiny-chat").iterdir())}


def repository(folder: Path) -> dict[str, bytes]:
    """In two variants; both graphs name `model.onnx.data` as the file of their weights."""
    community(folder, "")
    files = {each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*.*")}
    return {**files, "onnx/model_q4.onnx": files["onnx/model.onnx"]}


def test_variants(tmp_path: Path) -> None:
    with Hub(repository(tmp_path / "repository")) as hub:
        full = hub.pull(tmp_path, "--variant", "fp32")
        assert "onnx/model_q4.onnx" not in hub.fetched()
        best = hub.pull(tmp_path)
        again = hub.pull(tmp_path, "--variant", "fp32")
        none = hub.pull(tmp_path, "--variant", "int8")
    assert [each.exit_code for each in (full, best, again, none)] == [0, 0, 0, 1]
    assert "is there too" not in full.stderr + best.stderr
    assert 'q4 is there too and runs: variant = "fp32" in model.toml there changes that' in again.stderr
    assert none.stderr.startswith(f"{MODEL}: it has no variant 'int8': it has q4, fp32")


def test_without_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extra, "extra_is_installed", lambda: False)
    with Hub(TINY) as hub:
        result = hub.pull(tmp_path)
    assert result.exit_code == 0
    assert result.stderr.endswith(f"{MODEL}; {NO_EXTRA}\n")


def test_lines_and_bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Hub(TINY) as hub:
        told = hub.pull(tmp_path).stderr.splitlines()
    assert told == [f"{name}: {len(body):,} bytes" for name, body in TINY.items()]

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    file = RemoteFile("[bold]model.onnx", 10)
    with cli_pull._shown() as watch:
        for done in (0, 4, 10):
            watch(file, done)
    assert "[bold]model.onnx" in terminal.getvalue()
    assert "10/10 bytes" in terminal.getvalue()


def test_where_models_are(tmp_path: Path) -> None:
    assert pulled_models({}, tmp_path) == tmp_path / ".local" / "share" / "dragoman" / "models"
    assert pulled_models({"XDG_DATA_HOME": "rel"}, tmp_path) == pulled_models({}, tmp_path)
    assert pulled_models({"XDG_DATA_HOME": "/data"}, tmp_path) == Path("/data/dragoman/models")


def test_what_was_pulled_is_discovered(tmp_path: Path) -> None:
    root = pulled_models({}, tmp_path)
    root.mkdir(parents=True)
    assert [each.name for each in discover({}, {}, tmp_path, (), embedded=True).config.providers] == [
        "embedded"
    ]
    (copied(root / "org" / "broken") / "tokenizer.json").unlink()
    assert [each.name for each in discover({}, {}, tmp_path, (), embedded=True).config.providers] == [
        "embedded"
    ]
    copied(root / "org" / "name")
    found = discover({}, {}, tmp_path, (), embedded=True)
    assert [(each.name, each.path) for each in found.config.providers] == [
        ("local", str(root)),
        ("embedded", str(EMBEDDED)),
    ]
    assert any('"model":"local/org/name"' in line for line in found.lines)
    assert discover({}, {}, tmp_path, (), embedded=False).config.providers == ()
