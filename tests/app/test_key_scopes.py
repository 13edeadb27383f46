"""A key may use its models and classes only, whatever name it asks for, and learns of no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import Serve, Served, provider
from tests.app.keyed import entry, signed, written
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

MODELS = ["claude-opus-4-5", "claude-haiku-4-5", "text-embedding-3-small", "secret-model"]
SAY = {"messages": [{"role": "user", "content": "hi"}]}
ENTRIES = (
    entry("all"),
    entry("haiku", models=["p/claude-haiku*"]),
    entry("bare", models=["claude-haiku-4-5", "text-embedding-*"]),
    entry("fast", classes=["chat-fast"]),
    entry("both", models=["q/*"], classes=["chat-fast"]),
    entry("nothing", models=["r/*"]),
)


@pytest.fixture(scope="module")
def keys_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.toml"


@pytest.fixture
def gateway(serve: Serve, scripted: ScriptedBackend, keys_path: Path) -> Served:
    base = {"kind": "openai", "base_url": f"{scripted.origin}/v1", "wire": "chat", "models": MODELS}
    return serve(
        server={"keys_file": written(keys_path, *ENTRIES), "api_keys": ["operator-key-1"]},
        providers=[{"name": "p", **base}, {"name": "q", **base}],
        aliases={"mine": "p/claude-haiku-4-5", "theirs": "p/secret-model", "twice": "theirs"},
        groups={"pool": [{"model": "p/secret-model"}, {"model": "p/claude-haiku-4-5"}]},
        fallbacks={"p/claude-haiku-4-5": ["p/secret-model"]},
        store={"kind": "memory"},
    )


def ask(gateway: Served, name: str, model: str, **more: Any) -> Any:
    headers = {**signed(name), **more.pop("headers", {})}
    with gateway.client(headers=headers) as client:
        return client.post("/v1/chat/completions", json={"model": model, **SAY, **more})


@pytest.mark.parametrize(
    ("key", "model", "answered_by"),
    [
        ("all", "p/secret-model", "p/secret-model"),
        ("all", "theirs", "p/secret-model"),
        ("haiku", "p/claude-haiku-4-5", "p/claude-haiku-4-5"),
        ("haiku", "claude-haiku-4-5", "p/claude-haiku-4-5"),
        ("haiku", "mine", "p/claude-haiku-4-5"),
        ("haiku", "pool", "p/claude-haiku-4-5"),
        ("haiku", "chat-fast", "p/claude-haiku-4-5"),
        ("bare", "q/claude-haiku-4-5", "q/claude-haiku-4-5"),
        ("fast", "q/claude-haiku-4-5", "q/claude-haiku-4-5"),
        ("both", "claude-haiku-4-5", "q/claude-haiku-4-5"),
    ],
)
def test_what_a_key_may_use(gateway: Served, key: str, model: str, answered_by: str) -> None:
    answer = ask(gateway, key, model)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-dragoman-model"] == answered_by


@pytest.mark.parametrize(
    ("key", "model"),
    [
        ("haiku", "p/secret-model"),
        ("haiku", "secret-model"),
        ("haiku", "p/unlisted"),
        ("haiku", "theirs"),
        ("haiku", "twice"),
        ("haiku", "q/claude-haiku-4-5"),
        ("nothing", "chat-thinking"),
        ("haiku", "opus"),
        ("fast", "claude-opus-4-5"),
        ("fast", "p/unlisted"),
        ("both", "p/claude-haiku-4-5"),
        ("both", "q/claude-opus-4-5"),
        ("nothing", "mine"),
    ],
)
def test_what_it_may_not_use_is_told_like_what_there_is_not(
    gateway: Served, scripted: ScriptedBackend, key: str, model: str
) -> None:
    refused, unknown = ask(gateway, key, model), ask(gateway, key, "no-such-model-anywhere")
    assert (refused.status_code, unknown.status_code) == (404, 404)
    ours, theirs = refused.json()["error"], unknown.json()["error"]
    assert ours["code"] == theirs["code"] == "model_not_found"
    assert ours["message"] == theirs["message"].replace("no-such-model-anywhere", model)
    shown = refused.text.replace(model, "") + str(refused.headers)
    assert not any(name in shown for name in (*MODELS, "p/", "q/"))
    assert not scripted.requests


def test_a_fallback_is_no_way_around(gateway: Served, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply({"error": {"message": "broken"}}, 500), model="claude-haiku-4-5")
    assert ask(gateway, "haiku", "p/claude-haiku-4-5").status_code >= 500
    assert {body["model"] for body in scripted.bodies()} == {"claude-haiku-4-5"}
    assert ask(gateway, "all", "p/claude-haiku-4-5").headers["x-dragoman-model"] == "p/secret-model"


@pytest.mark.parametrize("field", ["models", "fallbacks", "Model", "MODELS", "fallbac\u212as"])
def test_a_body_cannot_name_further_models(gateway: Served, scripted: ScriptedBackend, field: str) -> None:
    refused = ask(gateway, "haiku", "mine", **{field: ["secret-model"]})
    assert (refused.status_code, refused.json()["error"]["param"]) == (403, field)
    layer = {"x-dragoman-overrides": json.dumps({"request": {"defaults": {field: ["secret-model"]}}})}
    assert ask(gateway, "haiku", "mine", headers=layer).status_code == 403
    layer = {"x-dragoman-overrides": json.dumps({"request": {"rename": {"own": field}}})}
    assert ask(gateway, "haiku", "mine", headers=layer, own=["secret-model"]).status_code == 403
    assert not scripted.requests
    assert ask(gateway, "all", "mine", **{field: ["secret-model"]}).status_code == 200


@pytest.mark.parametrize(
    "model",
    [
        b'"model":"secret-model","model":"claude-haiku-4-5"',
        b'"mod\\u0065l":"secret-model","model":"claude-haiku-4-5"',
        b'"model":"secret-model","mod\\u0065l":"claude-haiku-4-5"',
    ],
)
def test_a_model_is_named_once(gateway: Served, scripted: ScriptedBackend, model: bytes) -> None:
    """Whichever of two a backend would take."""
    with gateway.client(headers=signed("bare")) as client:
        body = b"{" + model + b',"messages":[{"role":"user","content":"hi"}]}'
        assert client.post("/v1/chat/completions", content=body).status_code == 200
    assert b"secret-model" not in scripted.requests[0].body
    assert scripted.requests[0].body.count(b"claude-haiku-4-5") == 1


@pytest.mark.parametrize(
    ("key", "ids"),
    [
        (
            "haiku",
            {
                "p/claude-haiku-4-5",
                "claude-haiku-4-5",
                "mine",
                "pool",
                "chat-fast",
                "chat-balanced",
                "chat-thinking",
            },
        ),
        ("both", {"q/claude-haiku-4-5", "claude-haiku-4-5", "chat-fast", "chat-balanced", "chat-thinking"}),
        ("nothing", set[str]()),
    ],
)
def test_lists_hold_what_the_key_may_use(gateway: Served, key: str, ids: set[str]) -> None:
    with gateway.client(headers=signed(key)) as client:
        listed = client.get("/v1/models")
        names = {each["id"] for each in listed.json()["data"]}
        assert names <= ids
        assert {name for name in ids if not name.startswith("chat-")} <= names
        assert {each["slug"] for each in listed.json()["models"]} == names
        assert client.get("/v1/models", headers={"if-none-match": listed.headers["etag"]}).status_code == 304
        for name in names:
            assert client.get(f"/v1/models/{name}").json()["id"] == name
            assert ask(gateway, key, name).status_code == 200
        ranked = client.get("/models", params={"limit": 50}).json()
        assert {each["id"] for each in ranked["data"]} == {name for name in ids if "/" in name}
        assert "secret" not in listed.text + str(ranked)


def test_one_model_is_told_only_to_those_who_may_use_it(gateway: Served) -> None:
    with gateway.client(headers=signed("haiku")) as client:
        for path in ("/v1/models/p/secret-model", "/models/theirs", "/v1/models/nothing-there"):
            told = client.get(path)
            assert (told.status_code, told.json()["error"]["code"]) == (404, "model_not_found")
            assert "did you mean" not in told.text
        explained = client.get("/models/pool").json()
        assert [each["id"] for each in explained["choices"]] == ["p/claude-haiku-4-5"]
    with gateway.client(headers=signed("all")) as client:
        assert len(client.get("/models/pool").json()["choices"]) == 2


def test_what_tells_of_all_models_is_not_for_a_key_of_some(gateway: Served) -> None:
    for path in ("/metrics", "/events"):
        with gateway.client(headers=signed("haiku")) as client:
            refused = client.get(path)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "key_not_allowed")
    with gateway.client(headers=signed("all")) as client:
        assert client.get("/metrics").status_code == 200
    with gateway.client(headers={"x-api-key": "operator-key-1"}) as client:
        assert client.get("/metrics").status_code == 200


def test_embeddings_and_responses_are_bound_too(gateway: Served) -> None:
    with gateway.client(headers=signed("bare")) as client:
        body = {"model": "text-embedding-3-small", "input": "hi"}
        assert client.post("/v1/embeddings", json=body).status_code == 200
        assert client.post("/v1/responses", json={"model": "secret-model", "input": "hi"}).status_code == 404
        assert (
            client.post("/v1/responses", json={"model": "claude-haiku-4-5", "input": "hi"}).status_code == 200
        )
    with gateway.client(headers=signed("haiku")) as client:
        assert client.post("/v1/embeddings", json=body).status_code == 404


def test_responses_belong_to_their_key(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    entries = [entry("a", owner="team"), entry("b", owner="team"), entry("c"), entry("team")]
    gateway = serve(
        fresh=True,
        server={"keys_file": written(path, *entries), "api_keys": ["operator-key-1"]},
        providers=[provider(scripted)],
        store={"kind": "memory"},
    )
    with gateway.client() as client:
        body = {"model": "p/m", "input": "hi"}
        made = client.post("/v1/responses", json=body, headers=signed("a")).json()
        url = f"/v1/responses/{made['id']}"
        found = {name: client.get(url, headers=signed(name)).status_code for name in "abc"}
        assert found == {"a": 200, "b": 200, "c": 404}
        assert client.get(url, headers={"x-api-key": "operator-key-1"}).status_code == 404
        assert client.get(url, headers=signed("team")).status_code == 200, "an owner is one whoever names it"
    assert {line["key"] for line in gateway.log()} >= {"a", "b", "c", None}
