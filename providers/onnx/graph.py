"""An ONNX graph's inputs and outputs, read without loading the model.

An ONNX file is one protobuf message (onnx.proto): `ModelProto.graph` is field 7;
`GraphProto.input` 11, `.output` 12, each a `ValueInfoProto` whose `name` is field 1 and whose shape lies
at `type` 2, `tensor_type` 1, `shape` 2, `dim` 1 (each), `dim_value` 1. All else (nodes, weights of gigabytes)
is stepped over. No protobuf package is needed for that.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_GRAPH, _INPUT, _OUTPUT, _NAME = 7, 11, 12, 1
_SHAPE = (2, 1, 2)
_SIZE = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED64: 8, _FIXED32: 4}


@dataclass(frozen=True, slots=True)
class Graph:
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    widths: tuple[int | None, ...] = ()
    """Of each output the size of its last dimension; None: it is not fixed."""


def read_graph(path: Path) -> Graph:
    """Raises `ValueError` for a file that is no ONNX model, `OSError` for one that cannot be read."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _graph(data)


def _graph(data: mmap.mmap) -> Graph:
    inputs: list[str] = []
    outputs: list[str] = []
    widths: list[int | None] = []
    for start, end in _fields(data, 0, len(data), (_GRAPH,)).get(_GRAPH, []):
        found = _fields(data, start, end, (_INPUT, _OUTPUT))
        inputs += [_name(data, *span) for span in found.get(_INPUT, [])]
        outputs += [_name(data, *span) for span in found.get(_OUTPUT, [])]
        widths += [_width(data, *span) for span in found.get(_OUTPUT, [])]
    if not inputs or not outputs:
        raise ValueError(f"it has {len(inputs)} inputs and {len(outputs)} outputs")
    return Graph(tuple(inputs), tuple(outputs), tuple(widths))


def _name(data: mmap.mmap, start: int, end: int) -> str:
    for first, last in _fields(data, start, end, (_NAME,)).get(_NAME, []):
        return data[first:last].decode(errors="replace")
    return ""


def _width(data: mmap.mmap, start: int, end: int) -> int | None:
    for number in _SHAPE:
        held = _fields(data, start, end, (number,)).get(number)
        if not held:
            return None
        start, end = held[0]
    sizes = _fields(data, start, end, (_SIZE,)).get(_SIZE)
    return _number(data, *sizes[-1]) if sizes else None


def _number(data: mmap.mmap, start: int, end: int) -> int | None:
    """The size of one dimension: its first field, unless that is its name."""
    if start == end or data[start] != _SIZE << 3 | _VARINT:
        return None
    return _varint(data, start + 1, end)[0] or None


def _fields(
    data: mmap.mmap, start: int, end: int, wanted: tuple[int, ...]
) -> dict[int, list[tuple[int, int]]]:
    """Where the length-delimited fields of these numbers lie: `{number: [(start, end), ...]}`."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, first, last in _walk(data, start, end):
        if number in wanted:
            found.setdefault(number, []).append((first, last))
    return found


def _walk(data: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    at = start
    while at < end:
        tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        size, at = (_FIXED.get(kind, 0), at) if kind != _BYTES else _varint(data, at, end)
        if kind == _VARINT:
            _, at = _varint(data, at, end)
        elif kind != _BYTES and kind not in _FIXED:
            raise ValueError("it is no ONNX file")
        if at + size > end:
            raise ValueError("the file ends too early")
        if kind == _BYTES:
            yield number, at, at + size
        at += size


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("it is no ONNX file")
