"""Keys of a profile that are read around a request (doors, limits, retries), set alone and seen over HTTP.

The other keys are in `tests/translators/test_every_profile_key.py`, which holds that none is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.app.conftest import Serve, Served
from tests.app.test_recovery import post
from tests.backends.loopback import Reply
from tests.backends.replies import chat_chunk, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend
from translators.profile import merge

Json = dict[str, Any]
CHAT: Json = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}
RESPONSES: Json = {"model": "p/m", "input": "hi"}
TOOLS = [{"type": "function", "function": {"name": "f"}}]
LONG = "word " * 1000
"""5000 characters: 1250 tokens at four each."""


@dataclass(slots=True)
class Seen:
    """What a request led to."""

    status: int
    text: str
    paths: list[str]
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[Json] = field(default_factory=list)


Look = Callable[[Seen], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A key's value, what is asked, and what is seen without the key and with it."""

    value: Any
    look: Look
    without: Any
    with_it: Any
    body: Json = field(default_factory=lambda: CHAT)
    beside: Json = field(default_factory=dict)
    """What else the profile must say."""
    provider: Json = field(default_factory=dict)
    plays: tuple[Reply, ...] = ()
    headers: dict[str, str] = field(default_factory=dict)
    route: str = ""
    """Absent: where a body like that is answered."""


def path(seen: Seen) -> str | None:
    """The last part of the address asked, None when nobody was."""
    return seen.paths[-1].removeprefix("/v1") if seen.paths else None


def status(seen: Seen) -> int:
    return seen.status


def asked(seen: Seen) -> tuple[int, int]:
    return seen.status, len(seen.bodies)


def key_header(name: str) -> Look:
    return lambda seen: seen.headers[-1].get(name)


def said(word: str) -> Look:
    return lambda seen: word in seen.text


BUSY = json_reply({"error": {"message": "busy"}}, 418, {"retry-after": "0"})
REFUSED = json_reply({"error": {"message": "Unknown parameter: 'seed'", "param": "seed"}}, 400)
DONE = json_reply({"id": "c", "object": "chat.completion", "choices": [{"message": {"content": "a"}}]})
COMMENTED = sse_reply([chat_chunk({"content": "a"}), ": a comment", chat_chunk({}, "stop"), "[DONE]"])
CUT = json_reply(
    {"object": "chat.completion", "choices": [{"message": {"content": "a"}, "finish_reason": "length"}]}
)
TRIGGER: Json = {**RESPONSES, "input": [{"role": "user", "content": "hi"}, {"type": "compaction_trigger"}]}
LONG_CHAT = {**CHAT, "messages": [{"role": "user", "content": LONG}]}
EMBED: Json = {"model": "p/m", "input": ["hi"], "encoding_format": "float"}
UPGRADE = {"connection": "upgrade", "upgrade": "websocket"}
NAMED = {"auth": {"kind": "header", "header": "x-key"}}
RESPONSES_TOO = {"wire": {"responses": "/responses"}}

SERVED: dict[str, Case] = {
    "auth.kind": Case("none", key_header("authorization"), "Bearer secret-1", None),
    "auth.header": Case(
        "x-key", key_header("x-key"), None, "Bearer secret-1", beside={"auth": {"kind": "header"}}
    ),
    "auth.prefix": Case("Key ", key_header("x-key"), "Bearer secret-1", "Key secret-1", beside=NAMED),
    "wire.chat": Case("/talk/chat/completions", path, "/chat/completions", "/talk/chat/completions"),
    "wire.responses": Case(
        "/talk/responses",
        path,
        "/responses",
        "/talk/responses",
        body=RESPONSES,
        provider={"wire": "responses"},
    ),
    "wire.open_responses": Case(
        "/open-responses", path, "/chat/completions", "/open-responses", body=RESPONSES
    ),
    "wire.ollama": Case(
        "/talk", path, "/api/chat", "/talk", provider={"kind": "ollama", "profile": "ollama"}
    ),
    "wire.responses_first": Case(
        True, path, "/chat/completions", "/responses", body=RESPONSES, beside=RESPONSES_TOO
    ),
    "wire.responses_only": Case(["m*"], path, "/chat/completions", "/responses", beside=RESPONSES_TOO),
    "wire.embeddings": Case("/embed/embeddings", path, "/embeddings", "/embed/embeddings", body=EMBED),
    "wire.chaining": Case(
        False,
        lambda seen: seen.bodies[-1].get("store"),
        None,
        False,
        body=RESPONSES,
        provider={"wire": "responses"},
    ),
    "wire.websocket": Case(True, said("takes one at its own address"), False, True, headers=UPGRADE),
    "wire.compact": Case(
        "/responses/compact",
        lambda seen: "instructions" in seen.bodies[-1],  # those for a summary
        True,
        False,
        body=TRIGGER,
        provider={"wire": "responses"},
    ),
    "wire.input_tokens": Case(
        "/count",
        path,
        None,
        "/count",
        body=RESPONSES,
        provider={"wire": "responses"},
        route="/v1/responses/input_tokens",
    ),
    "request.max_body_bytes": Case(50, asked, (200, 1), (413, 0)),
    "request.learn_rejections": Case(
        False, asked, (200, 2), (400, 1), {**CHAT, "seed": 1}, plays=(REFUSED, DONE)
    ),
    "request.context_window": Case(1000, asked, (200, 1), (400, 0), LONG_CHAT),
    "request.chars_per_token": Case(
        2,
        asked,
        (200, 1),
        (400, 0),
        LONG_CHAT,
        beside={"request": {"context_window": 2000}},
    ),
    "tools.supported": Case(False, asked, (200, 1), (400, 0), {**CHAT, "tools": TOOLS}),
    "errors.retry.statuses": Case([418], asked, (418, 1), (200, 2), plays=(BUSY, DONE)),
    "answer.continuations": Case(1, asked, (200, 1), (200, 2), plays=(CUT,)),
    "answer.sse.comments": Case(
        False, said(": a comment"), True, False, {**CHAT, "stream": True}, plays=(COMMENTED,)
    ),
}
"""By key; the list of models, which no request for an answer reads, is below."""

LISTINGS: dict[str, tuple[str, list[str]]] = {
    "wire.models.path": ("/catalog", ["/v1/catalog"]),
    "wire.models.kind": ("static", []),
}
"""Key -> its value, and the lists that are asked for with it."""


def layer(key: str, value: Any) -> Json:
    for step in reversed(key.split(".")):
        value = {step: value}
    return dict(value)


def account(backend: ScriptedBackend, overrides: Json, **more: Any) -> Json:
    url = f"{backend.origin}/v1"
    return {
        "name": "p",
        "kind": "openai",
        "base_url": url,
        "api_key": "secret-1",
        "profile": "base",
        "models": ["m"],
        "overrides": overrides,
        **more,
    }


def seen(served: Served, backend: ScriptedBackend, case: Case) -> Seen:
    backend.clear()
    if case.plays:
        backend.play(*case.plays)
    if case.headers:
        with served.client() as client:
            reply = client.get("/v1/responses", headers=case.headers)
    else:
        reply = post(served, case.body, case.route or route(case.body))
    sent = backend.requests
    return Seen(
        reply.status_code,
        reply.text,
        [request.path for request in sent],
        [dict(request.headers) for request in sent],
        [request.json for request in sent],
    )


def route(body: Json) -> str:
    name = "chat/completions" if "messages" in body else "responses"
    return f"/v1/{'embeddings' if 'encoding_format' in body else name}"


@pytest.mark.parametrize(("key", "case"), SERVED.items(), ids=SERVED)
def test_a_key_changes_what_is_served(serve: Serve, scripted: ScriptedBackend, key: str, case: Case) -> None:
    found = []
    for more in ({}, layer(key, case.value)):
        overrides = merge(case.beside, more)
        server = {"websocket": False}  # what a backend takes itself is told there alone
        served = serve(fresh=True, providers=[account(scripted, overrides, **case.provider)], server=server)
        found.append(case.look(seen(served, scripted, case)))
    assert found == [case.without, case.with_it]


@pytest.mark.parametrize(("key", "case"), LISTINGS.items(), ids=LISTINGS)
def test_a_key_changes_how_models_are_listed(
    serve: Serve, scripted: ScriptedBackend, key: str, case: tuple[str, list[str]]
) -> None:
    value, with_it = case
    for overrides, wanted in (({}, ["/v1/models"]), (layer(key, value), with_it)):
        scripted.clear()
        served = serve(fresh=True, providers=[account(scripted, overrides, models=None)])
        waiting = served.gateway.catalog._listings["p"]
        deadline = time.monotonic() + 5
        while not waiting.asked and time.monotonic() < deadline:
            time.sleep(0.005)
        assert [request.path for request in scripted.server.requests] == wanted
