"""Faults of backends, over real sockets: an honest answer in time, nothing secret, no stack in the log."""

from __future__ import annotations

import http.client
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import orjson
import pytest

from tests.app.conftest import Serve, Served
from tests.app.test_streams import ASK, CHAT, SSE, events, types, whole_text
from tests.backends.loopback import Reply, Request
from tests.backends.raw import RawBackend
from tests.backends.replies import (
    chat_chunk,
    chat_completion,
    chat_stream,
    frame_bytes,
    json_reply,
    response_items,
    response_object,
    response_stream,
    sse_reply,
)
from tests.backends.scripted import ScriptedBackend

KEY = "opensesame-zz"
PATHS = {"/v1/responses": ASK, "/v1/chat/completions": CHAT}


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend) -> Iterator[Served]:
    account = {"kind": "openai", "base_url": f"{scripted.origin}/v1", "api_key": KEY, "models": ["m"]}
    providers = [{**account, "name": "p", "wire": "chat"}, {**account, "name": "r", "wire": "responses"}]
    served = serve(providers=providers, server={"retry_budget_s": 0, "idle_timeout_s": 5})
    yield served
    assert served.log("fault") == served.log("library") == []


def ask(served: Served, path: str, provider: str, stream: bool) -> httpx.Response:
    with served.client() as client:
        return client.post(path, json={**PATHS[path], "model": f"{provider}/m", "stream": stream})


every_way = pytest.mark.parametrize(
    ("path", "provider", "stream"),
    [(path, provider, stream) for path in PATHS for provider in "pr" for stream in (True, False)],
)


def text_of(reply: httpx.Response, path: str, stream: bool) -> str:
    if stream and path == "/v1/responses":
        return whole_text(reply.text)
    if stream:
        chunks = [event for event in events(reply.text) if isinstance(event, dict)]
        return "".join(c["delta"].get("content") or "" for each in chunks for c in each["choices"])
    body = reply.json()
    if path == "/v1/responses":
        return "".join(part["text"] for item in body["output"] for part in item["content"])
    return str(body["choices"][0]["message"]["content"])


def whole_body(request: Request) -> Any:
    is_chat = request.path.endswith("completions")
    return chat_completion("Hi there") if is_chat else response_object(response_items("Hi there"))


BODIES: dict[str, Callable[[bytes], bytes]] = {
    "a byte order mark": lambda body: b"\xef\xbb\xbf\n" + body,
    "NaN": lambda body: body.replace(b"{", b'{"score":NaN,', 1),
    "counts beyond 64 bits": lambda body: body.replace(b":7", b":99999999999999999999"),
    "a list of one": lambda body: b"[" + body + b"]",
    "a time beyond 64 bits": lambda body: body.replace(b":1700000000", b":1e300"),
}


@every_way
@pytest.mark.parametrize("odd", BODIES)
def test_odd_bodies(
    served: Served, scripted: ScriptedBackend, path: str, provider: str, stream: bool, odd: str
) -> None:
    def answer(request: Request) -> Reply:
        return Reply(200, {}, [BODIES[odd](orjson.dumps(whole_body(request)))])

    scripted.play(answer)
    reply = ask(served, path, provider, stream)
    assert (reply.status_code, text_of(reply, path, stream)) == (200, "Hi there")


@every_way
@pytest.mark.parametrize("odd", [b"caf\xc3", b"caf\\ud83d"])
def test_half_a_character_costs_no_more_than_itself(
    served: Served, scripted: ScriptedBackend, path: str, provider: str, stream: bool, odd: bytes
) -> None:
    def answer(request: Request) -> Reply:
        frames = chat_stream("a cafe") if request.path.endswith("completions") else response_stream("a cafe")
        return Reply(200, SSE, [b"".join(map(frame_bytes, frames)).replace(b"cafe", odd)])

    scripted.play(answer)
    reply = ask(served, path, provider, stream)
    assert (reply.status_code, text_of(reply, path, stream)) == (200, "a caf\ufffd")


FIRST = [b'{"error": {"message": "boom"}}', b'{"error": "boom"}', b'{"message": "boom"}']


@every_way
@pytest.mark.parametrize("error", FIRST)
def test_an_error_in_place_of_a_stream_is_a_502(
    served: Served, scripted: ScriptedBackend, path: str, provider: str, stream: bool, error: bytes
) -> None:
    scripted.play(Reply(200, SSE, [b"data: %b\n\n" % error]))
    reply = ask(served, path, provider, stream)
    assert (reply.status_code, reply.json()["error"]["message"]) == (502, "boom")


@every_way
def test_nothing_but_the_end_marker_is_a_502(
    served: Served, scripted: ScriptedBackend, path: str, provider: str, stream: bool
) -> None:
    scripted.play(Reply(200, SSE, [b"data: [DONE]\n\n"]))
    assert ask(served, path, provider, stream).status_code == 502


@pytest.mark.parametrize("path", PATHS)
def test_a_reply_is_told_once_however_often_it_is_sent(
    served: Served, scripted: ScriptedBackend, path: str
) -> None:
    def answer(request: Request) -> Reply:
        frames = chat_stream("once") if request.path.endswith("completions") else response_stream("once")
        return Reply(200, SSE, [*map(frame_bytes, frames), b"data: [DONE]\n\n", *map(frame_bytes, frames)])

    scripted.play(answer)
    for provider in "pr":
        reply = ask(served, path, provider, True)
        assert text_of(reply, path, True) == "once"
        assert reply.text.count("[DONE]") == 1


@pytest.mark.parametrize("path", PATHS)
def test_a_connection_that_breaks_after_the_finish_breaks_nothing(
    served: Served, scripted: ScriptedBackend, path: str
) -> None:
    frames = [frame_bytes(frame) for frame in chat_stream("whole", usage=False)[:-1]]
    scripted.play(Reply(200, SSE, [*frames, 0.05], "cut"))
    reply = ask(served, path, "p", True)
    assert text_of(reply, path, True) == "whole"
    assert "error" not in {event.get("type") for event in events(reply.text) if isinstance(event, dict)}
    assert path == "/v1/chat/completions" or types(reply.text)[-1] == "response.completed"


# --- refusals --------------------------------------------------------------------------

REFUSALS: dict[str, tuple[Reply, int]] = {
    "an error in errors": (Reply(400, {}, [b"[" * 2000 + b'{"message":"x"}' + b"]" * 2000]), 400),
    "a page": (Reply(500, {}, [b"<html>" + b"<title" * 150_000]), 500),
    "a delay of ages": (json_reply({"error": {"message": f"try again in {'9' * 400}s"}}, 429), 429),
    "a header of ages": (json_reply({"error": {"message": "slow"}}, 429, {"retry-after": "1e300"}), 429),
    "words for a header": (json_reply({"error": {"message": "a\r\nx-evil: 1", "code": "a\r\nb"}}, 400), 400),
    "another place": (Reply(307, {"location": "http://127.0.0.1:1/"}, []), 502),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", REFUSALS)
def test_odd_refusals(served: Served, scripted: ScriptedBackend, name: str, stream: bool) -> None:
    sent, status = REFUSALS[name]
    scripted.play(sent)
    began = time.monotonic()
    reply = ask(served, "/v1/responses", "p", stream)
    assert (reply.status_code, set(reply.json()["error"])) == (status, {"message", "type", "param", "code"})
    assert time.monotonic() - began < 2
    assert "x-evil" not in reply.headers
    assert status != 429 or 0 < int(reply.headers["retry-after"]) < 2**31 / 1000


@every_way
def test_the_backends_key_reaches_no_client(
    served: Served, scripted: ScriptedBackend, path: str, provider: str, stream: bool
) -> None:
    error = {"error": {"message": f"key {KEY} is bad", "code": KEY, "param": KEY}}
    late = sse_reply([chat_chunk({"role": "assistant", "content": "a"}), error], pause=0.05)
    for sent in (json_reply(error, 400), json_reply(error, 429), json_reply(error), sse_reply([error]), late):
        scripted.play(sent)
        reply = ask(served, path, provider, stream)
        assert KEY not in reply.text + str(reply.headers)
    assert KEY not in served.log_file.getvalue().decode()


def test_a_path_of_any_kind_gets_an_error_of_ours(served: Served) -> None:
    for path in ("/v1/models/p/%0d%0ax", "/x%0ay", "//v1/models", "/v1/responses/x/y"):
        connection = http.client.HTTPConnection(served.base.removeprefix("http://"), timeout=10)
        connection.request("GET", path)
        reply = connection.getresponse()
        assert (reply.status, orjson.loads(reply.read())["error"]["code"]) == (404, "unknown_route")
        connection.close()


# --- below HTTP ------------------------------------------------------------------------


class Raw(RawBackend):
    """Writes these bytes to every request."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__()
        self._pieces = pieces

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def answer(self, connection: socket.socket) -> None:
        connection.recv(65536)
        for piece in self._pieces:
            connection.sendall(piece)
            time.sleep(0.05)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
BROKEN = [
    (),
    (b"HTTP/1.1 200 OK\r\ncontent-ty",),
    (b"\x00\x01 nothing like HTTP\r\n\r\n",),
    (HEAD,),
    (HEAD, b"zz\r\nno chunk\r\n"),
    (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n", b'{"id":'),
    (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 9\r\n\r\nno gzip!!",),
    (b"HTTP/1.1 200 OK\r\nx-a: b\rx-evil: 1\r\ncontent-length: 2\r\n\r\n{}",),
    (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",),
]


@pytest.mark.parametrize("pieces", BROKEN, ids=lambda each: (b" ".join(each)[:40] or b"nothing").decode())
def test_what_is_no_answer_is_a_502_at_once(serve: Serve, pieces: tuple[bytes, ...]) -> None:
    with Raw(*pieces) as raw:
        account = {"name": "p", "kind": "openai", "base_url": raw.base_url, "wire": "chat", "models": ["m"]}
        served = serve(fresh=True, providers=[account], server={"retry_budget_s": 0, "idle_timeout_s": 30})
        for path in PATHS:
            for stream in (True, False):
                began = time.monotonic()
                reply = ask(served, path, "p", stream)
                assert (reply.status_code, reply.json()["error"]["type"]) == (502, "upstream_error")
                assert time.monotonic() - began < 2
        assert served.log("fault") == served.log("library") == []
