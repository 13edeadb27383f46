"""The client's side of an exchange: silence, hang-ups, shutdown, and what is sent when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from app.lent import Lent
from app.stream import Client, Patience
from app.telemetry.trace import GONE, Trace
from translators.errors import ProxyError
from translators.ir import Usage


class Reply:
    """A reply machine that says what it was asked for."""

    def __init__(self, start: bytes = b"<start>") -> None:
        self.ended, self.error = False, None
        self.usage: Usage | None = None
        self._start, self.beats = start, 0

    def start(self) -> bytes:
        return self._start

    def keepalive(self) -> bytes:
        self.beats += 1
        return b"<beat>"

    def feed(self, data: bytes, /) -> bytes:
        return data

    def close(self) -> bytes:
        return b""

    def fail(self, error: ProxyError, /) -> bytes:
        return b"<failed: %b>" % error.message.encode()


class Wire:
    """An ASGI `send` and `receive`."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.open = asyncio.Event()
        self.open.set()
        self.left = asyncio.Event()
        self.told = False

    async def send(self, message: Any) -> None:
        await self.open.wait()
        self.messages.append(message)

    async def receive(self) -> Any:
        if not self.told:
            self.told = True
            return {"type": "http.request"}
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def status(self) -> int | None:
        return next((m["status"] for m in self.messages if m["type"] == "http.response.start"), None)

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(next(m["headers"] for m in self.messages if m["type"] == "http.response.start"))

    @property
    def bodies(self) -> list[bytes]:
        return [m["body"] for m in self.messages if m["type"] == "http.response.body"]

    @property
    def complete(self) -> bool:
        return bool(self.messages) and not self.messages[-1].get("more_body", True)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


def trace() -> Trace:
    return Trace(b"r1", "POST /v1/responses")


async def test_a_whole_answer() -> None:
    wire, record = Wire(), trace()
    client = Client(wire.send, record, Patience(10))
    await client.whole(200, [(b"content-type", b"application/json")], b"{}")
    assert (wire.status, wire.bodies, wire.complete) == (200, [b"{}"], True)
    assert wire.headers[b"content-length"] == b"2"
    assert (record.status, client.ended) == (200, True)
    assert record.first_byte is not None


async def test_a_stream_opens_with_its_first_bytes_and_ends_with_its_last() -> None:
    wire = Wire()
    client = Client(wire.send, trace(), Patience(10))
    client.expect(Reply(), [(b"x-request-id", b"r1")])
    assert not client.committed
    await client.write(b"one")
    await client.write(b"two", more=False)
    assert (wire.bodies, wire.complete, client.ended) == ([b"one", b"two"], True, True)
    assert wire.headers == {
        b"content-type": b"text/event-stream; charset=utf-8",
        b"cache-control": b"no-cache",
        b"x-accel-buffering": b"no",
        b"x-request-id": b"r1",
    }
    client.release()


async def test_silence_before_the_first_byte_opens_the_stream() -> None:
    wire, reply = Wire(), Reply()
    client = Client(wire.send, trace(), Patience(0.03))
    client.expect(reply, [])
    await until(lambda: len(wire.bodies) == 3)
    assert wire.bodies == [b"<start>", b"<beat>", b"<beat>"]
    assert (wire.status, client.committed) == (200, True)
    await client.write(b"text", more=False)
    await asyncio.sleep(0.08)
    assert wire.bodies[-1] == b"text"
    assert wire.complete
    client.release()


async def test_a_reply_that_starts_with_nothing_begins_with_a_keepalive() -> None:
    wire = Wire()
    client = Client(wire.send, trace(), Patience(0.02))
    client.expect(Reply(start=b""), [])
    await until(lambda: bool(wire.bodies))
    assert wire.bodies[0] == b"<beat>"
    client.release()


async def test_bytes_to_the_client_put_the_keepalive_off() -> None:
    wire, reply = Wire(), Reply()
    client = Client(wire.send, trace(), Patience(0.15))
    client.expect(reply, [])
    for _ in range(10):
        await client.write(b".")
        await asyncio.sleep(0.03)
    assert reply.beats == 0
    client.release()


async def test_a_slow_client_gets_no_keepalive_on_top() -> None:
    wire, reply = Wire(), Reply()
    client = Client(wire.send, trace(), Patience(0.02))
    client.expect(reply, [])
    await client.write(b"one")
    wire.open.clear()
    writing = asyncio.ensure_future(client.write(b"two"))
    await asyncio.sleep(0.1)
    wire.open.set()
    await writing
    assert wire.bodies == [b"one", b"two"]
    client.release()


async def test_a_keepalive_that_is_being_sent_goes_before_the_next_bytes() -> None:
    wire, reply = Wire(), Reply()
    client = Client(wire.send, trace(), Patience(0.02))
    client.expect(reply, [])
    await client.write(b"one")
    wire.open.clear()
    await until(lambda: reply.beats == 1)
    writing = asyncio.ensure_future(client.write(b"two"))
    await asyncio.sleep(0.03)
    wire.open.set()
    await writing
    assert wire.bodies[:3] == [b"one", b"<beat>", b"two"]
    client.release()


async def test_no_keepalive_for_a_whole_answer() -> None:
    wire = Wire()
    client = Client(wire.send, trace(), Patience(0.01))
    await asyncio.sleep(0.05)
    assert wire.messages == []
    client.release()


async def test_a_failure_before_the_first_byte_is_a_status() -> None:
    wire, record = Wire(), trace()
    record.target = "p/m"
    client = Client(wire.send, record, Patience(10))
    client.expect(Reply(), [])
    await client.fail(ProxyError("rate_limit", "slow down", retry_after=1.2, headers={"x-ratelimit-a": "1"}))
    assert (wire.status, wire.complete) == (429, True)
    assert wire.headers[b"retry-after"] == b"2"
    assert wire.headers[b"x-ratelimit-a"] == b"1"
    assert wire.headers[b"x-dragoman-model"] == b"p/m"
    assert b'"code":"rate_limit_exceeded"' in wire.bodies[0]
    client.release()


async def test_a_failure_after_it_is_told_in_the_stream() -> None:
    wire = Wire()
    client = Client(wire.send, trace(), Patience(10))
    client.expect(Reply(), [])
    await client.write(b"text")
    await client.fail(ProxyError("upstream", "broke"))
    assert wire.bodies == [b"text", b"<failed: broke>"]
    assert (wire.status, wire.complete) == (200, True)
    client.release()


async def test_a_failure_waits_for_the_keepalive_that_is_being_sent() -> None:
    wire, reply = Wire(), Reply()
    client = Client(wire.send, trace(), Patience(0.02))
    client.expect(reply, [])
    wire.open.clear()
    await until(lambda: client.committed)
    failing = asyncio.ensure_future(client.fail(ProxyError("upstream", "broke")))
    await asyncio.sleep(0.01)
    wire.open.set()
    await failing
    assert wire.bodies == [b"<start>", b"<failed: broke>"]
    client.release()


async def interrupted(wire: Wire, client_made: asyncio.Future[Client], record: Trace) -> ProxyError | None:
    """An exchange that waits for its backend until something cancels it."""
    client = Client(wire.send, record, Patience(10))
    client.watch(wire.receive)
    client_made.set_result(client)
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        return client.interrupted()
    raise AssertionError("not interrupted")


async def test_a_client_that_leaves_ends_the_exchange() -> None:
    wire, record = Wire(), trace()
    made: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(interrupted(wire, made, record))
    client = await made
    wire.left.set()
    assert await task is None
    assert (client.cause, record.status, client.ended) == ("gone", GONE, True)
    assert wire.messages == []


async def test_a_shutdown_ends_it_with_words() -> None:
    wire = Wire()
    made: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(interrupted(wire, made, trace()))
    (await made).interrupt("shutdown")
    error = await task
    assert error is not None
    assert error.http_status == 503
    (await made).release()


@pytest.mark.parametrize("step", ["ended", "failing", "interrupted"])
async def test_an_exchange_that_is_ending_is_not_interrupted(step: str) -> None:
    wire = Wire()
    client = Client(wire.send, trace(), Patience(10))
    if step == "ended":
        await client.whole(200, [], b"")
    elif step == "failing":
        await client.fail(ProxyError("upstream", "broke"))
    else:
        client.cause = "gone"
    client.interrupt("shutdown")
    await asyncio.sleep(0)
    assert client.cause == ("gone" if step == "interrupted" else None)
    client.release()


async def test_release_leaves_nothing_running() -> None:
    wire = Wire()
    client = Client(wire.send, trace(), Patience(0.01))
    client.watch(wire.receive)
    client.expect(Reply(), [])
    wire.open.clear()
    await until(lambda: client.committed)
    client.release()
    await asyncio.sleep(0.03)
    assert len(asyncio.all_tasks()) == 1


class Pieces(Lent):
    """Takes what need not wait, unless it is `full`."""

    def __init__(self, full: bool = False) -> None:
        super().__init__()
        self.full, self.sent = full, list[bytes]()

    def piece(self, data: bytes) -> bool:
        self.sent.append(data)
        return not self.full


async def test_a_part_in_the_middle_of_a_stream_goes_out_at_once() -> None:
    wire, lent = Wire(), Pieces()
    client = Client(wire.send, trace(), Patience(10), lent=lent)
    client.expect(Reply(), [])
    assert not client.pass_on(b"one"), "the head is not out"
    await client.write(b"one")
    assert client.pass_on(b"two")
    assert (wire.bodies, lent.sent) == ([b"one"], [b"two"])
    client.release()


@pytest.mark.parametrize("why", ["full", "first", "beat", "end", "no connection"])
async def test_what_has_to_wait_or_to_be_looked_at_goes_by_way_of_send(why: str) -> None:
    wire = Wire()
    client = Client(
        wire.send, trace(), Patience(10), lent=None if why == "no connection" else Pieces(why == "full")
    )
    reply = Reply()
    client.expect(reply, [])
    await client.write(b"one")
    if why == "first":
        client.on_first = lambda: None
    if why == "beat":
        client._beat = asyncio.create_task(asyncio.sleep(0))
    if why == "end":
        reply.end = object()

        async def on_end(_: object, data: bytes) -> bytes:
            return data + b"!"

        client.on_end = on_end
    assert not client.pass_on(b"two")
    await client.write(b"two", more=False)
    assert wire.bodies == [b"one", b"two!" if why == "end" else b"two"]
    client.release()
