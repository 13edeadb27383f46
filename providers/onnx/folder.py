"""Model folders: what is in them, read without loading a model.

A folder is one of three kinds: laid out for the engine (`genai_config.json`), a repository of
the `onnx-community` layout (`onnx/model*.onnx` and `config.json`), or a sentence-embedding
model. What is missing or damaged makes a model unusable with a `reason`, and never an error:
one bad folder must not hide its neighbours.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from translators.ir import Json
from translators.local.families import BY_NAME, PLAIN, Family, detect

from .control import read_control
from .graph import read_graph
from .json_file import read_json
from .kind import Kind, Layout, layout_of
from .size import parameter_count
from .synth import choose, genai_config, lay_out
from .template import check

_DEPTH = 4
"""Levels below the configured folder: `org/name/cpu_and_mobile/cpu-int4-...` is a real one."""
_OVERRIDES = frozenset({"name", "family", "markers", "context_length", "variant"})
"""Keys of `model.toml`, what an owner knows better than the files."""
_MARKERS = frozenset({"openers", "closers", "sections", "wraps", "thoughts", "stops"})
"""Keys of its table `markers`: fields of `Family`."""
_SAMPLING = ("do_sample", "temperature", "top_k", "top_p", "repetition_penalty", "no_repeat_ngram_size")
_THINKING = ("enable_thinking", "<think>", "reasoning_effort", "<|channel|>", "[THINK]", "<|channel>thought")
"""Words of templates of models that think."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """One model. `path` is the folder as it was found; `engine_path` is what the engine loads."""

    name: str
    kind: Kind
    path: Path
    layout: Layout = "genai"
    variant: str | None = None
    """Of the `onnx-community` layout: `q4`, `int8`, ...; "" is the full model."""
    context_length: int | None = None
    vocab_size: int | None = None
    eos_ids: tuple[int, ...] = ()
    template: str | None = None
    family: Family = PLAIN
    """How it writes thoughts and calls: told by its template, or by its owner."""
    special_tokens: tuple[str, ...] = ()
    special_ids: Mapping[str, int] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    """What its template knows by name: `bos_token`, `eos_token`, ..."""
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Sampling defaults of its makers."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """For the catalogue: `task`, `capabilities`, `context_window`, `parameter_count`, ..."""
    reason: str | None = None
    """Why it cannot be used."""

    def engine_path(self, cache: Path) -> Path:
        """The folder to load; of the `onnx-community` layout one of links below `cache`.

        Raises `NotLaidOutError`, `OSError`.
        """
        if self.layout != "onnx-community":
            return self.path
        return lay_out(self.path, cache, self.variant)


def scan(path: Path, variant: str | None = None) -> list[ModelFolder]:
    """The models at `path`: itself, or those in the folders below it, by name.

    `variant` is the wanted one of the `onnx-community` layout. A path that leads nowhere is one
    unusable model, so that its owner is told.
    """
    path = path.expanduser().absolute()
    if not path.is_dir():
        return [ModelFolder(path.name, "chat", path, reason=f"{path} is no folder")]
    found = list(_folders(path, _DEPTH))
    if not found:
        return [ModelFolder(path.name, "chat", path, reason=f"{path} holds no ONNX model")]
    return [read_folder(each, each.name if each == path else _name(each, path), variant) for each in found]


def read_folder(path: Path, name: str, variant: str | None = None) -> ModelFolder:
    """One folder as a model; whatever is wrong with it is its `reason`."""
    layout, kind = layout_of(path)
    try:
        overrides = _overrides(path)
        if kind == "embedding":
            return _embedding(path, name, overrides)
        return _chat(path, name, layout, overrides, variant)
    except (OSError, ValueError, RecursionError) as error:
        return ModelFolder(name, kind, path, layout, reason=f"{name}: {error}")


def _folders(path: Path, depth: int) -> Iterator[Path]:
    """Model folders at or below `path`; nothing below one is looked at."""
    if layout_of(path)[0] != "none":
        yield path
        return
    snapshot = _snapshot(path)
    if snapshot is not None:
        yield from _folders(snapshot, 1)
    elif depth:
        for each in _children(path):
            yield from _folders(each, depth - 1)


def _children(path: Path) -> list[Path]:
    try:
        return sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))
    except OSError:  # one folder that may not be read must not hide the others
        return []


def _snapshot(path: Path) -> Path | None:
    """The revision in use of a folder of the Hugging Face cache: `models--org--name`."""
    if not path.name.startswith("models--"):
        return None
    try:
        return path / "snapshots" / (path / "refs" / "main").read_text().strip()
    except OSError:
        revisions = _children(path / "snapshots") if (path / "snapshots").is_dir() else []
        return revisions[-1] if revisions else None


def _name(folder: Path, root: Path) -> str:
    """The place below the root; a folder of the Hugging Face cache is called as its repository."""
    parts = folder.relative_to(root).parts
    for part in parts:
        if part.startswith("models--"):
            return part.removeprefix("models--").replace("--", "/")
    return "/".join(parts)


def _overrides(path: Path) -> Json:
    """`model.toml`; raises `ValueError` for one that says what nobody reads."""
    file = path / "model.toml"
    if not file.is_file():
        return {}
    try:
        told = tomllib.loads(file.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"model.toml: {error}") from None
    odd = sorted(told.keys() - _OVERRIDES)
    if odd:
        raise ValueError(f"model.toml: unknown key '{odd[0]}': use {', '.join(sorted(_OVERRIDES))}")
    if "family" in told and told["family"] not in BY_NAME:
        raise ValueError(f"model.toml: no family '{told['family']}': use one of {', '.join(sorted(BY_NAME))}")
    _check_markers(told.get("markers", {}))
    return told


def _check_markers(markers: Any) -> None:
    if not isinstance(markers, dict) or markers.keys() - _MARKERS:
        raise ValueError(f"model.toml: [markers] is a table of {', '.join(sorted(_MARKERS))}")
    for key, held in markers.items():
        kind, shape = (list, "pairs of strings") if key == "thoughts" else (str, "strings")
        if not isinstance(held, list) or not all(isinstance(each, kind) for each in held):
            raise ValueError(f"model.toml: markers.{key} is a list of {shape}")


def _family(template: str | None, overrides: Json) -> Family:
    family = BY_NAME[overrides["family"]] if "family" in overrides else detect(template or "")
    told: dict[str, Any] = {
        key: tuple(map(_frozen, held)) for key, held in overrides.get("markers", {}).items()
    }
    return replace(family, **told)


def _frozen(mark: Any) -> Any:
    if isinstance(mark, str):
        return mark
    if len(mark) != 2 or not all(isinstance(each, str) for each in mark):
        raise ValueError("model.toml: markers.thoughts is a list of pairs of strings")
    return mark[0], mark[1]


def _chat(path: Path, name: str, layout: Layout, overrides: Json, variant: str | None) -> ModelFolder:
    chosen = choose(path, overrides.get("variant", variant)) if layout == "onnx-community" else None
    config = genai_config(path, chosen) if chosen is not None else read_json(path / "genai_config.json")
    model = (config or {}).get("model")
    if config is None or not isinstance(model, dict):
        raise ValueError("genai_config.json is no JSON object with a 'model'")
    template = read_template(path)
    family = _family(template, overrides)
    control = read_control(path, "\n".join((template or "", *family.markers)))
    context = _count(overrides.get("context_length")) or _count(model.get("context_length"))
    search = config.get("search")
    return ModelFolder(
        name=str(overrides.get("name", name)),
        kind="chat",
        path=path,
        layout=layout,
        variant=chosen,
        context_length=context,
        vocab_size=_count(model.get("vocab_size")),
        eos_ids=_eos(model.get("eos_token_id")),
        template=template,
        family=family,
        special_tokens=control.tokens,
        special_ids=control.ids,
        variables=control.variables,
        generation=_generation(path, search if isinstance(search, dict) else {}),
        overrides=overrides,
        facts=_chat_facts(path, model, template, context),
        reason=_unusable(path, layout, model, template),
    )


def _unusable(path: Path, layout: Layout, model: Json, template: str | None) -> str | None:
    """What keeps a chat model from being run, the first of it."""
    decoder = model.get("decoder")
    file = decoder.get("filename") if isinstance(decoder, dict) else None
    if layout == "genai" and not (isinstance(file, str) and (path / file).is_file()):
        return f"the model file '{file}' of genai_config.json is missing"
    if read_json(path / "tokenizer.json") is None:
        return "tokenizer.json is missing or damaged"
    if _count(model.get("context_length")) is None:
        return "genai_config.json names no context_length"
    if not _eos(model.get("eos_token_id")):
        return "genai_config.json names no eos_token_id"
    if template is None:
        return "it has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json)"
    return check(template)


def read_template(path: Path) -> str | None:
    """The chat template: a file of its own, or in `tokenizer_config.json`.

    There it is a string, or a list of named ones: `tool_use` knows tools, and takes a call
    without any too; else `default`, else the first.
    """
    for name in ("chat_template.jinja", "chat_template.json"):
        file = path / name
        if file.is_file():
            text = (
                file.read_text() if file.suffix == ".jinja" else (read_json(file) or {}).get("chat_template")
            )
            return text if isinstance(text, str) and text else None
    held = (read_json(path / "tokenizer_config.json") or {}).get("chat_template")
    if isinstance(held, list):
        named = {each.get("name"): each.get("template") for each in held if isinstance(each, dict)}
        held = named.get("tool_use") or named.get("default") or next(iter(named.values()), None)
    return held if isinstance(held, str) and held else None


def _generation(path: Path, search: Json) -> Json:
    told = read_json(path / "generation_config.json") or {}
    found = {key: search.get(key) if told.get(key) is None else told[key] for key in _SAMPLING}
    return {key: value for key, value in found.items() if value is not None}


def _chat_facts(path: Path, model: Json, template: str | None, context: int | None) -> Json:
    text = template or ""
    able = ["completion"]
    able += ["tools"] if "tools" in text else []
    able += ["thinking"] if any(word in text for word in _THINKING) else []
    facts: Json = {"task": "chat", "capabilities": able}
    if context is not None:
        facts["context_window"] = context
    size = parameter_count(model, read_json(path / "config.json") or {})
    if size is not None:
        facts["parameter_count"] = size
    return facts


def _embedding(path: Path, name: str, overrides: Json) -> ModelFolder:
    config = read_json(path / "config.json") or {}
    sentence = read_json(path / "sentence_bert_config.json") or {}
    pooling = read_json(path / "1_Pooling" / "config.json") or {}
    context = _count(overrides.get("context_length")) or _count(sentence.get("max_seq_length"))
    context = context or _count(config.get("max_position_embeddings"))
    facts: Json = {"task": "embedding", "capabilities": ["embedding"]}
    width = (
        _count(pooling.get("word_embedding_dimension")) or _count(config.get("hidden_size")) or _width(path)
    )
    facts |= {"dimensions": width} if width else {}
    facts |= {"context_window": context} if context else {}
    return ModelFolder(
        name=str(overrides.get("name", name)),
        kind="embedding",
        path=path,
        layout="sentence",
        context_length=context,
        vocab_size=_count(config.get("vocab_size")),
        overrides=overrides,
        facts=facts,
        reason=_no_embedding(path),
    )


def _width(path: Path) -> int | None:
    """Numbers in a vector, as the graph says."""
    files = (*path.glob("model*.onnx"), *path.glob("onnx/model*.onnx"))
    if not files:
        return None
    graph = read_graph(files[0])
    named = dict(zip(graph.outputs, graph.widths, strict=True))
    return named.get("sentence_embedding", graph.widths[0])


def _no_embedding(path: Path) -> str | None:
    if not any(path.glob("model*.onnx")) and not any(path.glob("onnx/model*.onnx")):
        return "it holds no model.onnx and no onnx/model*.onnx"
    return None if read_json(path / "tokenizer.json") is not None else "tokenizer.json is missing or damaged"


def _eos(value: Any) -> tuple[int, ...]:
    held = value if isinstance(value, list) else [value]
    return tuple(each for each in held if isinstance(each, int) and not isinstance(each, bool))


def _count(value: Any) -> int | None:
    """A positive whole number; 10^30 stands for "no limit" in some files."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else None
