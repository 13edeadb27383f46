"""What each kind of listing tells of a model, and what its silence means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.base import ModelInfo
from providers.ranking import make_card

from .fleet import databricks, endpoint, named


def with_model(**model: Any) -> dict[str, Any]:
    """A Databricks entry whose foundation model has these keys."""
    return {"name": "m", "task": "llm/v1/chat", "config": {"served_entities": [{"foundation_model": model}]}}


def test_a_databricks_endpoint() -> None:
    entry = endpoint("databricks-claude-opus-4-8", scores=(46.0, 43.7, 10.0))
    entry["capabilities"] = {"function_calling": True, "image_input": True, "openai_reasoning": False}
    card = databricks(entry)
    assert (card.target, card.provider, card.model) == ("dbx/" + entry["name"], "dbx", entry["name"])
    assert (card.kind, card.task, card.family, card.version) == ("databricks", "chat", "claude", (4, 8))
    assert (card.quality, card.speed, card.cost) == (46.0, 43.7, 10.0)
    assert (card.tools, card.vision, card.reasoning) == (True, True, None)
    assert (card.ready, card.loaded, card.local) == (True, None, False)
    assert card.display_name == "Claude Opus 4.8"


PROFILES: list[tuple[list[Any], tuple[float | None, float | None, float | None]]] = [
    ([{"quality": 5, "speed": 4.5, "cost": 0}], (5, 4.5, 0)),
    ([{}, {"cost": 2}], (None, None, 2)),
    ([{"quality": float("nan"), "speed": float("inf")}, {"quality": 3}], (3, None, None)),
    ([{"quality": "5", "speed": True}], (None, None, None)),
    ([{"quality": 1}, {"quality": 2, "cost": 3}], (1, None, None)),
    (["odd"], (None, None, None)),
    ([], (None, None, None)),
]


@pytest.mark.parametrize(("profiles", "expected"), PROFILES)
@pytest.mark.parametrize("key", ["served_entities", "served_models"])
def test_scores_are_those_of_the_first_entity_with_any(profiles: list[Any], expected: Any, key: str) -> None:
    entities = [{"foundation_model": {"ai_gateway_model_profile": each}} for each in profiles]
    card = databricks({"name": "m", "task": "llm/v1/chat", "config": {key: [7, *entities]}})
    assert (card.quality, card.speed, card.cost) == expected


COSTS: list[tuple[dict[str, Any], float | None]] = [
    (with_model(price="357.143", input_price="71.429", price_unit="DBUs per 1M tokens"), 10.0),
    (with_model(price="214.286", input_price="42.857", price_unit="DBUs per 1M tokens"), 6.0),
    (with_model(price="1.0", price_unit="DBUs per 1M tokens"), 0.07),
    (with_model(price="1.0", price_unit="DBUs per hour"), None),
    ({"pricing": {"prompt": "0.000003", "completion": "0.000015"}}, 6.0),
    ({"pricing": {"prompt": "0", "completion": "0"}}, 0.0),
    ({"pricing": {"prompt": "-1", "completion": "-1"}}, None),
    ({"pricing": {"input": 0.88, "output": 0.88, "hourly": 0}}, 0.88),
    ({"pricing": {"input": "odd"}}, None),
    ({"pricing": "free"}, None),
]


@pytest.mark.parametrize(("facts", "expected"), COSTS)
def test_a_price_list_is_a_cost_three_tokens_in_for_one_out(
    facts: dict[str, Any], expected: float | None
) -> None:
    cost = named("m", **{key: value for key, value in facts.items() if key != "name"}).cost
    assert cost == (None if expected is None else pytest.approx(expected, abs=0.01))


def test_a_published_cost_goes_before_a_price() -> None:
    facts = with_model(
        ai_gateway_model_profile={"cost": 0.0}, price="9", input_price="9", price_unit="DBUs per 1M tokens"
    )
    assert databricks(facts).cost == 0.0


TASKS: list[tuple[str, str, dict[str, Any], str]] = [
    ("databricks", "m", {"task": "llm/v1/chat"}, "chat"),
    ("databricks", "m", {"task": "llm/v1/embeddings"}, "embedding"),
    ("databricks", "m", {"task": "llm/v1/completions"}, "other"),
    ("databricks", "gpt-agent", {"task": "agent/v1/responses"}, "other"),
    ("databricks", "gpt-churn", {"state": {"ready": "READY"}}, "other"),
    ("databricks", "claude-opus-4-8", {}, "chat"),
    (
        "databricks",
        "m",
        {"config": {"served_entities": [{"external_model": {"task": "llm/v1/embeddings"}}]}},
        "embedding",
    ),
    ("databricks", "m", {"supported_api_types": ["mlflow/v1/chat/completions"]}, "chat"),
    ("databricks", "m", {"supported_api_types": ["mlflow/v1/embeddings"]}, "embedding"),
    (
        "databricks",
        "m",
        {"config": {"served_entities": [{"foundation_model": {"api_types": ["anthropic/v1/messages"]}}]}},
        "chat",
    ),
    ("openai", "gpt-5.5", {}, "chat"),
    ("openai", "gpt-image-2", {}, "other"),
    ("openai", "text-embedding-3-small", {}, "embedding"),
    ("openai", "whisper-1", {}, "other"),
    ("openai", "m", {"type": "chat"}, "chat"),
    ("openai", "bge", {"type": "llm"}, "chat"),
    ("openai", "m", {"type": "embeddings"}, "embedding"),
    ("openai", "m", {"type": "image"}, "other"),
    ("openai", "m", {"type": 7, "task": None}, "chat"),
    ("openai", "m", {"architecture": {"output_modalities": ["text"]}}, "chat"),
    ("openai", "m", {"architecture": {"output_modalities": ["image"]}}, "other"),
    ("openai", "m", {"architecture": {"output_modalities": ["embeddings"]}}, "embedding"),
    ("openai", "llama-guard-4", {"architecture": {"output_modalities": ["text"]}}, "other"),
    ("ollama", "m", {"capabilities": ["embedding"]}, "embedding"),
    ("ollama", "embed-chat", {"capabilities": ["completion", "tools"]}, "chat"),
    ("onnx", "m", {"task": "embedding"}, "embedding"),
]


@pytest.mark.parametrize(("kind", "name", "facts", "task"), TASKS)
def test_what_a_model_is_for(kind: str, name: str, facts: dict[str, Any], task: str) -> None:
    assert make_card(ModelInfo(name, "p", facts), kind).task == task


ABILITIES: list[tuple[dict[str, Any], tuple[bool | None, bool | None, bool | None]]] = [
    ({}, (None, None, None)),
    ({"capabilities": {}}, (None, None, None)),
    ({"capabilities": {"function_calling": False, "image_input": False}}, (False, False, None)),
    # Databricks says so of Claude models that do reason
    ({"capabilities": {"openai_reasoning": False, "anthropic_reasoning": False}}, (None, None, None)),
    ({"capabilities": {"openai_reasoning": True}}, (None, None, True)),
    (with_model(capabilities={"function_calling": False}), (False, None, None)),
    ({"capabilities": {"function_calling": True, "vision": True}}, (True, True, None)),  # Mistral
    ({"capabilities": {"function_calling": "yes"}}, (None, None, None)),
    ({"capabilities": ["completion", "tools", "thinking"]}, (True, False, True)),  # Ollama
    ({"capabilities": ["completion", "vision"]}, (False, True, False)),
    ({"capabilities": ["tool_use"], "type": "vlm"}, (True, True, None)),  # LM Studio
    ({"supported_parameters": ["tools", "reasoning"]}, (True, None, True)),  # OpenRouter
    ({"supported_parameters": ["stop"]}, (False, None, False)),
    ({"architecture": {"input_modalities": ["text", "image"]}}, (None, True, None)),
    ({"architecture": {"input_modalities": ["text"]}}, (None, False, None)),
]


@pytest.mark.parametrize(("facts", "expected"), ABILITIES)
def test_what_a_model_can_do_is_yes_no_or_unknown(
    facts: dict[str, Any], expected: tuple[bool | None, bool | None, bool | None]
) -> None:
    card = make_card(ModelInfo("m", "p", facts), "openai")
    assert (card.tools, card.vision, card.reasoning) == expected


WINDOWS: list[tuple[dict[str, Any], int | None]] = [
    ({"max_model_len": 2048}, 2048),
    ({"context_length": 200_000, "top_provider": {"context_length": 100_000}}, 200_000),
    ({"top_provider": {"context_length": 100_000}}, 100_000),
    ({"details": {"context_length": 4096}, "model_info": {"llama.context_length": 131_072}}, 4096),
    ({"model_info": {"general.architecture": "llama", "llama.context_length": 131_072}}, 131_072),
    ({"meta": {"n_ctx_train": 8192}}, 8192),
    ({"meta": {"n_ctx": 4096, "n_ctx_train": 8192}}, 4096),
    ({"context_window": True}, None),
    ({"context_window": -1, "max_model_len": "8192"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("facts", "expected"), WINDOWS)
def test_the_context_window(facts: dict[str, Any], expected: int | None) -> None:
    assert named("m", **facts).context_window == expected


SIZES: list[tuple[str, dict[str, Any], float | None]] = [
    ("m", {"details": {"parameter_size": "8.2B"}}, 8.2e9),
    ("m", {"details": {"parameter_size": "137M"}}, 137e6),
    ("m", {"details": {"parameter_size": "8x7B"}}, 56e9),
    ("m", {"details": {"parameter_size": "1.04T"}}, 1.04e12),
    ("m", {"parameter_size": "3K"}, 3e3),
    ("m:70b", {"details": {"parameter_size": "unknown"}}, 70e9),
    ("m:8b", {"model_info": {"general.parameter_count": 8_030_261_312}}, 8_030_261_312),
    ("m", {"meta": {"n_params": 134_515_008}}, 134_515_008),
    ("m", {"parameter_count": 700_000}, 700_000),
    ("qwen3:30b-a3b", {}, 30e9),
    ("m", {"details": {"parameter_size": 8}}, None),
    ("m", {}, None),
]


@pytest.mark.parametrize(("name", "facts", "expected"), SIZES)
def test_the_parameter_count(name: str, facts: dict[str, Any], expected: float | None) -> None:
    count = named(name, kind="ollama", **facts).parameter_count
    assert count == (None if expected is None else pytest.approx(expected))


DIMENSIONS: list[tuple[str, dict[str, Any], int | None]] = [
    ("bge-m3", {"dimensions": 1024}, 1024),
    ("bge-m3", {"details": {"embedding_length": 1024}}, 1024),
    ("bge-m3", {"model_info": {"bert.embedding_length": 1024}}, 1024),
    ("bge-m3", {"meta": {"n_embd": 384}}, 384),
    ("bge-m3", {}, None),
    ("llama3", {"details": {"embedding_length": 4096}}, None),  # the width of a chat model is no dimension
]


@pytest.mark.parametrize(("name", "facts", "expected"), DIMENSIONS)
def test_the_dimensions_of_embeddings(name: str, facts: dict[str, Any], expected: int | None) -> None:
    assert named(name, **facts).dimensions == expected


TITLES: list[tuple[dict[str, Any], str]] = [
    ({"tags": [{"key": "displayName", "value": " Ours "}, {"key": "name", "value": "no"}]}, "Ours"),
    ({"tags": [{"key": "display_name", "value": " "}, {"key": "name", "value": "Ours"}]}, "Ours"),
    ({"tags": [7, {"key": "name"}, {"key": "name", "value": 1}]}, "Claude Opus 4.8"),
    ({"tags": "odd"}, "Claude Opus 4.8"),
    (with_model(display_name="Claude Opus 4.8 (EU)"), "Claude Opus 4.8 (EU)"),
    ({"config": {"served_entities": [{"external_model": {"name": "gpt-4o "}}]}}, "gpt-4o"),
    ({"display_name": "Opus"}, "Opus"),
    ({}, "Claude Opus 4.8"),
]


@pytest.mark.parametrize(("facts", "expected"), TITLES)
def test_the_name_for_people(facts: dict[str, Any], expected: str) -> None:
    info = ModelInfo("databricks-claude-opus-4-8", "p", facts)
    assert make_card(info, "databricks").display_name == expected


STATES: list[tuple[dict[str, Any], tuple[bool | None, bool | None]]] = [
    ({"state": {"ready": "NOT_READY"}}, (False, None)),
    ({"state": {"ready": 1}}, (None, None)),
    ({"state": "loaded"}, (None, True)),
    ({"state": "not-loaded"}, (None, False)),
    ({"state": "odd"}, (None, None)),
    ({"loaded": True}, (None, True)),
    ({"loaded": False, "state": "loaded"}, (None, False)),
    ({}, (None, None)),
]


@pytest.mark.parametrize(("facts", "expected"), STATES)
def test_ready_and_loaded(facts: dict[str, Any], expected: tuple[bool | None, bool | None]) -> None:
    card = named("m", **facts)
    assert (card.ready, card.loaded) == expected


def test_gpt_oss_is_a_family_of_its_own() -> None:
    families = [named(name).family for name in ("gpt-oss-120b", "gpt-5-5", "databricks-claude-opus", "acme")]
    assert families == ["gpt-oss", "gpt", "claude", None]


def test_aliases_come_with_the_card() -> None:
    assert make_card(ModelInfo("m", "p"), "openai", ["sol"]).aliases == ("sol",)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
KEYS = (
    "config state tags capabilities pricing architecture details meta model_info task type loaded dimensions "
    "context_length supported_parameters top_provider parameter_count parameter_size display_name"
)


@given(
    st.sampled_from(["openai", "databricks", "ollama", "onnx"]),
    st.dictionaries(st.sampled_from(KEYS.split()), json_values),
    st.lists(json_values, max_size=2),
)
def test_a_listing_may_hold_anything(kind: str, facts: dict[str, Any], entities: list[Any]) -> None:
    facts.setdefault("config", {"served_entities": entities})
    card = make_card(ModelInfo("claude-opus-4-8", "p", facts), kind)
    assert card.target == "p/claude-opus-4-8"
    assert card.task in ("chat", "embedding", "other")
