"""Model folders in other layouts, made of the packaged model."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import orjson

TINY = Path(__file__).parents[3] / "providers" / "onnx" / "model" / "tiny-chat"
_GENAI = orjson.loads((TINY / "genai_config.json").read_bytes())["model"]
_DECODER = _GENAI["decoder"]

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": _GENAI["vocab_size"],
    "max_position_embeddings": _GENAI["context_length"],
    "hidden_size": _DECODER["hidden_size"],
    "num_attention_heads": _DECODER["num_attention_heads"],
    "num_key_value_heads": _DECODER["num_key_value_heads"],
    "head_dim": _DECODER["head_size"],
    "bos_token_id": 0,
    "eos_token_id": 2,
}
"""`config.json` as the packaged model's repository would have it."""


def community(folder: Path, suffix: str = "_q4", config: dict[str, Any] | None = None) -> Path:
    """The `onnx-community` layout; the data file keeps the name that the graph knows it by."""
    (folder / "onnx").mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(TINY / name, folder / name)
    shutil.copy(TINY / "model.onnx", folder / "onnx" / f"model{suffix}.onnx")
    shutil.copy(TINY / "model.onnx.data", folder / "onnx" / "model.onnx.data")
    write(folder / "config.json", CONFIG if config is None else config)
    write(folder / "generation_config.json", {"eos_token_id": [2, 0], "do_sample": True, "top_p": 0.9})
    return folder


def copied(folder: Path) -> Path:
    shutil.copytree(TINY, folder)
    return folder


def write(file: Path, value: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(value))
    return file


def edit(file: Path, **changes: Any) -> None:
    """Top-level keys of a JSON file; None takes a key away."""
    told = {**orjson.loads(file.read_bytes()), **changes}
    write(file, {key: value for key, value in told.items() if value is not None})
