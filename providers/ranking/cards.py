"""What is known of one model, whoever lists it: the facts that ranking and search go by.

Capabilities have three values: True, False, and None for "nobody says". A listing's silence
is never taken for a no: 4 of 20 entries of a real workspace told nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base import ModelInfo
from . import facts as read
from .facts import Facts
from .families import TASKS, Task
from .names import ROOTS, Segments, core, display_name, parameter_count, version

LOCAL_KINDS = frozenset({"ollama", "onnx"})
"""Kinds of provider that run models on machines of the operator's own."""

_TASK_WORDS: dict[str, Task] = {
    "llm/v1/chat": "chat",
    "llm/v1/embeddings": "embedding",
    "llm/v1/completions": "other",
    "chat": "chat",
    "llm": "chat",  # LM Studio
    "vlm": "chat",
    "language": "chat",
    "embedding": "embedding",
    "embeddings": "embedding",
    "image": "other",
    "audio": "other",
    "moderation": "other",
    "rerank": "other",
    "code": "other",  # Together: completion only
    "transcribe": "other",
    "video": "other",
}
"""What listings call a model's purpose (`task` of Databricks, `type` of Together and LM Studio)."""
_CHAT = ("completion", "chat/completions", "/responses", "/messages")
_EMBEDDINGS = ("embedding", "/embeddings")
"""Ends of Ollama's capabilities and of Databricks' API types."""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One model of one provider. Its class is no fact of it: that depends on the whole catalogue."""

    target: str
    """`provider/model`, the id that names it alone."""
    provider: str
    kind: str
    model: str
    segments: Segments = ()
    """The words of its own name, without path and maker's prefix."""
    aliases: tuple[str, ...] = ()
    display_name: str = ""
    family: str | None = None
    version: tuple[int, ...] = ()
    task: Task = "chat"
    quality: float | None = None
    """Published score; no unit, higher is better."""
    speed: float | None = None
    """Published tokens per second."""
    cost: float | None = None
    """Published dollars per million tokens, or the price list's."""
    tools: bool | None = None
    vision: bool | None = None
    reasoning: bool | None = None
    context_window: int | None = None
    dimensions: int | None = None
    parameter_count: float | None = None
    loaded: bool | None = None
    """Whether it is in memory; False: the first request waits for the load."""
    ready: bool | None = None
    """Whether its provider says that it can be asked now."""
    json_schema: bool | None = None
    """Whether it takes a JSON schema for its answer."""
    twin_of: str | None = None
    """The target that serves the same model under its own name; this one is only another way to it."""

    @property
    def local(self) -> bool:
        return self.kind in LOCAL_KINDS


def make_card(info: ModelInfo, kind: str, aliases: Sequence[str] = ()) -> ModelCard:
    """The card of a listed model of a provider of `kind`; facts may be empty (a configured list).

    Of a local provider's facts these are read besides those of Ollama: `loaded` (bool),
    `parameter_count`, `context_window`, `capabilities` (Ollama's words), `task`.
    """
    facts, segments = info.facts, core(info.id)
    quality, speed, cost = read.profile(facts)
    task = _task(kind, facts, segments)
    return ModelCard(
        target=f"{info.provider}/{info.id}",
        provider=info.provider,
        kind=kind,
        model=info.id,
        segments=segments,
        aliases=tuple(aliases),
        display_name=read.title(facts) or display_name(info.id),
        family=_family(segments),
        version=version(segments),
        task=task,
        quality=quality,
        speed=speed,
        cost=cost if cost is not None else read.price(facts),
        tools=_tools(facts),
        vision=_vision(facts),
        reasoning=_reasoning(facts),
        context_window=read.window(facts),
        dimensions=read.dimensions(facts) if task == "embedding" else None,
        parameter_count=read.parameters(facts) or parameter_count(segments),
        loaded=_loaded(facts),
        ready=_ready(facts),
        json_schema=_json_schema(facts),
        twin_of=_twin_of(info, kind),
    )


def _family(segments: Segments) -> str | None:
    """The brand: `gpt-oss` is one of its own, which a search for gpt does not mean."""
    brand = next((word for word in segments if word in ROOTS), None)
    return "gpt-oss" if brand == "gpt" and "oss" in segments else brand


def _task(kind: str, facts: Facts, segments: Segments) -> Task:
    """As the listing says, by a word of the name, by what it writes; chat where nothing speaks."""
    told = _told_task(facts)
    if told:
        return told
    # An endpoint of a workspace without a task may be any model at all: it is asked for by its name.
    if kind == "databricks" and facts:
        return "other"
    named = next((TASKS[word] for word in segments if word in TASKS), None)
    written = read.strings(read.table(facts, "architecture"), "output_modalities")
    if named or not written or "text" in written:
        return named or "chat"
    return "embedding" if "embeddings" in written else "other"


def _told_task(facts: Facts) -> Task | None:
    for entry in (facts, *(read.table(entity, "external_model") for entity in read.entities(facts))):
        for said in (entry.get("task"), entry.get("type")):
            if isinstance(said, str) and said in _TASK_WORDS:
                return _TASK_WORDS[said]
    able = (*read.strings(facts, "capabilities"), *read.surfaces(facts))
    if any(each.endswith(_CHAT) for each in able):
        return "chat"
    return "embedding" if any(each.endswith(_EMBEDDINGS) for each in able) else None


def _capability(facts: Facts, *keys: str) -> bool | None:
    """A boolean of the table `capabilities`, of the entry or of what it serves."""
    models = (read.table(entity, "foundation_model") for entity in read.entities(facts))
    tables = [read.table(each, "capabilities") for each in (facts, *models)]
    said = [value for able in tables for key in keys if isinstance(value := able.get(key), bool)]
    return any(said) if said else None


def _listed(words: frozenset[str], held: Sequence[str] | None) -> bool | None:
    """Whether a list names one of `words`; None where there is no list."""
    return None if held is None else not words.isdisjoint(held)


def _of_ollama(facts: Facts) -> Sequence[str] | None:
    """Ollama's list, which is complete: it names `completion` or `embedding` beside the rest."""
    held = read.strings(facts, "capabilities")
    return held if "completion" in held or "embedding" in held else None


def _tools(facts: Facts) -> bool | None:
    able = _capability(facts, "function_calling")
    if able is not None:
        return able
    held = read.words_of(facts, "capabilities", "supported_parameters")
    return _listed(frozenset({"tools", "tool_use"}), held)


def _json_schema(facts: Facts) -> bool | None:
    able = _capability(facts, "structured_outputs", "json_schema")
    if able is not None:
        return able
    return _listed(frozenset({"structured_outputs"}), read.words_of(facts, "supported_parameters"))


def _twin_of(info: ModelInfo, kind: str) -> str | None:
    """The endpoint that a Databricks model service stands for (`databricks_services.py`)."""
    endpoint = info.facts.get("endpoint") if kind == "databricks" else None
    return f"{info.provider}/{endpoint}" if isinstance(endpoint, str) and endpoint else None


def _vision(facts: Facts) -> bool | None:
    able = _capability(facts, "image_input", "vision")
    if able is not None:
        return able
    if facts.get("type") == "vlm":  # LM Studio
        return True
    taken = read.words_of(read.table(facts, "architecture"), "input_modalities")
    return _listed(frozenset({"image", "vision"}), taken if taken is not None else _of_ollama(facts))


def _reasoning(facts: Facts) -> bool | None:
    """Only a True of Databricks counts: its listing says `false` of Claude models that do reason."""
    if _capability(facts, "openai_reasoning", "anthropic_reasoning", "reasoning"):
        return True
    held = read.words_of(facts, "supported_parameters")
    return _listed(frozenset({"thinking", "reasoning"}), held if held is not None else _of_ollama(facts))


def _loaded(facts: Facts) -> bool | None:
    said = facts.get("loaded")
    if isinstance(said, bool):
        return said
    state = facts.get("state")  # LM Studio
    return state == "loaded" if state in ("loaded", "not-loaded") else None


def _ready(facts: Facts) -> bool | None:
    said = read.table(facts, "state").get("ready")
    return said == "READY" if isinstance(said, str) else None
