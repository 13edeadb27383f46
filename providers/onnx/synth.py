"""Model folders of the `onnx-community` layout, laid out as the engine wants them.

Such a repository holds `config.json`, the tokeniser and `onnx/model{,_q4,_int8,...}.onnx` with
their `.onnx_data`. The engine wants one flat folder with a `genai_config.json`; that file says
nothing that `config.json`, `generation_config.json` and the graph don't, so it is made of them.
The flat folder is a cache entry of links, named after what it was made of.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from translators.ir import Json

from .graph import Graph, read_graph
from .json_file import read_json

VARIANTS = ("q4", "int8", "quantized", "uint8", "q4f16", "fp16", "", "bnb4")
"""Suffixes of `onnx/model*.onnx`, best first on a CPU: 16-bit floats are computed as 32-bit
ones there, and `bnb4` has no kernel of its own. "" is the full 32-bit model."""

_TYPES = frozenset(
    {
        *("llama", "mistral", "gemma", "gemma2", "gemma3_text", "gemma4_text", "qwen2", "qwen3", "phi"),
        *("phi3", "phi3small", "phimoe", "olmo", "granite", "smollm3", "chatglm", "nemotron", "ernie4_5"),
        *("gptoss", "gpt2", "internlm2"),
    }
)
"""Types that the engine (0.18) takes for text; tried one by one on a llama graph."""
_ANY_DECODER = "decoder"
"""The engine's type for a decoder it has no name for: same graph, no special treatment."""
_RENAMED = {"gpt_oss": "gptoss", "gemma3": "gemma3_text", "gemma4": "gemma4_text"}

_PLAIN_INPUTS = frozenset({"input_ids", "attention_mask", "position_ids"})
_PAST = ("past_key_values.%d.key", "past_key_values.%d.value")
_PRESENT = ("present.%d.key", "present.%d.value")
_SAMPLING = ("do_sample", "temperature", "top_k", "top_p", "repetition_penalty", "no_repeat_ngram_size")
_COPIED = (".json", ".jinja", ".model", ".txt")
"""Ends of the small files beside the weights: configurations, tokenisers, templates."""
_VERSION = b"1"
"""Changes when the files made here change, so that no old entry is used."""


class NotLaidOutError(ValueError):
    """Why a folder cannot be run, in words for the one who put it there."""


def variants(folder: Path) -> list[str]:
    """The variants that the folder holds, best first."""
    return [variant for variant in VARIANTS if model_file(folder, variant).is_file()]


def model_file(folder: Path, variant: str) -> Path:
    return folder / "onnx" / (f"model_{variant}.onnx" if variant else "model.onnx")


def choose(folder: Path, wanted: str | None = None) -> str:
    """The variant to run; `wanted` is the configured one ("fp32" is the one without a suffix)."""
    found = variants(folder)
    named = "" if wanted == "fp32" else wanted
    if named is not None and named not in found:
        raise NotLaidOutError(f"it has no variant '{wanted}': it has {_listed(found)}")
    if not found:
        raise NotLaidOutError("onnx/ holds no model.onnx in any variant")
    return found[0] if named is None else named


def genai_config(folder: Path, variant: str) -> Json:
    """The `genai_config.json` for one variant, file names as `lay_out` links them.

    Raises `NotLaidOutError` for a graph that is no plain decoder with a key-value cache.
    """
    config = _text_config(_read(folder / "config.json"))
    generation = read_json(folder / "generation_config.json") or {}
    graph = _graph(model_file(folder, variant))
    context = _size(config, "max_position_embeddings", "n_positions")
    model: Json = {
        "type": _type(config),
        "context_length": context,
        "vocab_size": _size(config, "vocab_size"),
        **_token_ids(config, generation),
        "decoder": {"filename": model_file(folder, variant).name, **_decoder(config, graph)},
    }
    search = {key: generation[key] for key in _SAMPLING if generation.get(key) is not None}
    # These graphs grow their cache by concatenation: nothing can be shared between in and out.
    return {"model": model, "search": {**search, "max_length": context, "past_present_share_buffer": False}}


def lay_out(folder: Path, cache: Path, variant: str | None = None) -> Path:
    """A folder for the engine, made once for each state of `folder` and variant.

    The entry is built beside its place and renamed into it: another process sees all of it or
    nothing. Raises `NotLaidOutError`; `OSError` when the cache cannot be written.
    """
    chosen = choose(folder, variant)
    config = orjson.dumps(genai_config(folder, chosen), option=orjson.OPT_INDENT_2)
    links = list(_links(folder, chosen))
    place = cache / f"{folder.name}-{_key(config, links)}"
    if not place.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        _build(Path(tempfile.mkdtemp(dir=cache, prefix=".new-")), config, links, place)
    return place


def _build(new: Path, config: bytes, links: Sequence[Path], place: Path) -> None:
    (new / "genai_config.json").write_bytes(config)
    for source in links:
        (new / source.name).symlink_to(source)
    try:
        new.rename(place)
    except OSError:  # another process was first, and its entry is the same
        for each in new.iterdir():
            each.unlink()
        new.rmdir()
        if not place.is_dir():
            raise


def _links(folder: Path, variant: str) -> Iterator[Path]:
    """The small files of the root, the model, and whatever may hold its weights; absolute."""
    home = folder.absolute()
    for path in sorted(home.iterdir()):
        if path.suffix in _COPIED and path.name != "genai_config.json" and path.is_file():
            yield path
    model = model_file(home, variant)
    yield model
    # Its weights are in files that the graph names: model_q4.onnx_data, _data_1, model.onnx.data.
    yield from sorted(path for path in model.parent.iterdir() if path.is_file() and path.suffix != ".onnx")


def _key(config: bytes, links: Sequence[Path]) -> str:
    """A file counts by place, size and time: weights are gigabytes, too many to hash."""
    digest = hashlib.sha256(_VERSION + config)
    for path in links:
        status = path.stat()
        digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()[:16]


def _read(path: Path) -> Json:
    found = read_json(path)
    if found is None:
        raise NotLaidOutError(f"{path.name} is missing or no JSON object")
    return found


def _text_config(config: Json) -> Json:
    """A model of several senses keeps its words in `text_config`."""
    text = config.get("text_config")
    return {**config, **text} if isinstance(text, dict) else config


def _graph(path: Path) -> Graph:
    try:
        graph = read_graph(path)
    except (OSError, ValueError) as error:
        raise NotLaidOutError(f"{path.name} cannot be read: {error}") from None
    odd = sorted(
        name for name in graph.inputs if name not in _PLAIN_INPUTS and not name.startswith("past_key_values.")
    )
    if odd or "input_ids" not in graph.inputs or "logits" not in graph.outputs:
        raise NotLaidOutError(f"{path.name} is no plain text decoder: its inputs are {_listed(graph.inputs)}")
    return graph


def _decoder(config: Json, graph: Graph) -> Json:
    heads = _size(config, "num_attention_heads", "n_head")
    hidden = _size(config, "hidden_size", "n_embd")
    layers = sum(name.startswith("past_key_values.") and name.endswith(".key") for name in graph.inputs)
    if not layers:
        raise NotLaidOutError("the graph has no key-value cache (past_key_values inputs)")
    return {
        "head_size": _optional(config, "head_dim") or hidden // heads,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "num_key_value_heads": _optional(config, "num_key_value_heads") or heads,
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "inputs": {
            **{name: name for name in sorted(_PLAIN_INPUTS) if name in graph.inputs},
            "past_key_names": _PAST[0],
            "past_value_names": _PAST[1],
        },
        "outputs": {"logits": "logits", "present_key_names": _PRESENT[0], "present_value_names": _PRESENT[1]},
    }


def _type(config: Json) -> str:
    named = str(config.get("model_type", ""))
    named = _RENAMED.get(named, named)
    return named if named in _TYPES else _ANY_DECODER


def _token_ids(config: Json, generation: Json) -> Json:
    """`generation_config.json` knows all tokens that end an answer; `config.json` often one."""
    merged = {**config, **{key: value for key, value in generation.items() if value is not None}}
    ends = merged.get("eos_token_id")
    if not isinstance(ends, int) and not (isinstance(ends, list) and ends):
        raise NotLaidOutError("neither generation_config.json nor config.json names eos_token_id")
    first = ends[0] if isinstance(ends, list) else ends
    ids: Json = {"eos_token_id": ends}
    ids["pad_token_id"] = merged["pad_token_id"] if isinstance(merged.get("pad_token_id"), int) else first
    if isinstance(merged.get("bos_token_id"), int):
        ids["bos_token_id"] = merged["bos_token_id"]
    return ids


def _size(config: Json, *names: str) -> int:
    found = _optional(config, *names)
    if found is None:
        raise NotLaidOutError(f"config.json has no {names[0]}")
    return found


def _optional(config: Json, *names: str) -> int | None:
    values: list[Any] = [config.get(name) for name in names]
    return next((value for value in values if isinstance(value, int) and value > 0), None)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name or "fp32" for name in names) or "none"


def default_cache() -> Path:
    """`$XDG_CACHE_HOME/dragoman/onnx`, `~/.cache/dragoman/onnx` without it."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "dragoman" / "onnx"
