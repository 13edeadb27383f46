"""Databricks: paths by name, and what its listing says of an endpoint."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from providers.base import ModelInfo
from providers.databricks import DatabricksProvider, narrowed, offered_surfaces
from providers.http import HttpClient
from providers.openai import Settings
from providers.profiles import resolve
from providers.quirks import Quirks

from .raw_server import raw_server, read_request, reply

PATHS = [
    ("system.ai.claude-opus-4-8", "chat", "/ai-gateway/mlflow/v1/chat/completions"),
    ("system.ai.claude-opus-4-8", "open_responses", "/ai-gateway/mlflow/v1/responses"),
    ("system.ai.gte-large-en", "embeddings", "/ai-gateway/mlflow/v1/embeddings"),
    ("system.ai.gpt-5-5", "responses", "/ai-gateway/openai/v1/responses"),
    ("system.ai.gpt-5-3-codex", "responses", "/ai-gateway/codex/v1/responses"),
    ("main.team.my-service", "chat", "/ai-gateway/mlflow/v1/chat/completions"),
    ("databricks-gpt-5-5", "responses", "/serving-endpoints/responses"),
    ("databricks-gpt-oss-120b", "open_responses", "/serving-endpoints/open-responses"),
    ("databricks-gpt-oss-120b", "responses", "/serving-endpoints/responses"),
    ("databricks-claude-opus-4-8", "chat", "/serving-endpoints/chat/completions"),
]


@pytest.mark.parametrize(("model", "surface", "path"), PATHS)
def test_a_name_with_dots_is_a_service_of_the_gateway(model: str, surface: Any, path: str) -> None:
    profile = resolve(kind="databricks", host="h", model=model, surface=surface)
    assert getattr(profile.wire, surface) == path


def test_a_service_has_the_quirks_of_its_model() -> None:
    here, there = (
        resolve(kind="databricks", host="h", model=model, surface="chat")
        for model in ("databricks-claude-opus-4-8", "system.ai.claude-opus-4-8")
    )
    assert (here.request, here.reasoning, here.tools) == (there.request, there.reasoning, there.tools)


def entry(name: str, *api_types: str, **more: Any) -> dict[str, Any]:
    entity = {"name": name, "foundation_model": {"name": f"system.ai.{name}", "api_types": [*api_types]}}
    return {"name": name, "config": {"served_entities": [entity]}, **more}


CHAT, RESPONSES, OPEN = "mlflow/v1/chat/completions", "openai/v1/responses", "mlflow/v1/responses"
ENTRIES = [
    entry("databricks-claude-x", CHAT, "anthropic/v1/messages", task="llm/v1/chat", capabilities={"a": True}),
    entry("my-model", CHAT, RESPONSES, task="llm/v1/chat"),
    entry("native-only", RESPONSES, task="llm/v1/chat"),
    entry("databricks-gpt-5-1", CHAT, task="llm/v1/chat"),
    entry("advertised", CHAT, OPEN),
    {"name": "an-agent", "task": "agent/v1/responses", "config": {}},
    {"name": "a-chat-agent", "task": "agent/v2/chat"},
    {"name": "old", "config": {"served_models": [{"external_model": {"task": "llm/v1/chat"}}]}},
    {"name": "vectors", "task": "llm/v1/embeddings", "config": {"served_entities": None}},
    {"name": "prompts", "task": "llm/v1/completions"},
    {"name": "custom", "config": {"served_entities": ["odd", {"foundation_model": {"api_types": "x"}}]}},
]

ORDERS = [
    # model, Responses client, Chat client
    ("databricks-claude-x", ("open_responses", "chat"), ("chat",)),
    ("my-model", ("responses", "open_responses", "chat"), ("chat",)),
    ("native-only", ("responses", "open_responses"), ("responses",)),
    ("databricks-gpt-5-1", ("chat",), ("chat",)),
    ("advertised", ("open_responses", "chat"), ("chat",)),
    ("an-agent", ("responses", "open_responses"), ("responses",)),
    ("a-chat-agent", ("open_responses", "chat"), ("chat",)),
    ("old", ("open_responses", "chat"), ("chat",)),
    ("custom", ("open_responses", "chat"), ("chat",)),
    ("never-listed", ("open_responses", "chat"), ("chat",)),
]


async def _listed(entries: list[Any], **settings: Any) -> tuple[DatabricksProvider, list[ModelInfo]]:
    async def script(reader: Any, writer: Any) -> None:
        await read_request(reader)
        writer.write(reply(orjson.dumps({"endpoints": entries})))

    async with raw_server(script) as origin:
        given = Settings(name="d", base_url=origin, kind="databricks", **settings)
        made = DatabricksProvider(given, HttpClient())
        made.surfaces("native-only", "chat")  # asked before anything is known
        models = [*await made.models()]
    await made.aclose()
    return made, models


async def test_api_types_decide_which_surfaces_are_tried() -> None:
    made, models = await _listed(ENTRIES)
    for model, responses, chat in ORDERS:
        assert (model, tuple(made.surfaces(model, "responses"))) == (model, responses)
        assert (model, tuple(made.surfaces(model, "chat"))) == (model, chat)
    facts = {info.id: info.facts for info in models}
    assert "prompts" not in facts
    assert facts["databricks-claude-x"]["capabilities"] == {"a": True}
    assert facts["old"]["task"] == "llm/v1/chat"
    assert {"vectors", "custom", "an-agent"} <= facts.keys()


async def test_a_configured_wire_wins_over_the_listing() -> None:
    made, _ = await _listed(ENTRIES, wire="chat")
    assert made.surfaces("my-model", "responses") == ("chat",)


def test_nothing_left_means_nothing_narrowed() -> None:
    assert narrowed(("responses",), frozenset({"chat"}), "responses") == ("responses",)
    assert offered_surfaces({"config": 3}) == frozenset()


def test_a_refusal_holds_for_every_provider_of_the_host() -> None:
    quirks, client = Quirks(), HttpClient()
    first, second, other = (
        DatabricksProvider(Settings(name=name, base_url=url, kind="databricks"), client, quirks)
        for name, url in (("a", "https://h"), ("b", "https://h/"), ("c", "https://elsewhere"))
    )
    assert first.learn_refusal("m", "open_responses", 404, b"")
    assert second.surfaces("m", "responses") == ["chat"]
    assert tuple(other.surfaces("m", "responses")) == ("open_responses", "chat")
