"""What a request leaves is freed when it ends, and not when the garbage collector next looks.

A cycle would cost every request: the collector walks what is alive to find it, a thirteenth of what a passed
request costs in all. It looks seldom here (`app.main.GARBAGE`) because there is nothing to find.
"""

from __future__ import annotations

import gc
import http.client
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.app.conftest import STORES, Serve, Served, provider, store_config
from tests.app.test_leaks import name_of
from tests.backends.loopback import Reply, Request
from tests.backends.replies import chat_chunk, chat_completion, json_reply, sse_reply
from tests.backends.scripted import ScriptedBackend

MANY = 20
SAID = {"chat": {"messages": [{"role": "user", "content": "hi"}]}, "responses": {"input": "hi"}}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}


@pytest.fixture
def collector_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def answer(request: Request) -> Reply:
    body = orjson.loads(request.body)
    if body.get("user") == "wrong":
        return json_reply({"error": {"message": "no"}}, 400)
    if not body.get("stream"):
        return json_reply(chat_completion("hello"))
    chunks = [chat_chunk({"role": "assistant", "content": "a"}), chat_chunk({"content": "b"})]
    return sse_reply([*chunks, chat_chunk({}, "stop"), "[DONE]"])


def left(served: Served, shape: str, body: dict[str, Any]) -> Counter[str]:
    """Objects of ours that `MANY` requests leave."""
    with served.client() as client:

        def ask() -> None:
            client.post(PATHS[shape], content=orjson.dumps({"model": "p/m", **SAID[shape], **body}))

        ask()
        served.settled()
        before = ours()
        for _ in range(MANY):
            ask()
        served.settled()
        return ours() - before


def ours() -> Counter[str]:
    return Counter(name for each in gc.get_objects() if (name := name_of(each)))


@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize("shape", PATHS)
@pytest.mark.parametrize("body", [{}, {"stream": True}, {"user": "wrong"}, {"model": 3}], ids=str)
def test_nothing_waits_for_the_collector(
    serve: Serve, scripted: ScriptedBackend, shape: str, body: dict[str, Any]
) -> None:
    scripted.play(answer)
    found = left(serve(providers=[provider(scripted)], store={"kind": "off"}), shape, body)
    assert {name: count for name, count in found.items() if count >= MANY} == {}


@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("stream", [False, True])
def test_nor_does_what_was_stored(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Any, kind: str, stream: bool
) -> None:
    scripted.play(answer)
    served = serve(providers=[provider(scripted)], store=store_config(kind, tmp_path))
    found = left(served, "responses", {"stream": stream})
    kept = {"app.store.base.Record", "app.store.memory._Chain"} if kind == "memory" else set()
    assert {name: count for name, count in found.items() if count >= MANY and name not in kept} == {}


# --- what is large -----------------------------------------------------------------------

LARGE = 1 << 20
TIMES = 8
PAD = "x" * LARGE
CHAT, RESPONSES = PATHS["chat"], PATHS["responses"]


def large(path: str, **more: Any) -> bytes:
    said = {"messages": [{"role": "user", "content": PAD}]} if path == CHAT else {"input": PAD}
    return orjson.dumps({"model": "p/m", **said, **more})


def spent(served: Served, scripted: ScriptedBackend, path: str, body: bytes) -> int:
    """Bytes that are held after `TIMES` requests."""
    ask(served, path, body)
    settle(served, scripted)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(TIMES):
            ask(served, path, body)
        settle(served, scripted)
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def ask(served: Served, path: str, body: bytes) -> None:
    """By a client that leaves no cycles itself."""
    connection = http.client.HTTPConnection(served.base.partition("//")[2], timeout=20)
    connection.request("POST", path, body, {"content-type": "application/json"})
    reply = connection.getresponse()
    with suppress(http.client.IncompleteRead):
        reply.read()
    connection.close()


def settle(served: Served, scripted: ScriptedBackend) -> None:
    deadline = time.monotonic() + 10
    while (served.gateway.serving or served.gateway.background.keys) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    scripted.server.requests.clear()


BAD = b'{"input": "' + PAD.encode() + b'", '
CASES = {
    "bad JSON for Chat": (CHAT, BAD),
    "bad JSON for Responses": (RESPONSES, BAD),
    "bad JSON for embeddings": ("/v1/embeddings", BAD),
    "bad JSON for conversations": ("/v1/conversations", BAD),
    "answered": (RESPONSES, large(RESPONSES)),
    "streamed": (CHAT, large(CHAT, stream=True)),
    "in the background": (RESPONSES, large(RESPONSES, background=True)),
    "in the background, refused": (RESPONSES, large(RESPONSES, background=True, user="wrong")),
    "cut off": (CHAT, large(CHAT, stream=True, user="cut")),
    "cut off and translated": (RESPONSES, large(RESPONSES, stream=True, user="cut")),
    "reset": (CHAT, large(CHAT, user="reset")),
    "another has to answer": (CHAT, large(CHAT, user="busy")),
    "nobody is there": (RESPONSES, large(RESPONSES, model="gone/m")),
    "unknown model": (RESPONSES, large(RESPONSES, model="none")),
    "unknown previous response": (RESPONSES, large(RESPONSES, previous_response_id="resp_none")),
}


@pytest.mark.usefixtures("collector_off")
@pytest.mark.parametrize(("path", "body"), CASES.values(), ids=CASES)
def test_no_body_waits_for_the_collector(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, path: str, body: bytes
) -> None:
    scripted.play(in_trouble, answer)
    gone = {"name": "gone", "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "models": ["m"]}
    providers = [provider(scripted), {**provider(scripted), "name": "q", "models": ["n"]}, gone]
    served = serve(
        providers=providers,
        fallbacks={"p/m": ["q/n"]},
        store={"kind": "sqlite", "path": str(tmp_path / "r.db")},
        server={"retry_budget_s": 0},
    )
    assert spent(served, scripted, path, body) < 3 * LARGE  # the last one may still be read


def in_trouble(request: Request) -> Reply | None:
    body = orjson.loads(request.body)
    match body.get("user"):
        case "cut":
            begun = b"data: " + orjson.dumps(chat_chunk({"role": "assistant", "content": "a"})) + b"\n\n"
            return Reply(200, {"content-type": "text/event-stream"}, [begun], "cut")
        case "reset":
            return Reply(200, {"content-length": "9"}, [b"a"], "cut")
        case "busy" if body["model"] == "m":
            return json_reply({"error": {"message": "busy"}}, 503)
    return None
