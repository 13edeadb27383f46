"""The model list, as OpenAI's clients and Codex read it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
import pytest

from app.routing import models
from app.routing.models import ModelList
from providers.base import ModelInfo
from providers.directory import Entry
from providers.ranking import make_card
from tests.app.conftest import Serve
from tests.backends.scripted import ScriptedBackend
from translators.errors import ProxyError
from translators.profile import Profile, ReasoningRules

SHELLS = {"default", "local", "shell_command", "unified_exec", "disabled"}
REQUIRED: Mapping[str, type] = {
    "slug": str,
    "display_name": str,
    "supported_reasoning_levels": list,
    "shell_type": str,
    "visibility": str,
    "supported_in_api": bool,
    "priority": int,
    "support_verbosity": bool,
    "truncation_policy": dict,
    "experimental_supported_tools": list,
    "base_instructions": str,
}
"""What Codex CLI 0.171 refuses an entry without, and the whole catalogue with it."""


@dataclass
class Account:
    rules: Profile = field(default_factory=Profile)
    doors: tuple[str, ...] = ("chat",)
    name: str = "p"
    kind: str = "openai"
    unavailable: str | None = None

    def surfaces(self, model: str, client: str) -> Any:
        return self.doors

    def profile(self, model: str, surface: str, overrides: Any = None) -> Profile:
        return self.rules


@dataclass(frozen=True)
class Aim:
    provider: Account
    model: str = "m"


class Shelf:
    """A catalogue with these entries."""

    def __init__(self, *entries: Entry) -> None:
        self.list = list(entries)

    def entries(self) -> list[Entry]:
        return self.list

    def entry(self, name: str) -> Entry | None:
        return next((entry for entry in self.list if entry.id == name), None)

    def resolve(self, name: str) -> Any:
        raise ProxyError("not_found", "no such model", "model", "model_not_found")


def entry(name: str = "p/m", account: Account | None = None, **facts: Any) -> Entry:
    card = make_card(ModelInfo("m", "p", facts), "openai")
    return Entry(name, Aim(account or Account()), facts, card)  # type: ignore[arg-type]


def rendered(*entries: Entry) -> Any:
    return orjson.loads(asyncio.run(ModelList(Shelf(*entries)).listing()).body)  # type: ignore[arg-type]


def test_one_object_for_both_kinds_of_client() -> None:
    body = rendered(entry("p/m", created=1700000000.0), entry("m"))
    assert body["object"] == "list"
    assert body["data"] == [
        {"id": "p/m", "object": "model", "created": 1700000000, "owned_by": "p"},
        {"id": "m", "object": "model", "created": models.CREATED, "owned_by": "p"},
    ]
    assert [model["slug"] for model in body["models"]] == ["p/m", "m"]
    assert [model["priority"] for model in body["models"]] == [1, 2]


def test_codex_gets_every_field_it_insists_on() -> None:
    (model,) = rendered(entry())["models"]
    assert all(type(model[key]) is kind for key, kind in REQUIRED.items())
    assert model["shell_type"] in SHELLS
    assert model["visibility"] in {"list", "hide", "none"}
    assert model["truncation_policy"]["mode"] in {"bytes", "tokens"}
    assert model["apply_patch_tool_type"] == "freeform"
    assert model["base_instructions"]


@pytest.mark.parametrize(
    ("rules", "levels", "default"),
    [
        (ReasoningRules(), ["low", "medium", "high"], "medium"),
        (ReasoningRules(efforts=("high", "low", "default")), ["low", "high"], "high"),
        (ReasoningRules(efforts=()), [], None),
        (ReasoningRules(ask="none"), [], None),
    ],
)
def test_reasoning_levels_are_those_of_the_profile(
    rules: ReasoningRules, levels: list[str], default: str | None
) -> None:
    (model,) = rendered(entry(account=Account(Profile(reasoning=rules))))["models"]
    assert [level["effort"] for level in model["supported_reasoning_levels"]] == levels
    assert all(level["description"] for level in model["supported_reasoning_levels"])
    assert model.get("default_reasoning_level") == default


def test_a_model_without_a_surface_has_no_levels() -> None:
    (model,) = rendered(entry(account=Account(doors=())))["models"]
    assert model["supported_reasoning_levels"] == []


@pytest.mark.parametrize(
    ("facts", "window"),
    [
        ({}, models.CONTEXT_WINDOW),
        ({"context_window": 200_000}, 200_000),
        ({"max_model_len": 32768}, 32768),
        ({"context_length": "many", "n_ctx": True, "max_context_length": 0}, models.CONTEXT_WINDOW),
    ],
)
def test_context_window(facts: dict[str, Any], window: int) -> None:
    assert rendered(entry(**facts))["models"][0]["context_window"] == window


def test_a_long_list_stays_below_codexs_limit() -> None:
    shelf = [entry(f"provider/model-with-a-long-name-{n:05}") for n in range(5000)]
    listing = asyncio.run(ModelList(Shelf(*shelf)).listing())  # type: ignore[arg-type]
    body = orjson.loads(listing.body)
    assert len(listing.body) < 1 << 20
    assert len(body["data"]) == 5000
    assert 100 < len(body["models"]) < 5000


async def test_it_is_rendered_again_only_when_the_catalogue_has_changed() -> None:
    shelf = Shelf(entry("a/b"))
    listed = ModelList(shelf)  # type: ignore[arg-type]
    first = await listed.listing()
    assert await listed.listing() is first
    shelf.list = [entry("a/b"), entry("a/c")]
    assert (await listed.listing()).etag != first.etag
    shelf.list = [entry("a/b")]
    assert (await listed.listing()).etag == first.etag


# --- over HTTP -------------------------------------------------------------------------


@pytest.fixture
def client(serve: Serve, scripted: ScriptedBackend) -> Any:
    account = {"name": "p", "kind": "openai", "base_url": f"{scripted.origin}/v1", "models": ["m", "deep/er"]}
    with serve(providers=[account], aliases={"gpt-5": "p/m"}).client() as client:
        yield client


def test_every_name_that_resolves_is_listed(client: httpx.Client) -> None:
    for path in ("/v1/models", "/v1/models?client_version=0.171.0"):
        body = client.get(path).json()
        names = [model["id"] for model in body["data"]]
        assert set(names) == {"p/m", "p/deep/er", "m", "deep/er", "gpt-5"}
        assert len(names) == len(set(names))
        assert [model["slug"] for model in body["models"]] == names


def test_an_unchanged_list_is_304(client: httpx.Client) -> None:
    first = client.get("/v1/models")
    etag = first.headers["etag"]
    for given in (etag, f'"other", {etag}', f"W/{etag}"):
        reply = client.get("/v1/models", headers={"if-none-match": given})
        assert (reply.status_code, reply.content, reply.headers["etag"]) == (304, b"", etag)
    assert client.get("/v1/models", headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("p/m", "p/m"),
        ("p/deep/er", "p/deep/er"),
        ("m", "p/m"),
        ("gpt-5", "p/m"),
        ("p/unlisted", "p/unlisted"),
    ],
)
def test_one_model(client: httpx.Client, name: str, target: str) -> None:
    reply = client.get(f"/v1/models/{name}")
    assert (reply.status_code, reply.json()["id"], reply.json()["object"]) == (200, name, "model")
    assert reply.headers["x-dragoman-model"] == target
    assert reply.json().items() <= client.get(f"/models/{name}").json().items()


def test_an_unknown_model_is_404(client: httpx.Client) -> None:
    reply = client.get("/v1/models/nowhere/m")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "model_not_found")
