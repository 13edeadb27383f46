"""Sentence embeddings with plain onnxruntime: texts in, one vector each out.

The folder is the one of sentence-transformers: `model.onnx` or `onnx/model*.onnx`, `tokenizer.json`,
`1_Pooling/config.json` (mean without it), `modules.json` (vectors of length 1 without it, as OpenAI's are).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # see engine.py

import numpy as np
import onnxruntime as ort
import orjson
from numpy.typing import NDArray
from tokenizers import Tokenizer

from .protocol import Embedded
from .refusal import Refused, too_long

Pooling = Literal["mean", "cls", "last"]
Floats = NDArray[np.float32]

BATCH = 16
"""Texts in one run; between two of them a request can be cancelled."""
DEFAULT_LENGTH = 512
"""Most tokens of one text for a model that does not say: BERT's."""
_VARIANTS = ("", "_quantized", "_int8", "_uint8", "_q4", "_fp16", "_q4f16", "_bnb4")
"""Names after `model` in the order tried; without a suffix it is full precision."""
_POOLING: tuple[tuple[str, Pooling], ...] = (
    ("pooling_mode_cls_token", "cls"),
    ("pooling_mode_lasttoken", "last"),
    ("pooling_mode_mean_tokens", "mean"),
)


class Embedder:
    """A loaded embedding model; `dimensions` is None where the graph does not say."""

    def __init__(self, path: Path, *, threads: int | None = None, devices: Sequence[str] = ()) -> None:
        """Load a folder. Raises OSError, ValueError, and onnxruntime's own errors (RuntimeError among them).

        `devices` are execution providers as onnxruntime-genai names them ("cuda").
        """
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.log_severity_level = 4
        wanted = {*devices, "cpu"}
        chosen = [
            name
            for name in ort.get_available_providers()  # the fastest first
            if name.removesuffix("ExecutionProvider").lower() in wanted
        ]
        self._session = ort.InferenceSession(str(graph_file(path)), options, providers=chosen)
        self._inputs = frozenset(node.name for node in self._session.get_inputs())
        outputs = [node.name for node in self._session.get_outputs()]
        self._pooled = "sentence_embedding" in outputs
        self._output = "sentence_embedding" if self._pooled else outputs[0]
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self._tokenizer.no_truncation()  # such files come with a fixed length of both
        self._tokenizer.no_padding()
        self._pooling = pooling_of(path)
        self._normalize = normalizes(path)
        self.context_length = length_of(path)
        self.dimensions = self._width()

    def embed(
        self, inputs: Sequence[str | Sequence[int]], dimensions: int | None, cancelled: Callable[[], bool]
    ) -> Embedded | None:
        """One vector per text or token list; None: cancelled. Raises `Refused`.

        `dimensions` keeps so many numbers from the front and scales the rest to length 1.
        """
        rows = [self._ids(item) for item in inputs]
        vectors: list[bytes] = []
        for batch in _batches(rows):
            if cancelled():
                return None
            found = self._run(batch)
            if dimensions is not None:
                found = _cut(found, dimensions)
            vectors += [row.astype("<f4").tobytes() for row in found]
        return Embedded(vectors, sum(map(len, rows)))

    def _ids(self, item: str | Sequence[int]) -> list[int]:
        ids = list(self._tokenizer.encode(item).ids) if isinstance(item, str) else list(item)
        if not ids:
            raise Refused("bad_request", "An input is empty.", "input")
        if len(ids) > self.context_length:
            raise too_long(self.context_length, len(ids), "an input")
        size = self._tokenizer.get_vocab_size()
        if not isinstance(item, str) and not (min(ids) >= 0 and max(ids) < size):
            raise Refused("bad_request", f"A token of an input is not below {size}.", "input")
        return ids

    def _run(self, rows: Sequence[Sequence[int]]) -> Floats:
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), dtype=np.int64)
        mask = np.zeros_like(ids)
        for at, row in enumerate(rows):
            ids[at, : len(row)] = row
            mask[at, : len(row)] = 1
        feeds = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.tile(np.arange(longest, dtype=np.int64), (len(rows), 1)),
        }
        wanted = {name: value for name, value in feeds.items() if name in self._inputs}
        output = np.asarray(self._session.run([self._output], wanted)[0], dtype=np.float32)
        found = output if self._pooled or output.ndim == 2 else _pool(output, mask, self._pooling)
        return _unit(found) if self._normalize else found

    def _width(self) -> int | None:
        shape = next(node.shape for node in self._session.get_outputs() if node.name == self._output)
        return shape[-1] if shape and isinstance(shape[-1], int) else None


def graph_file(path: Path) -> Path:
    """The graph of an embedding folder. Raises FileNotFoundError."""
    for folder in (path, path / "onnx"):
        for variant in _VARIANTS:
            if (found := folder / f"model{variant}.onnx").is_file():
                return found
    raise FileNotFoundError(f"{path} holds no model.onnx and no onnx/model*.onnx")


def pooling_of(path: Path) -> Pooling:
    config = _json(path / "1_Pooling" / "config.json") or {}
    return next((pooling for key, pooling in _POOLING if config.get(key)), "mean")


def normalizes(path: Path) -> bool:
    modules = _json(path / "modules.json")
    return modules is None or any(str(module.get("type", "")).endswith("Normalize") for module in modules)


def length_of(path: Path) -> int:
    """Most tokens of one text: what sentence-transformers was told, else what the model was made for."""
    sources = (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    )
    for name, key in sources:
        value = (_json(path / name) or {}).get(key)
        if isinstance(value, int) and 0 < value < 1 << 24:  # 10^30 there stands for "no limit"
            return value
    return DEFAULT_LENGTH


def _json(path: Path) -> Any:
    return orjson.loads(path.read_bytes()) if path.is_file() else None


def _batches(rows: Sequence[list[int]]) -> Iterator[Sequence[list[int]]]:
    yield from (rows[at : at + BATCH] for at in range(0, len(rows), BATCH))


def _pool(hidden: Floats, mask: NDArray[np.int64], pooling: Pooling) -> Floats:
    """`hidden` is (texts, tokens, width), `mask` 1 where a token is no padding; padding is on the right."""
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "last":
        last: Floats = hidden[np.arange(len(hidden)), mask.sum(axis=1) - 1]
        return last
    weights = mask[:, :, None].astype(np.float32)
    mean: Floats = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return mean


def _cut(vectors: Floats, dimensions: int) -> Floats:
    width = vectors.shape[1]
    if not 0 < dimensions <= width:
        raise Refused("bad_request", f"`dimensions` must be between 1 and {width}.", "dimensions")
    return _unit(vectors[:, :dimensions])


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = vectors / np.maximum(lengths, 1e-12)
    return unit
