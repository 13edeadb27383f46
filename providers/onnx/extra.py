"""Whether the engine is there: it is an extra, and nothing of it is imported before a model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ..extras import install, is_installed

NO_EXTRA = f"the engine for ONNX models is not installed: {install('onnx')}"
EMBEDDED = Path(__file__).with_name("model")
"""The folder of the model that comes with the package: a demonstration, small enough to ship."""


def pulled_models(environ: Mapping[str, str], home: Path) -> Path:
    """`$XDG_DATA_HOME/dragoman/models`, else below `~/.local/share`: `ORG/NAME` are in it.

    A relative `XDG_DATA_HOME` counts as unset, as its specification says.
    """
    data = Path(environ.get("XDG_DATA_HOME", ""))
    return (data if data.is_absolute() else home / ".local" / "share") / "dragoman" / "models"


@cache
def extra_is_installed() -> bool:
    return is_installed("onnx")
