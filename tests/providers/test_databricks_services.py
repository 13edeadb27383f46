"""What a workspace lists: endpoints, and the AI gateway's services of the same models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from providers import databricks_services
from providers.base import ModelInfo
from providers.databricks import DatabricksProvider
from providers.databricks_tokens import ServicePrincipal
from providers.http import HttpClient
from providers.openai import Settings
from providers.signing import Signer
from tests.backends import replies
from tests.backends.loopback import Reply
from tests.backends.workspace import CLIENT_ID, CLIENT_SECRET, Workspace
from translators.errors import ProxyError

SCORES = {"quality": 46, "speed": 43.7, "cost": 10.0}


def endpoint(name: str, model: str, **more: Any) -> dict[str, Any]:
    """An entry as a workspace lists it."""
    foundation = {
        "name": model,
        "display_name": name.title(),
        "api_types": ["mlflow/v1/chat/completions", "anthropic/v1/messages"],
        "ai_gateway_model_profile": SCORES,
    }
    entity = {"name": f"{name}-entity", "entity_name": model, "foundation_model": foundation}
    return {
        "name": name,
        "task": "llm/v1/chat",
        "state": {"ready": "READY", "config_update": "NOT_UPDATING"},
        "capabilities": {"function_calling": True, "image_input": False},
        "config": {"served_entities": [entity]},
        "endpoint_type": "FOUNDATION_MODEL_API",
        **more,
    }


CLAUDE = endpoint("databricks-claude-opus-4-8", "system.ai.claude-opus-4-8")
WAITING = endpoint(
    "mine", "system.ai.llama", state={"ready": "NOT_READY"}, tags=[{"key": "name", "value": "M"}]
)


def page(*services: Any, more: str = "") -> Reply:
    return replies.json_reply({"model_services": list(services), "next_page_token": more})


def service(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": f"model-services/{name}",
        "config": {"routing": {"destinations": [{"name": "d"}]}},
        **more,
    }


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace() as made:
        made.endpoints = [CLAUDE, WAITING]
        yield made


@pytest.fixture
async def provider(workspace: Workspace) -> AsyncIterator[DatabricksProvider]:
    principal = ServicePrincipal("dbx", workspace.origin, CLIENT_ID, CLIENT_SECRET)
    settings = Settings(name="dbx", base_url=workspace.origin, kind="databricks")
    made = DatabricksProvider(settings, HttpClient(), signer=Signer("dbx", principal.sign))
    yield made
    await made.aclose()


def by_id(models: Any) -> dict[str, ModelInfo]:
    found = {info.id: info for info in models}
    assert len(found) == len(models)
    return found


async def test_endpoints_keep_what_was_listed_of_them(
    workspace: Workspace, provider: DatabricksProvider
) -> None:
    models = await provider.models()
    assert [(info.id, info.provider) for info in models] == [(CLAUDE["name"], "dbx"), ("mine", "dbx")]
    assert [info.facts for info in models] == [CLAUDE, WAITING]


async def test_services_follow_the_endpoints_with_what_is_known_of_their_model(
    workspace: Workspace, provider: DatabricksProvider
) -> None:
    workspace.services[""] = page(service("system.ai.claude-opus-4-8"), service("system.ai.grok-9"))
    found = by_id(await provider.models())
    assert list(found) == [CLAUDE["name"], "mine", "system.ai.claude-opus-4-8", "system.ai.grok-9"]
    facts = found["system.ai.claude-opus-4-8"].facts
    assert facts["endpoint"] == CLAUDE["name"]
    assert (facts["task"], facts["capabilities"]) == (CLAUDE["task"], CLAUDE["capabilities"])
    (entity,) = facts["config"]["served_entities"]
    assert entity["foundation_model"]["ai_gateway_model_profile"] == SCORES
    assert "api_types" not in entity["foundation_model"]  # the endpoint's, which is on other paths
    assert facts["config"]["routing"] == {"destinations": [{"name": "d"}]}
    alone = found["system.ai.grok-9"].facts
    assert "endpoint" not in alone
    assert alone["config"]["served_entities"][0]["foundation_model"] == {"name": "system.ai.grok-9"}
    assert CLAUDE["config"]["served_entities"][0]["foundation_model"]["api_types"]  # not taken from it


async def test_a_service_tells_the_shapes_it_takes(
    workspace: Workspace, provider: DatabricksProvider
) -> None:
    chat, native = "mlflow/v1/chat/completions", "openai/v1/responses"
    workspace.services[""] = page(
        service("system.ai.gpt-5-1", supported_api_types=[chat]),
        service("system.ai.vectors", supported_api_types=["mlflow/v1/embeddings"]),
        service("system.ai.both", supported_api_types=[native, chat, 7]),
        service("system.ai.odd", supported_api_types="chat"),
    )
    found = by_id(await provider.models())
    tasks = {name: info.facts.get("task") for name, info in found.items() if name.startswith("system")}
    assert tasks == {
        "system.ai.gpt-5-1": "llm/v1/chat",
        "system.ai.vectors": "llm/v1/embeddings",
        "system.ai.both": "llm/v1/chat",
        "system.ai.odd": None,
    }
    assert provider.surfaces("system.ai.gpt-5-1", "responses") == ("chat",)
    assert provider.surfaces("system.ai.both", "responses")[0] == "responses"


async def test_all_pages_are_read_and_no_name_is_listed_twice(
    workspace: Workspace, provider: DatabricksProvider
) -> None:
    workspace.services[""] = page(
        service("system.ai.a"), service("mine"), "odd", {"name": 3}, {}, more="p 2&"
    )
    workspace.services["p 2&"] = page(service("system.ai.b"), service("system.ai.a"))
    assert list(by_id(await provider.models()))[2:] == ["system.ai.a", "system.ai.b"]
    first, second = workspace.asked("model-services")
    assert first.path.partition("?")[2] == "parent=schemas/system.ai&page_size=100&view=FULL"
    assert "page_token=" in second.path


async def test_a_list_without_an_end_is_left(workspace: Workspace, provider: DatabricksProvider) -> None:
    workspace.services[""] = workspace.services["x"] = page(service("system.ai.a"), more="x")
    assert list(by_id(await provider.models()))[2:] == ["system.ai.a"]
    assert len(workspace.asked("model-services")) == databricks_services.MAX_PAGES


NONE = [
    (None, 1),
    (replies.json_reply({"error_code": "PERMISSION_DENIED"}, 403), 1),
    (replies.json_reply({"error_code": "INVALID_PARAMETER_VALUE"}, 400), 1),
    (replies.json_reply({}), 1),
    (replies.json_reply({"model_services": None, "next_page_token": 7}), 1),
    (replies.json_reply([1]), 1),
    (Reply(200, {"content-type": "text/html"}, [b"<html>"]), 1),
    (replies.json_reply({}, 500), 1),
    (replies.json_reply({}, 429), 1),
    (replies.json_reply({}, 504), 4),
    (replies.json_reply({}, 499), 4),
    (Reply(200, {"content-length": "9"}, [b"{"], "cut"), 1),
    (Reply(200, {"content-length": "9"}, [], "hang"), 1),
]


@pytest.mark.parametrize(("reply", "tries"), NONE, ids=range(len(NONE)))
async def test_without_services_there_are_the_endpoints(
    workspace: Workspace,
    provider: DatabricksProvider,
    reply: Reply | None,
    tries: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(databricks_services, "PAUSE_S", 0.01)
    monkeypatch.setattr(databricks_services, "SERVICES_S", 0.5)
    if reply is not None:
        workspace.services[""] = reply
    assert list(by_id(await provider.models())) == [CLAUDE["name"], "mine"]
    assert len(workspace.asked("model-services")) == tries


async def test_a_list_that_breaks_leaves_the_last_good_one(
    workspace: Workspace, provider: DatabricksProvider
) -> None:
    workspace.services[""] = page(service("system.ai.a"))
    await provider.models()
    workspace.services[""] = replies.json_reply({}, 500)
    assert "system.ai.a" in by_id(await provider.models())
    workspace.services[""] = replies.json_reply({}, 404)
    assert "system.ai.a" not in by_id(await provider.models())


async def test_a_list_of_another_kind_has_no_services(workspace: Workspace) -> None:
    workspace.valid = {"k"}
    overrides = {"wire": {"models": {"path": "/v1/models", "kind": "openai"}}}
    workspace.lists["/v1/models"] = {"data": [{"id": "m"}]}
    made = DatabricksProvider(
        Settings("dbx", workspace.origin, "databricks", "k", overrides=overrides), HttpClient()
    )
    assert [info.id for info in await made.models()] == ["m"]
    none = {"wire": {"models": {"path": None}}}
    made = DatabricksProvider(
        Settings("dbx", workspace.origin, "databricks", "k", overrides=none), HttpClient()
    )
    assert await made.models() == ()
    assert not workspace.asked("model-services")


async def test_an_expired_token_is_replaced_for_the_list(
    workspace: Workspace, provider: DatabricksProvider
) -> None:
    await provider.models()
    workspace.expire()
    assert len(await provider.models()) == 2
    assert len(workspace.issued) == 2


async def test_a_list_that_no_token_may_read_is_an_error(
    workspace: Workspace, provider: DatabricksProvider
) -> None:
    await provider.models()
    workspace.expire()
    workspace.token_reply = replies.json_reply({"error": "invalid_client"}, 401)
    with pytest.raises(ProxyError, match=r"could not be read \(status 401\)") as caught:
        await provider.models()
    assert caught.value.kind == "upstream_auth"
