"""Ends of exchanges that come at an odd moment."""

from __future__ import annotations

import asyncio
import io
import socket
import time
from typing import Any

import orjson
import pytest

from app.main import create_app
from app.telemetry.log import Sink
from config.schema import Config
from tests.app.conftest import Serve, Served
from tests.app.test_streams import (
    ASK,
    CHAT,
    SSE,
    events,
    provider,
    types,
    wait_for_log,
    wait_until,
    whole_text,
)
from tests.backends.loopback import Reply
from tests.backends.replies import chat_stream, frame_bytes, json_reply
from tests.backends.scripted import ScriptedBackend


@pytest.fixture
def impatient(serve: Serve, scripted: ScriptedBackend) -> Served:
    """Fills silence after a tenth of a second."""
    return serve(providers=[provider(scripted)], server={"keepalive_s": 0.1})


def test_a_stream_that_opened_during_a_pause_is_not_tried_again(
    impatient: Served, scripted: ScriptedBackend
) -> None:
    scripted.play(json_reply({"error": {"message": "busy"}}, 503, {"retry-after": "1"}))
    with impatient.client() as client:
        reply = client.post("/v1/responses", json=ASK)
    assert types(reply.text)[0] == "response.created"
    assert types(reply.text)[-1] == "response.failed"
    assert len(scripted.requests) == 1


def test_a_surface_refused_after_the_stream_opened_has_no_next(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    def refuse(_: Any) -> Reply:
        time.sleep(0.4)
        return json_reply({"error_code": "X", "message": "passthrough is not supported for model m"}, 400)

    scripted.play(refuse)
    account = {
        "name": "dbx",
        "kind": "databricks",
        "base_url": scripted.origin,
        "models": ["databricks-gpt-5-5"],
    }
    served = serve(fresh=True, providers=[account], server={"keepalive_s": 0.1})
    with served.client() as client:
        reply = client.post("/v1/responses", json={**ASK, "model": "dbx/databricks-gpt-5-5"})
    assert types(reply.text)[-1] == "response.failed"
    assert len(scripted.requests) == 1


def test_an_endless_error_body_is_read_in_part(impatient: Served, scripted: ScriptedBackend) -> None:
    scripted.play(Reply(400, {"content-type": "text/plain"}, [b"x" * 700_000] * 3))
    with impatient.client() as client:
        reply = client.post("/v1/responses", json={**ASK, "stream": False})
    assert reply.status_code == 400
    assert len(reply.content) < 10_000


def test_a_broken_error_body_leaves_the_status(impatient: Served, scripted: ScriptedBackend) -> None:
    scripted.play(Reply(400, {"content-type": "application/json"}, [b'{"error"'], "cut"))
    with impatient.client() as client:
        assert client.post("/v1/responses", json={**ASK, "stream": False}).status_code == 400


@pytest.mark.parametrize("stream", [True, False])
def test_an_error_in_a_list(impatient: Served, scripted: ScriptedBackend, stream: bool) -> None:
    scripted.play(json_reply([{"error": {"code": 500, "message": "inner", "status": "INTERNAL"}}]))
    with impatient.client() as client:
        reply = client.post("/v1/responses", json={**ASK, "stream": stream})
    assert (reply.status_code, reply.json()["error"]["message"]) == (502, "inner")


def test_blank_reads_before_the_first_event(impatient: Served, scripted: ScriptedBackend) -> None:
    frames = [frame_bytes(frame) for frame in chat_stream("hi")]
    scripted.play(Reply(200, SSE, [b"\n", 0.02, b" \n", 0.02, *frames]))
    with impatient.client() as client:
        assert whole_text(client.post("/v1/responses", json=ASK).text) == "hi"
        assert events(client.post("/v1/chat/completions", json=CHAT).text)[-1] == "[DONE]"


def test_a_comment_alone_does_not_open_the_stream(impatient: Served, scripted: ScriptedBackend) -> None:
    error = b'data: {"error": {"message": "out of order"}}\n\n'
    scripted.play(Reply(200, SSE, [b": warming up\n\n", 0.02, error]))
    with impatient.client() as client:
        assert client.post("/v1/responses", json=ASK).status_code == 502


@pytest.mark.parametrize("end", ["cut", "hang"])
def test_what_comes_after_the_end_of_a_reply_is_nobodys_business(
    impatient: Served, scripted: ScriptedBackend, end: Any
) -> None:
    frames = [frame_bytes(frame) for frame in chat_stream("done")]
    scripted.play(Reply(200, SSE, [*frames, 0.05, b": bye\n\n"], end))
    with impatient.client() as client:
        began = time.monotonic()
        reply = client.post("/v1/responses", json=ASK)
    assert types(reply.text)[-1] == "response.completed"
    assert time.monotonic() - began < 0.9
    if end == "hang":
        assert scripted.requests[0].gone.wait(3)
    assert wait_for_log(impatient)[0]["error"] is None
    assert impatient.log("fault") == []


def test_a_client_that_leaves_before_its_body_is_whole(impatient: Served) -> None:
    host, port = impatient.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
    wait_until(lambda: impatient.log())
    assert wait_for_log(impatient)[0]["status"] == 499
    assert impatient.log("fault") == impatient.log("library") == []


# --- the application without a server --------------------------------------------------


async def call(app: Any, send: Any, body: bytes = b"{}") -> None:
    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    await app({"type": "http", "method": "POST", "path": "/v1/responses", "headers": []}, receive, send)


@pytest.fixture
def log_file() -> io.BytesIO:
    return io.BytesIO()


@pytest.fixture
def app(log_file: io.BytesIO) -> Any:
    config = {"providers": [{"name": "p", "kind": "onnx", "path": "x"}]}
    return create_app(Config.model_validate(config), sink=Sink(log_file))


async def test_a_server_may_raise_from_send_when_the_client_is_gone(app: Any, log_file: io.BytesIO) -> None:
    async def send(_: Any) -> None:
        raise OSError("gone")

    await call(app, send)
    await asyncio.sleep(0.01)
    assert orjson.loads(log_file.getvalue())["status"] == 400


async def test_a_server_that_cancels_us_is_obeyed(app: Any, log_file: io.BytesIO) -> None:
    async def receive() -> Any:
        await asyncio.sleep(30)

    scope = {"type": "http", "method": "POST", "path": "/v1/responses", "headers": []}
    task = asyncio.ensure_future(app(scope, receive, receive))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(log_file.getvalue().splitlines()) == 1


async def test_a_client_that_takes_nothing_holds_up_no_end(app: Any, log_file: io.BytesIO) -> None:
    """At the end of the grace its answer is to fail; the server then cancels what still waits."""

    async def receive() -> Any:
        await asyncio.sleep(30)

    async def send(_: Any) -> None:
        await asyncio.sleep(30)

    scope = {"type": "http", "method": "POST", "path": "/v1/responses", "headers": []}
    task = asyncio.ensure_future(app(scope, receive, send))
    await asyncio.sleep(0.05)
    app.state.gateway.end_open_answers()
    await asyncio.sleep(0.05)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task], timeout=1)
    assert (task.done(), task.cancelled(), task.exception()) == (True, False, None)
    assert len(log_file.getvalue().splitlines()) == 1
