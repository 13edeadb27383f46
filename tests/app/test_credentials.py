"""Whose keys go where: a caller's reach no backend, unless one is configured for them, and then no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from config.load import parse
from config.problems import ConfigErrors
from providers.passthrough import PassthroughProvider
from providers.profiles import BY_NAME
from tests.app.conftest import Serve, Served
from tests.app.keyed import entry, key_of, signed, written
from tests.backends.gateway import config_text
from tests.backends.loopback import Reply
from tests.backends.replies import chat_completion, json_reply, response_items, response_object
from tests.backends.scripted import ScriptedBackend

OURS = "sk-gateway-canary-key-0001"
THEIRS = "sk-caller-canary-key-0002"
CONFIGURED = "sk-config-canary-key-0003"
MESSAGES = [{"role": "user", "content": "hi"}]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("/v1/chat/completions", {"messages": MESSAGES}),
    ("/v1/chat/completions", {"messages": MESSAGES, "stream": True}),
    ("/v1/responses", {"input": "hi", "store": False}),
    ("/v1/embeddings", {"input": "hi"}),
]
SENT = {
    "openai-organization": "org-canary",
    "openai-project": "proj-canary",
    "cookie": "session=canary",
    "proxy-authorization": "Basic canary",
    "x-forwarded-for": "10.9.8.7",
    "x-client-secret": "canary",
    "api-key": "canary",
    "x-goog-api-key": "canary",
    "originator": "canary",
    "user-agent": "canary/1",
    "x-dragoman-effort": "high",
}


@pytest.fixture
def other() -> Iterator[ScriptedBackend]:
    with ScriptedBackend() as backend:
        yield backend


def passing(scripted: ScriptedBackend, **more: Any) -> dict[str, Any]:
    url = f"{scripted.origin}/v1"
    return {
        "name": "theirs",
        "kind": "openai",
        "base_url": url,
        "models": ["m"],
        "api_key_from": "client",
        **more,
    }


def ordinary(backend: ScriptedBackend, **more: Any) -> dict[str, Any]:
    given = {"name": "ours", "kind": "openai", "base_url": f"{backend.origin}/v1", "models": ["m"]}
    return {**given, "api_key": CONFIGURED, **more}


def both(serve: Serve, scripted: ScriptedBackend, other: ScriptedBackend, **more: Any) -> Served:
    return serve(
        fresh=True,
        providers=[passing(scripted, wire="chat"), ordinary(other, wire="chat")],
        fallbacks={"theirs/m": ["ours/m"], "ours/m": ["theirs/m"]},
        server={"api_keys": [OURS], "retry_budget_s": 0},
        store={"kind": "memory"},
        **more,
    )


TWO = {"x-api-key": OURS, "authorization": f"Bearer {THEIRS}"}


@pytest.mark.parametrize(("path", "body"), CALLS)
def test_nothing_of_a_callers_headers_reaches_a_backend(
    serve: Serve, scripted: ScriptedBackend, path: str, body: dict[str, Any]
) -> None:
    served = serve(providers=[ordinary(scripted, wire="chat")], server={"api_keys": [OURS]})
    with served.client(headers={**SENT, "authorization": f"Bearer {OURS}", "x-api-key": THEIRS}) as client:
        assert client.post(path, json={"model": "ours/m", **body}).status_code == 200
    (asked,) = scripted.requests
    assert set(asked.headers) <= {"host", "content-type", "content-length", "authorization", "accept"} | {
        *("accept-encoding", "user-agent")
    }
    assert asked.headers["authorization"] == f"Bearer {CONFIGURED}"
    assert not any("canary" in text for name, text in asked.headers.items() if name != "authorization")


@pytest.mark.parametrize(("path", "body"), CALLS)
@pytest.mark.parametrize(
    "sent", [TWO, {"authorization": f"Bearer {OURS}", "x-api-key": THEIRS}], ids=["usual", "other way round"]
)
def test_a_callers_key_goes_where_it_is_configured(
    serve: Serve, scripted: ScriptedBackend, path: str, body: dict[str, Any], sent: dict[str, str]
) -> None:
    served = serve(providers=[passing(scripted, wire="chat")], server={"api_keys": [OURS]})
    with served.client(headers=sent) as client:
        assert client.post(path, json={"model": "theirs/m", **body}).status_code == 200
    assert [each.headers["authorization"] for each in scripted.requests] == [f"Bearer {THEIRS}"]


def test_it_is_sent_as_the_backend_wants_it(serve: Serve, scripted: ScriptedBackend) -> None:
    azure = {"auth": {"kind": "header", "header": "api-key", "prefix": ""}}
    served = serve(providers=[passing(scripted, wire="chat", overrides=azure)])
    with served.client(headers={"authorization": f"Bearer {THEIRS}"}) as client:
        assert (
            client.post("/v1/chat/completions", json={"model": "m", "messages": MESSAGES}).status_code == 200
        )
    assert scripted.requests[0].headers["api-key"] == THEIRS
    assert "authorization" not in scripted.requests[0].headers


def test_the_gateways_own_key_never_goes_on(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    keys = written(tmp_path / "keys.toml", entry("a"), entry("b", disabled=True))
    server = {"api_keys": [OURS], "keys_file": keys}
    served = serve(fresh=True, providers=[passing(scripted)], server=server)
    ask = {"model": "theirs/m", "messages": MESSAGES}
    for headers in (
        {"x-api-key": OURS},
        signed("a"),
        {**signed("a"), "x-api-key": OURS},
    ):
        with served.client(headers=headers) as client:
            refused = client.post("/v1/chat/completions", json=ask)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "missing_provider_key")
    assert not scripted.requests
    with served.client(headers={"x-api-key": key_of("a"), "authorization": f"Bearer {THEIRS}"}) as client:
        assert client.post("/v1/chat/completions", json=ask).status_code == 200


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_a_fallback_is_asked_with_its_own_key(
    serve: Serve, scripted: ScriptedBackend, other: ScriptedBackend, first: str
) -> None:
    served = both(serve, scripted, other)
    failing = scripted if first == "theirs" else other
    failing.play(json_reply({"error": {"message": "broken"}}, 503))
    with served.client(headers=TWO) as client:
        answer = client.post("/v1/chat/completions", json={"model": f"{first}/m", "messages": MESSAGES})
    assert answer.status_code == 200
    assert {each.headers["authorization"] for each in scripted.requests} == {f"Bearer {THEIRS}"}
    assert {each.headers["authorization"] for each in other.requests} == {f"Bearer {CONFIGURED}"}


@pytest.mark.parametrize("model", ["theirs/m", "ours/m"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_key_follows_a_redirect(
    serve: Serve, scripted: ScriptedBackend, other: ScriptedBackend, model: str, status: int
) -> None:
    with ScriptedBackend() as elsewhere:
        served = serve(
            fresh=True,
            providers=[passing(scripted, wire="chat"), ordinary(other, wire="chat")],
            server={"api_keys": [OURS]},
        )
        for backend in (scripted, other):
            backend.play(Reply(status, {"location": f"{elsewhere.origin}/v1/chat/completions"}))
        with served.client(headers=TWO) as client:
            told = client.post("/v1/chat/completions", json={"model": model, "messages": MESSAGES})
        assert told.status_code == 502
        assert not elsewhere.server.requests
        assert elsewhere.origin not in told.text


def test_two_callers_are_never_mixed_up(serve: Serve, scripted: ScriptedBackend) -> None:
    """On one connection to the backend, one after the other, and by those who send none."""
    served = serve(fresh=True, providers=[passing(scripted, wire="chat")])
    ask = {"model": "theirs/m", "messages": MESSAGES}
    with served.client() as client:
        codes = [
            client.post("/v1/chat/completions", json=ask, headers=headers).status_code
            for headers in (
                {"authorization": "Bearer sk-first-1"},
                {},
                {"x-api-key": "sk-second-2"},
                {"authorization": "Basic c2stdGhpcmQ="},
                {"authorization": b"Bearer \xff\xfe"},
            )
        ]
    assert codes == [200, 401, 200, 401, 401]
    assert [each.headers["authorization"] for each in scripted.requests] == [
        "Bearer sk-first-1",
        "Bearer sk-second-2",
    ]


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("stream", [False, True])
def test_a_refused_key_is_the_callers_matter_and_is_not_repeated(
    serve: Serve, scripted: ScriptedBackend, status: int, stream: bool
) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {THEIRS}.", "code": THEIRS, "param": THEIRS}}
    scripted.play(json_reply(said, status))
    served = serve(providers=[passing(scripted, wire="chat")], server={"api_keys": [OURS]})
    with served.client(headers=TWO) as client:
        told = client.post(
            "/v1/chat/completions", json={"model": "m", "messages": MESSAGES, "stream": stream}
        )
    assert told.status_code == status
    if status == 401:
        assert told.json()["error"]["code"] == "invalid_provider_key"
    assert THEIRS not in told.text + str(told.headers) + served.log_file.getvalue().decode()
    assert not served.gateway.health.resting("theirs/m"), "another caller's key may be good"


def test_it_is_nowhere_afterwards(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[passing(scripted, wire="chat")])
    with served.client(headers={"authorization": f"Bearer {THEIRS}"}) as client:
        client.post("/v1/chat/completions", json={"model": "m", "messages": MESSAGES})
    (provider,) = served.gateway.catalog.providers
    assert isinstance(provider, PassthroughProvider)
    assert THEIRS not in repr(vars(provider)) + repr(provider) + repr(provider.signed_by(THEIRS))


SAID_BESIDE = {
    "set-cookie": "session=canary",
    "server": "canary/1",
    "authorization": f"Bearer {CONFIGURED}",
    "www-authenticate": f"Bearer {CONFIGURED}",
    "x-internal-host": "10.0.0.1",
    "x-api-key": CONFIGURED,
    "location": "http://10.0.0.1/canary",
    "access-control-allow-origin": "*",
    "x-dragoman-model": "canary",
    "x-request-id": "canary",
    "via": "canary",
    "strict-transport-security": "canary",
    "openai-organization": "canary",
    "x-ratelimit-remaining-requests": "7",
    "openai-processing-ms": "12",
}
MAY_PASS = {
    *("date", "content-type", "content-length", "transfer-encoding", "connection"),
    *("cache-control", "x-accel-buffering"),
    *("x-request-id", "x-dragoman-model", "x-dragoman-dropped", "x-dragoman-repairs"),
    *("x-ratelimit-remaining-requests", "openai-processing-ms"),
}


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(("path", "body"), CALLS[:3])
def test_headers_of_a_backend_that_pass(
    serve: Serve, scripted: ScriptedBackend, path: str, body: dict[str, Any], wire: str
) -> None:
    """An allow-list: whatever else it says of itself or of us stays here."""
    served = serve(providers=[ordinary(scripted, wire=wire)])
    if not body.get("stream"):
        whole = chat_completion("x") if wire == "chat" else response_object(response_items("hi"))
        scripted.play(json_reply(whole, headers=SAID_BESIDE))
    with served.client() as client:
        answers = [client.post(path, json={"model": "ours/m", **body})]
        scripted.play(json_reply({"error": {"message": "no"}}, 400, headers=SAID_BESIDE))
        answers.append(client.post(path, json={"model": "ours/m", **body}))
    assert [each.status_code for each in answers] == [200, 400]
    for answer in answers:
        shown = str(answer.headers)
        assert "canary" not in shown
        assert "10.0.0.1" not in shown
        assert set(answer.headers) <= MAY_PASS


@pytest.mark.parametrize(
    ("provider", "said"),
    [
        (
            {"kind": "openai", "base_url": "https://h/v1", "api_key": "sk-canary"},
            "providers[0].api_key: has no meaning",
        ),
        ({"kind": "ollama", "base_url": "http://h"}, 'providers[0].api_key_from: must be "config"'),
        ({"kind": "databricks", "base_url": "https://h"}, 'providers[0].api_key_from: must be "config"'),
        (
            {"kind": "openai", "base_url": "https://h/v1", "api_key_from": "clint"},
            "should be 'config' or 'client'",
        ),
    ],
)
def test_what_is_configured_wrongly(provider: dict[str, Any], said: str) -> None:
    given = {"name": "p", "api_key_from": "client", **provider}
    with pytest.raises(ConfigErrors) as caught:
        parse(config_text([given]), {}, BY_NAME)
    assert said in str(caught.value)
    assert "sk-canary" not in str(caught.value)
    orjson.dumps(caught.value.lines())
