"""How long the vectors of an embedding model are, told by its files before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from providers.onnx.folder import read_folder, scan
from providers.onnx.graph import read_graph
from tests.providers.onnx.graph import FLOAT, INT64, _field, _value, write_folder
from tests.providers.onnx.layouts import TINY


def of(path: Path) -> object:
    (found,) = scan(path)
    assert found.reason is None, found.reason
    return found.facts.get("dimensions")


def test_graph_tells(tmp_path: Path) -> None:
    assert of(write_folder(tmp_path)) == 4


def test_pooled_graph_tells(tmp_path: Path) -> None:
    assert of(write_folder(tmp_path, pooled=True)) == 4


def test_graph_in_the_onnx_folder_tells(tmp_path: Path) -> None:
    assert of(write_folder(tmp_path, graph="onnx/model_int8.onnx")) == 4


@pytest.mark.parametrize(
    ("file", "held", "expected"),
    [
        ("config.json", {"hidden_size": 8}, 8),
        ("1_Pooling/config.json", {"word_embedding_dimension": 6}, 6),
        ("config.json", {"hidden_size": "8"}, 4),
    ],
    ids=str,
)
def test_what_is_written_beside_it_goes_first(
    tmp_path: Path, file: str, held: dict[str, object], expected: int
) -> None:
    folder = write_folder(tmp_path)
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_bytes(orjson.dumps(held))
    assert of(folder) == expected


def test_no_graph_says_so(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    found = read_folder(tmp_path, "m")
    assert found.reason is not None
    assert "model.onnx" in found.reason


SHAPES = [
    (_value("x", FLOAT, ["batch", "width"]), None),
    (_value("x", FLOAT, ["batch", 384]), 384),
    (_value("x", FLOAT, []), None),
    (_field(1, "x"), None),
    (_field(1, "x") + _field(2, _field(1, _field(1, FLOAT) + _field(2, _field(1, b"")))), None),
]


@pytest.mark.parametrize(("value", "expected"), SHAPES)
def test_widths(tmp_path: Path, value: bytes, expected: int | None) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(_field(7, _field(11, _value("i", INT64, ["n"])) + _field(12, value)))
    assert read_graph(file).widths == (expected,)


def test_of_the_packaged_model() -> None:
    graph = read_graph(TINY / "model.onnx")
    assert graph.widths[graph.outputs.index("logits")] == 640
