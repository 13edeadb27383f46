"""What kind of model a folder holds, by the files in it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from .graph import read_graph

Kind = Literal["chat", "embedding"]
Layout = Literal["genai", "onnx-community", "sentence", "none"]


def layout_of(path: Path) -> tuple[Layout, Kind]:
    """`none` is no model folder: its own folders may be."""
    if (path / "genai_config.json").is_file():
        return "genai", "chat"
    if (path / "modules.json").is_file() or (path / "1_Pooling" / "config.json").is_file():
        return "sentence", "embedding"
    graphs = sorted((*path.glob("onnx/*.onnx"), *path.glob("model*.onnx")))
    if not graphs:
        return "none", "chat"
    if _embeds(graphs[0]):
        return "sentence", "embedding"
    return "onnx-community", "chat"


def _embeds(graph: Path) -> bool:
    """A graph that gives no logits gives vectors; one that cannot be read is told of later."""
    try:
        return "logits" not in read_graph(graph).outputs
    except (OSError, ValueError):
        return False
