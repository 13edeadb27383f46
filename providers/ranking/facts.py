"""Reading what listings say of a model, each in its own words; whatever has another type says nothing.

The words are those of OpenAI-compatible servers (vLLM, llama.cpp, OpenRouter, Together, LM Studio,
Mistral), of Databricks' `/api/2.0/serving-endpoints`, and of Ollama's `/api/tags` with what
`/api/show` and `/api/ps` add.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]

WINDOW_KEYS = ("context_window", "max_model_len", "context_length", "max_context_length", "n_ctx")
"""Names of the context window: ours, vLLM, OpenRouter and Together, LM Studio and Mistral, llama.cpp."""
DOLLARS_PER_DBU = 0.07
"""Pay-per-token rate: with it Databricks' DBU prices, blended, are the `cost` of its profiles (Opus: 10)."""
INPUT_SHARE = 0.75
"""Three tokens in for one out: the blend behind that same `cost`."""

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)(?:x(\d+(?:\.\d+)?))?\s*([KMBT])\s*", re.IGNORECASE)
_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


def table(holder: Facts, key: str) -> Facts:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def strings(holder: Facts, key: str) -> tuple[str, ...]:
    value = holder.get(key)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def number(value: Any) -> float | None:
    """A finite number, also written as text (prices are); None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def count(value: Any) -> int | None:
    """A positive whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def entities(facts: Facts) -> Iterator[Facts]:
    """What a Databricks endpoint serves; an old workspace says `served_models`."""
    config = table(facts, "config")
    served = config.get("served_entities") or config.get("served_models")
    yield from (each for each in (served if isinstance(served, list) else ()) if isinstance(each, dict))


def profile(facts: Facts) -> tuple[float | None, float | None, float | None]:
    """Published quality, speed (tokens/s) and cost of the first entity that has any of them."""
    for entity in entities(facts):
        scores = table(table(entity, "foundation_model"), "ai_gateway_model_profile")
        found = tuple(_score(scores.get(key)) for key in ("quality", "speed", "cost"))
        if any(each is not None for each in found):
            return found[0], found[1], found[2]
    return None, None, None


def _score(value: Any) -> float | None:
    return None if isinstance(value, str) else number(value)


def price(facts: Facts) -> float | None:
    """Dollars per million tokens, three in for one out; None where neither is told."""
    rates = table(facts, "pricing")
    if "prompt" in rates or "completion" in rates:  # OpenRouter: dollars per token, -1 for "it depends"
        return _blend(rates.get("prompt"), rates.get("completion"), 1e6)
    if rates:  # Together: dollars per million
        return _blend(rates.get("input"), rates.get("output"), 1.0)
    for entity in entities(facts):
        model = table(entity, "foundation_model")
        if model.get("price_unit") == "DBUs per 1M tokens":
            return _blend(model.get("input_price"), model.get("price"), DOLLARS_PER_DBU)
    return None


def _blend(taken: Any, given: Any, factor: float) -> float | None:
    prices = [number(taken), number(given)]
    known = [each for each in prices if each is not None and each >= 0]
    if not known:
        return None
    if len(known) == 1:
        return round(known[0] * factor, 6)
    return round((known[0] * INPUT_SHARE + known[1] * (1 - INPUT_SHARE)) * factor, 6)


def window(facts: Facts) -> int | None:
    """Tokens of context: as served if told, else as the model was made for."""
    holders = (facts, table(facts, "top_provider"), table(facts, "details"), table(facts, "meta"))
    for holder in holders:
        found = next((tokens for key in WINDOW_KEYS if (tokens := count(holder.get(key)))), None)
        if found:
            return found
    return count(table(facts, "meta").get("n_ctx_train")) or _of_architecture(facts, ".context_length")


def dimensions(facts: Facts) -> int | None:
    """The length of an embedding."""
    held = (
        facts.get("dimensions"),
        table(facts, "details").get("embedding_length"),
        table(facts, "meta").get("n_embd"),
    )
    return next((found for value in held if (found := count(value))), None) or _of_architecture(
        facts, ".embedding_length"
    )


def _of_architecture(facts: Facts, ending: str) -> int | None:
    """`llama.context_length` and the like, as GGUF files name them."""
    found = (count(value) for key, value in table(facts, "model_info").items() if str(key).endswith(ending))
    return next((each for each in found if each), None)


def parameters(facts: Facts) -> float | None:
    """A parameter count: as a number, or as Ollama writes it (`8.2B`, `567M`, `8x7B`)."""
    exact = (
        count(facts.get("parameter_count"))
        or count(table(facts, "model_info").get("general.parameter_count"))
        or count(table(facts, "meta").get("n_params"))
    )
    return exact or _size(table(facts, "details").get("parameter_size") or facts.get("parameter_size"))


def _size(text: Any) -> float | None:
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    return float(found[1]) * float(found[2] or 1) * _UNITS[found[3].lower()] if found else None


def tags(facts: Facts) -> Mapping[str, str]:
    """Tags of a Databricks endpoint, `[{key, value}]`."""
    listed = facts.get("tags")
    pairs = (each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, dict))
    return {str(pair.get("key")): value for pair in pairs if isinstance(value := pair.get("value"), str)}


def title(facts: Facts) -> str | None:
    """A name for people that somebody gave: by tag, by the maker, by the listing, by the external model."""
    given = tags(facts)
    shown = [given.get(key) for key in ("display_name", "displayName", "name")]
    for entity in entities(facts):
        shown.append(table(entity, "foundation_model").get("display_name"))
        shown.append(table(entity, "external_model").get("name"))
    shown.append(facts.get("display_name"))
    return next((text.strip() for text in shown if isinstance(text, str) and text.strip()), None)


def surfaces(facts: Facts) -> Sequence[str]:
    """API types of a Databricks endpoint or model service (`mlflow/v1/chat/completions`)."""
    models = (table(entity, "foundation_model") for entity in entities(facts))
    return [
        *strings(facts, "supported_api_types"),
        *(kind for model in models for kind in strings(model, "api_types")),
    ]


def words_of(facts: Facts, *keys: str) -> Sequence[str] | None:
    """The list under the first key that holds one; None where no key does: nothing was said."""
    for key in keys:
        if isinstance(facts.get(key), list):
            return strings(facts, key)
    return None
