"""A tiny embedding model, written as ONNX by hand: the package `onnx` is too large for one graph.

The graph is one Gather: `last_hidden_state[text, token] = table[input_ids[text, token]]`, and the attention
mask only passes through an Identity, as a graph may not have an input that nothing reads.
"""

from __future__ import annotations

import struct
from pathlib import Path

import orjson
from tokenizers import Tokenizer, models, pre_tokenizers

TABLE = [[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 3.0, 4.0]]
WORDS = {"[PAD]": 0, "one": 1, "two": 2, "three": 3}
FLOAT, INT64 = 1, 7


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, value: int | bytes | str) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(raw)) + raw


def _value(name: str, element: int, shape: list[int | str]) -> bytes:
    """A ValueInfoProto; names in a shape are free dimensions."""
    sizes = b"".join(
        _field(1, _field(1, size) if isinstance(size, int) else _field(2, size)) for size in shape
    )
    return _field(1, name) + _field(2, _field(1, _field(1, element) + _field(2, sizes)))


def _node(kind: str, inputs: list[str], output: str) -> bytes:
    return b"".join(_field(1, name) for name in inputs) + _field(2, output) + _field(4, kind)


def model_bytes(pooled: bool) -> bytes:
    """A ModelProto of IR 8, opset 13; `pooled`: with a mean over all tokens as `sentence_embedding`."""
    flat = [number for row in TABLE for number in row]
    table = _field(1, len(TABLE)) + _field(1, 4) + _field(2, FLOAT) + _field(8, "table")
    table += _field(9, struct.pack(f"<{len(flat)}f", *flat))
    graph = _field(1, _node("Gather", ["table", "input_ids"], "last_hidden_state"))
    graph += _field(1, _node("Identity", ["attention_mask"], "mask"))
    graph += _field(2, "tiny") + _field(5, table)
    graph += _field(11, _value("input_ids", INT64, ["batch", "sequence"]))
    graph += _field(11, _value("attention_mask", INT64, ["batch", "sequence"]))
    graph += _field(12, _value("last_hidden_state", FLOAT, ["batch", "sequence", 4]))
    if pooled:
        axes = _field(1, "axes") + _field(8, 1) + _field(20, 7)
        keep = _field(1, "keepdims") + _field(3, 0) + _field(20, 2)
        mean = _node("ReduceMean", ["last_hidden_state"], "sentence_embedding")
        graph += _field(1, mean + _field(5, axes) + _field(5, keep))
        graph += _field(12, _value("sentence_embedding", FLOAT, ["batch", 4]))
    graph += _field(12, _value("mask", INT64, ["batch", "sequence"]))
    return _field(1, 8) + _field(7, graph) + _field(8, _field(2, 13))


def write_folder(
    path: Path, *, pooling: str | None = None, normalize: bool | None = None, length: int | None = None,
    graph: str = "model.onnx",
    pooled: bool = False,
) -> Path:  # fmt: skip
    """A sentence-transformers folder; None leaves a file out."""
    file = path / graph
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(model_bytes(pooled))
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(128)
    tokenizer.save(str(path / "tokenizer.json"))
    if pooling is not None:
        (path / "1_Pooling").mkdir()
        (path / "1_Pooling" / "config.json").write_bytes(orjson.dumps({pooling: True}))
    if normalize is not None:
        kinds = ["sentence_transformers.models.Transformer"] + [
            "sentence_transformers.models.Normalize"
        ] * normalize
        (path / "modules.json").write_bytes(orjson.dumps([{"type": kind} for kind in kinds]))
    if length is not None:
        (path / "sentence_bert_config.json").write_bytes(orjson.dumps({"max_seq_length": length}))
    return path
