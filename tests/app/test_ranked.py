"""`GET /models`, `GET /v1/models` and `GET /models/{id}` over a workspace whose listing is scripted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from providers.profiles import adapter
from tests.app.conftest import Serve, Served
from tests.app.scored import EMBEDDINGS, NINE, THIRDS, Workspace, listing
from tests.backends.scripted import ScriptedBackend
from translators.profile import Profile
from translators.rejections import Rejection


@pytest.fixture(scope="module")
def _workspace() -> Iterator[Workspace]:
    found = Workspace()
    with found.server:
        yield found


@pytest.fixture
def workspace(_workspace: Workspace) -> Workspace:
    _workspace.entries = listing()
    return _workspace


def config_of(workspace: Workspace) -> dict[str, Any]:
    account = {"name": "dbx", "kind": "databricks", "base_url": workspace.server.origin}
    return {
        "providers": [
            {**account, "overrides": {"request": {"drop": ["seed"]}}},
            # A profile that no file has: this account cannot be signed in to.
            {"name": "gone", "kind": "databricks", "config_profile": "none", "models": ["claude-opus-9"]},
        ],
        "aliases": {"best": "dbx/databricks-claude-opus-4-8", "team/coder": "best"},
        "groups": {"pair": [{"model": f"dbx/{NINE[0][0]}", "weight": 3}, {"model": f"dbx/{NINE[2][0]}"}]},
        "fallbacks": {"best": ["chat-fast"]},
    }


@pytest.fixture
def served(serve: Serve, workspace: Workspace) -> Served:
    """Shared by the tests that change nothing of it."""
    found = serve(**config_of(workspace))
    until(lambda: not found.gateway.catalog.loading)
    assert len(found.gateway.catalog.listed("dbx")) == 12
    return found


@pytest.fixture
def fresh(serve: Serve, workspace: Workspace) -> Served:
    found = serve(fresh=True, **config_of(workspace))
    until(lambda: not found.gateway.catalog.loading)
    assert len(found.gateway.catalog.listed("dbx")) == 12
    return found


def until(true: Any) -> None:
    deadline = time.monotonic() + 10
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert true()


def get(served: Served, path: str, **query: Any) -> Any:
    with served.client() as client:
        reply = client.get(f"{path}?{urlencode({key.rstrip('_'): each for key, each in query.items()})}")
    assert reply.status_code == 200, reply.text
    return reply.json()


def ids(served: Served, **query: Any) -> list[str]:
    found = get(served, "/models", **query)
    assert found["object"] == "list"
    assert [each["slug"] for each in found["models"]] == [each["id"] for each in found["data"]]
    assert [each["rank"] for each in found["data"]] == list(range(1, len(found["data"]) + 1))
    return [each["id"].removeprefix("dbx/databricks-") for each in found["data"]]


def short(models: Any) -> list[str]:
    return [name.removeprefix("databricks-") for name, _ in models]


# --- the ranked list -------------------------------------------------------------------


def test_all_chat_models_by_class_and_quality(served: Served) -> None:
    assert ids(served) == [*short(NINE)]
    data = get(served, "/models")["data"]
    assert [each["class"] for each in data] == [cls for cls in THIRDS for _ in range(3)]


@pytest.mark.parametrize(
    "slug", ["chat-thinking", "chat-balanced", "chat-fast", "thinking", "balanced", "fast"]
)
def test_a_class_is_a_ceiling(served: Served, slug: str) -> None:
    at = list(THIRDS).index(slug if slug.startswith("chat-") else f"chat-{slug}")
    assert ids(served, class_=slug) == short(NINE[at * 3 :])


def test_embeddings_are_there_when_asked_for(served: Served) -> None:
    assert ids(served, class_="embedding") == [name.removeprefix("databricks-") for name in EMBEDDINGS]
    assert ids(served, class_="embedding", search="bge") == ["bge-large-en"]
    assert ids(served, search="gte") == []


SEARCHES = [
    ("opus", "claude-opus-4-8"),
    ("claude sonnet", "claude-sonnet-4-6"),
    ("claude 4 8", "claude-opus-4-8"),
    ("sonet", "claude-sonnet-4-6"),
    ("claud sonet", "claude-sonnet-4-6"),
    ("codex", "gpt-5-3-codex"),
    ("llama 70b", "meta-llama-3-3-70b-instruct"),
    ("gemini pro", "gemini-3-1-pro"),
    ("gemni", "gemini-3-1-pro"),
    ("gpt 5.5", "gpt-5-5"),
    *[(name, None) for name in ("gpt 5 6", "claude opus 5", "gpt-4o", "o3", "claude-sonnet-4-5", "zzz", "a")],
    *[(name, None) for name in ("databricks", "anthropic", "x" * 3000, "\x00", "%", "ü")],
]


@pytest.mark.parametrize(("search", "first"), SEARCHES, ids=lambda each: str(each)[:20])
def test_a_search(served: Served, search: str, first: str | None) -> None:
    assert ids(served, search=search)[:1] == ([first] if first else [])


def test_a_search_within_a_class_goes_no_higher(served: Served) -> None:
    assert ids(served, search="claude", class_="balanced") == ["claude-sonnet-4-6", "claude-haiku-4-5"]
    assert ids(served, search="opus", class_="fast") == []


def test_filters(served: Served) -> None:
    assert "gpt-5-4-mini" not in ids(served, tools="true")
    assert len(ids(served, tools="true")) == 8
    assert ids(served, tools="false") == ["gpt-5-4-mini"]
    assert ids(served, vision="1") == ids(served, reasoning="TRUE") == ["claude-opus-4-8"]
    assert len(ids(served, reasoning="false")) == 8
    assert ids(served, limit=2, class_="balanced") == short(NINE[3:5])
    assert ids(served, search="sonet", threshold=0.1) == []
    assert ids(served, search="sonet", threshold="1", limit=50) == ["claude-sonnet-4-6"]
    assert ids(served, search="", class_="", limit="", threshold="", tools="", nonsense="1") == short(NINE)


BAD = [
    *[("limit", value) for value in ("0", "51", "x", "1.5", "-1", "²", "9" * 40, " 3")],
    *[("threshold", value) for value in ("-0.1", "1.1", "nan", "inf", "x")],
    *[("class", value) for value in ("medium", "junk", "chat-", "embeddings-x")],
    *[(key, value) for key in ("tools", "vision", "reasoning") for value in ("maybe", "2")],
]


@pytest.mark.parametrize(("key", "value"), BAD)
def test_bad_values_are_named(served: Served, key: str, value: str) -> None:
    with served.client() as client:
        reply = client.get(f"/models?{urlencode({key: value})}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, key)
    assert f"`{key}` must be" in reply.json()["error"]["message"]


def test_an_entry_says_why_it_stands_where_it_stands(served: Served) -> None:
    best = get(served, "/models", search="opus")["data"][0]
    assert best["breakdown"] == {"quality": 1.0, "total": 1.0}
    assert best["score"] == 0.001
    assert best["reasons"] == [
        "all words of the search fit (score 0.001, 0 is exact)",
        "class chat-thinking: quality 90 is in the top third of the catalogue",
        "quality 90, cost 9, speed 50, version 4.8",
    ]
    assert (best["object"], best["owned_by"], best["display_name"]) == ("model", "dbx", "Claude Opus 4.8")
    assert (best["tools"], best["vision"], best["cost"], best["version"]) == (True, True, 9.0, "4.8")


def test_what_calls_have_shown_is_shown_and_counts(fresh: Served) -> None:
    gateway = fresh.gateway
    first, second = (f"dbx/{name}" for name, _ in NINE[:2])

    def measured(times: int, fails: bool) -> None:
        for _ in range(times):
            if fails:
                gateway.health.failed(first)
            else:
                gateway.health.succeeded(first, 1.5, 100, 1.0)
        gateway.catalog._ranked_at = -1000.0  # as if the last look were long ago

    def shown() -> str:
        with fresh.client() as client:
            return client.get("/v1/models").headers["etag"]

    etag = shown()
    measured(10, fails=False)
    get(fresh, "/models")
    until(lambda: "latency" in get(fresh, "/models")["data"][0]["breakdown"])
    best = get(fresh, "/models")["data"][0]
    assert best["id"] == first
    assert best["breakdown"]["latency"] < 0
    assert "measured: 0% of 10 calls failed, first token after 1.5 s, 100 tokens/s" in best["reasons"]
    assert shown() == etag  # nothing in it has changed
    measured(60, fails=True)
    get(fresh, "/models")
    until(lambda: get(fresh, "/models")["data"][0]["id"] == second)
    assert get(fresh, "/v1/models")["data"][0]["id"] == second
    assert shown() != etag
    # A failing model loses its rank, not its class.
    fallen = next(each for each in get(fresh, "/models")["data"] if each["id"] == first)
    assert (fallen["rank"], fallen["class"]) == (3, "chat-thinking")
    assert fallen["breakdown"]["errors"] < -0.3


def test_a_list_that_cannot_be_renewed_is_served_and_said_to_be_old(
    fresh: Served, workspace: Workspace
) -> None:
    with fresh.client() as client:
        assert "x-dragoman-stale" not in client.get("/models").headers
        workspace.entries = None
        assert client.get("/v1/models?refresh=1").headers["x-dragoman-stale"] == "dbx"
        reply = client.get("/models")
    assert reply.headers["x-dragoman-stale"] == "dbx"
    assert len(reply.json()["data"]) == 9


# --- OpenAI's list and Codex's catalogue ------------------------------------------------


def test_the_list_has_the_same_order_and_every_name(served: Served) -> None:
    found = get(served, "/v1/models")
    names = [each["id"] for each in found["data"]]
    assert len(names) == len(set(names))
    assert names == [each["slug"] for each in found["models"]]
    assert [each for each in names if each in set(ranked := [f"dbx/{name}" for name, _ in NINE])] == ranked
    bare = [name for name, _ in NINE]
    assert [each for each in names if each in bare] == bare
    given = ["best", "team/coder", "pair", *THIRDS, "embedding"]
    assert names[-len(given) :] == given
    assert {f"dbx/{name}" for name in (*EMBEDDINGS, "churn-model")} <= set(names)
    assert not any("gone" in name or "opus-9" in name for name in names)  # cannot be asked
    for name in names:
        assert get(served, f"/v1/models/{name}")["id"] == name


def test_codex_is_told_facts(served: Served) -> None:
    entries = {each["slug"]: each for each in get(served, "/v1/models", client_version="0.171.0")["models"]}
    opus, haiku = entries["best"], entries["dbx/databricks-claude-haiku-4-5"]
    assert opus["apply_patch_tool_type"] == "freeform"
    assert opus["input_modalities"] == ["text", "image"]
    assert {each["effort"] for each in opus["supported_reasoning_levels"]} >= {"low", "medium", "high"}
    assert opus["default_reasoning_level"] in {each["effort"] for each in opus["supported_reasoning_levels"]}
    assert isinstance(opus["context_window"], int)
    assert haiku["display_name"] == "Claude Haiku 4.5 (dbx)"
    priorities = [each["priority"] for each in entries.values()]
    assert priorities == sorted(set(priorities))


def test_the_list_is_the_same_while_nothing_changes(fresh: Served, workspace: Workspace) -> None:
    with fresh.client() as client:
        first = client.get("/v1/models?refresh=1")
        second = client.get("/v1/models?refresh=1")
        assert (first.headers["etag"], first.content) == (second.headers["etag"], second.content)
        known = {"if-none-match": first.headers["etag"]}
        assert client.get("/v1/models", headers=known).status_code == 304
        workspace.entries = listing()[:-1]
        assert client.get("/v1/models?refresh=1", headers=known).status_code == 200


# --- one model, explained --------------------------------------------------------------


def profile_of(served: Served, name: str, surface: str) -> dict[str, Any]:
    found: dict[str, Any] = get(served, f"/models/{name}")["surfaces"][surface]["profile"]
    return found


CLAUDE, GPT = "dbx/databricks-claude-opus-4-8", "dbx/databricks-gpt-5-5"
LAYERS = [
    # A model's row leaves out more, and the configuration replaces the list.
    (CLAUDE, "open_responses", "request.drop", "configuration", ["seed"]),
    (GPT, "responses", "request.drop", "configuration", ["seed"]),
    (CLAUDE, "chat", "wire.chat", "row databricks-claude", "/serving-endpoints/chat/completions"),
    (CLAUDE, "open_responses", "reasoning.ask", "row databricks-claude on open_responses", "openai"),
    (CLAUDE, "open_responses", "request.min_output_tokens", "wire open_responses", 16),
    (CLAUDE, "chat", "answer.finish_map.eos", "base", "stop"),
    (GPT, "responses", "tools.unknown", "models gpt-5.4 and newer: computer", []),
    (CLAUDE, "chat", "auth.prefix", "default", "Bearer "),
]


@pytest.mark.parametrize(("model", "surface", "key", "layer", "value"), LAYERS)
def test_every_key_is_told_with_its_layer(
    served: Served, model: str, surface: str, key: str, layer: str, value: Any
) -> None:
    assert profile_of(served, model, surface)[key] == {"value": value, "from": layer}


def test_every_key_of_a_profile_is_there_as_it_is_used(served: Served) -> None:
    account = served.gateway.catalog.providers[0]
    model = "databricks-claude-opus-4-8"
    told = get(served, f"/models/dbx/{model}")["surfaces"]
    assert list(told) == list(dict.fromkeys([*account.surfaces(model, "responses"), "chat"]))
    for surface, about in told.items():
        used = adapter().dump_python(account.profile(model, surface), mode="json")
        assert used.pop("name")
        assert {key: each["value"] for key, each in about["profile"].items()} == dict(leaves(used))
        assert {key.partition(".")[0] for key in about["profile"]} == set(used)
    assert set(used) == {name for name in Profile.__dataclass_fields__ if name != "name"}


def leaves(table: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def test_what_the_listing_says_is_told_as_its_word(served: Served) -> None:
    found = profile_of(served, "dbx/databricks-gpt-5-4-mini", "responses")
    assert found["tools.supported"] == {"value": False, "from": "listing"}
    found = profile_of(served, "dbx/databricks-claude-opus-4-8", "chat")
    assert found["tools.supported"]["from"] != "listing"


def test_what_was_learned_is_told(fresh: Served) -> None:
    account = fresh.gateway.catalog.providers[0]
    account.learn_rejections("databricks-claude-opus-4-8", "chat", [Rejection(("top_k",))])
    told = get(fresh, "/models/best")["surfaces"]
    assert told["chat"]["learned"] == ["top_k"]
    assert told["open_responses"]["learned"] == []


def test_how_a_name_is_read(served: Served) -> None:
    best = get(served, "/models/best")
    assert (best["id"], best["source"], best["order"]) == ("best", "alias", "fixed")
    assert [bool(each["fallback"]) for each in best["choices"]] == [False, True, True, True]
    assert get(served, "/models/team/coder")["choices"][0]["id"] == "dbx/databricks-claude-opus-4-8"
    pair = get(served, "/models/pair")
    assert pair["source"] == "group"
    assert [each["weight"] for each in pair["choices"]] == [3, 1]
    fast = get(served, "/models/chat-fast")
    assert (fast["source"], fast["order"]) == ("class", "by what suits the request")
    assert fast["choices"][0]["class"] == "chat-fast"
    assert get(served, "/models/opus")["source"] == "search"
    unlisted = get(served, "/models/dbx/some/thing/new")
    assert unlisted["choices"] == [
        {"id": "dbx/some/thing/new", "weight": None, "fallback": best["choices"][0]["fallback"]}
    ]
    embedding = get(served, "/models/databricks-gte-large-en")
    assert list(embedding["surfaces"]) == ["embeddings"]
    assert get(served, "/models/gone/x")["surfaces"] == {}


def test_an_unknown_name_is_a_404_with_names_that_are_like_it(served: Served) -> None:
    with served.client() as client:
        for path in ("/models/claude-opus-4-9", "/v1/models/claude-opus-4-9"):
            error = client.get(path).json()["error"]
            assert (error["code"], error["param"]) == ("model_not_found", "model")
            near = error["message"].partition("did you mean ")[2].rstrip("?").split(", ")
            assert set(near[:2]) == {"databricks-claude-opus-4-8", "databricks-claude-opus-4-5"}
            assert len(near) <= 5
        assert client.get("/models/zzzzzz").status_code == 404


def test_no_configured_key_is_explained(serve: Serve, scripted: ScriptedBackend) -> None:
    key = "sk-8d2f61c09b7e4a35"
    provider = {"name": "p", "kind": "openai", "base_url": f"{scripted.origin}/v1", "models": ["m"]}
    served = serve(fresh=True, providers=[{**provider, "api_key": key, "extra_body": {"token": key}}])
    with served.client() as client:
        text = client.get("/models/p/m").text + client.get("/models").text + client.get("/v1/models").text
    assert key not in text
