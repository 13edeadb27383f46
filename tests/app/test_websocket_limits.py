"""A WebSocket's bounds and its end: size, number, time, slow and vanished clients, a server that stops."""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from app.stream import STALLED
from app.telemetry.trace import GONE
from app.websocket.memory import Memories
from app.websocket.protocol import MAX_FRAGMENTS, WebSocket
from app.websocket.session import Bounds, Session
from config.schema import Server
from tests.app.conftest import Serve, provider
from tests.app.sockets import Talk, close_code, create, frame, logged, rest_of, upgraded
from tests.backends.loopback import Reply
from tests.backends.replies import chat_chunk, frame_bytes
from tests.backends.scripted import ScriptedBackend

SSE = {"content-type": "text/event-stream"}
FIRST = frame_bytes(chat_chunk({"role": "assistant", "content": "a"}))
FLOOD = frame_bytes(chat_chunk({"role": "assistant", "content": "x" * 60_000}))
END = [frame_bytes(chat_chunk({}, "stop")), b"data: [DONE]\n\n"]
DEFLATE = "sec-websocket-extensions: permessage-deflate\r\n"


def bounded(monkeypatch: pytest.MonkeyPatch, **bounds: Any) -> None:
    """What servers that start from now on allow."""
    monkeypatch.setattr("app.websocket.route.Bounds", lambda: Bounds(**bounds))


def hanging(*more: bytes | float) -> Reply:
    return Reply(200, SSE, [FIRST, *more], "hang")


def slow(seconds: float) -> Reply:
    return Reply(200, SSE, [FIRST, seconds, *END])


def asked(scripted: ScriptedBackend, count: int = 1) -> None:
    """Wait until the backend has been asked so often."""
    deadline = time.monotonic() + 5
    while len(scripted.requests) < count and time.monotonic() < deadline:
        time.sleep(0.005)
    assert len(scripted.requests) == count


def closed(talk: Talk) -> tuple[int, str]:
    """What the server closes with, nothing coming before."""
    with pytest.raises(ConnectionClosed) as caught:
        talk.socket.recv(timeout=8)
    assert caught.value.rcvd is not None
    return caught.value.rcvd.code, caught.value.rcvd.reason


def refused(talk: Talk) -> dict[str, Any]:
    """The next error among the events."""
    while (event := talk.event())["type"] != "error":
        pass
    return event


# --- size ------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["deflate", None])
def test_a_message_above_the_limit_ends_the_connection(
    serve: Serve, scripted: ScriptedBackend, compression: str | None
) -> None:
    served = serve(providers=[provider(scripted)], server={"max_body_bytes": 100_000})
    with Talk(served, compression=compression) as talk:
        talk.answer(input="x" * 99_000)
        talk.send(input="x" * 100_000)
        assert closed(talk)[0] == 1009
    assert len(scripted.requests) == 1
    assert served.log("library") == served.log("fault") == []


def test_what_unpacks_to_too_much_is_not_unpacked(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"max_body_bytes": 20_000})
    packer = zlib.compressobj(wbits=-12)
    bomb = packer.compress(bytes(30 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH)
    assert len(bomb) > 20_000
    for size in (10_000, len(bomb)):  # within the limit as it is sent, and beyond it
        with upgraded(served, DEFLATE) as raw:
            raw.sendall(frame(bomb[:size], rsv=0x40))
            assert close_code(rest_of(raw)) == 1009


def test_many_small_bombs_in_one_read_are_unpacked_one_by_one(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    feed = WebSocket._take_held

    def look(self: Any) -> None:
        feed(self)
        held.append(sum(len(message.get("text") or "") for message in self.queue._queue))

    monkeypatch.setattr("app.websocket.protocol.WebSocket._take_held", look)
    served = serve(providers=[provider(scripted)], server={"max_body_bytes": 1 << 20})
    packer = zlib.compressobj(wbits=-12)
    bomb = packer.compress(b"x" * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    with upgraded(served, DEFLATE) as raw:
        raw.sendall(frame(bomb.removesuffix(b"\x00\x00\xff\xff"), rsv=0x40) * 100)
        leave_politely(raw)
        assert close_code(rest_of(raw)) == 1000
    assert len(held) >= 5
    assert 0 < max(held) <= 17 << 20


def test_a_message_of_countless_empty_fragments_ends_the_connection(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    served = serve(providers=[provider(scripted)])
    with upgraded(served) as raw:
        raw.sendall(frame(b"", 1, final=False) + frame(b"", 0, final=False) * (MAX_FRAGMENTS + 1))
        assert close_code(rest_of(raw)) == 1009


# --- number ----------------------------------------------------------------------------


def test_one_lane_answers_in_turn(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    scripted.play(slow(0.2))
    with Talk(served) as talk:
        for at in range(3):
            talk.send(input=str(at))
        asked(scripted)
        time.sleep(0.1)
        assert len(scripted.requests) == 1
        ended = [talk.events()[-1]["type"] for _ in range(3)]
    assert ended == ["response.completed"] * 3
    assert [body["messages"][0]["content"] for body in scripted.bodies()] == ["0", "1", "2"]


def test_lanes_answer_at_once(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    scripted.play(slow(0.3))
    with Talk(served) as talk:
        for lane in "abc":
            talk.send(input=lane, stream_id=lane)
        asked(scripted, 3)
        found: dict[str, list[str]] = {}
        while sum(kinds[-1] == "response.completed" for kinds in found.values()) < 3:
            event = talk.event()
            found.setdefault(event["stream_id"], []).append(event["type"])
    assert found["a"] == found["b"] == found["c"]


def test_more_than_a_connection_may_is_refused(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, lanes=2, waiting=3)
    served = serve(fresh=True, providers=[provider(scripted)])
    scripted.play(hanging())
    with Talk(served) as talk:
        for lane in "aab":
            talk.send(input="hi", stream_id=lane)
        asked(scripted, 2)
        talk.send(input="hi", stream_id="c")
        event = refused(talk)
        assert (event["status"], event["error"]["code"]) == (429, "too_many_requests")
        assert "2 `stream_id`s" in event["error"]["message"]
        assert event["headers"]["retry-after"]
        for _ in range(3):
            talk.send(input="hi", stream_id="a")
        assert "3 requests wait" in refused(talk)["error"]["message"]
    assert len(scripted.requests) == 2


# --- the client leaves -----------------------------------------------------------------


def leave_politely(raw: socket.socket) -> None:
    raw.sendall(frame(struct.pack(">H", 1000), 8))


def leave_half(raw: socket.socket) -> None:
    raw.shutdown(socket.SHUT_WR)


def leave_rudely(raw: socket.socket) -> None:
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


def leave_in_garbage(raw: socket.socket) -> None:
    raw.sendall(b"GET / HTTP/1.1\r\n\r\n" * 3)


@pytest.mark.parametrize("leave", [leave_politely, leave_half, leave_rudely, leave_in_garbage])
def test_a_client_that_leaves_ends_its_answers(
    serve: Serve, scripted: ScriptedBackend, leave: Callable[[socket.socket], None]
) -> None:
    served = serve(providers=[provider(scripted)])
    scripted.play(hanging())
    with upgraded(served) as raw:
        raw.sendall(create(stream_id="a") + create(stream_id="b") + create(stream_id="b"))
        asked(scripted, 2)
        leave(raw)
        lines = logged(served, 2)  # what waited was never begun
    assert {line["status"] for line in lines} == {GONE}
    assert all(request.gone.wait(2) for request in scripted.requests)
    assert served.log("fault") == served.log("library") == []


def test_a_client_that_reads_nothing_is_dropped(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"idle_timeout_s": 0.6})
    scripted.play(Reply(200, SSE, [FLOOD] * 400, "hang"))
    with upgraded(served, receive_bytes=1 << 16) as raw:
        raw.sendall(create())
        (line,) = logged(served)
        assert (line["status"], line["error"], line["error_code"]) == (GONE, STALLED, "client_stalled")
        assert scripted.requests[0].gone.wait(2)
        assert len(rest_of(raw)) < 20 << 20
    assert served.log("fault") == served.log("library") == []


def test_a_client_that_reads_slowly_gets_everything(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"idle_timeout_s": 0.6})
    scripted.play(Reply(200, SSE, [FLOOD] * 40 + END))
    with upgraded(served, receive_bytes=1 << 16) as raw:
        raw.sendall(create())
        read = b""
        while b'"response.completed"' not in read[-200_000_000:]:
            read += raw.recv(1 << 17)
            time.sleep(0.01)
    assert read.count(b'"response.output_text.delta"') == 40


# --- time ------------------------------------------------------------------------------


def test_a_connection_without_a_response_is_closed(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, idle_s=0.3)
    served = serve(fresh=True, providers=[provider(scripted)])
    scripted.play(slow(0.5))
    with Talk(served) as talk:
        talk.answer(input="hi")  # longer than that, but not idle
        assert closed(talk) == (1000, "idle")


def test_a_connection_has_its_time(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, lifetime_s=0.3)
    served = serve(fresh=True, providers=[provider(scripted)])
    scripted.play(slow(0.5))
    with Talk(served) as talk:
        talk.send(input="one")
        talk.send(input="two")
        assert talk.events()[-1]["type"] == "response.completed"  # it had begun
        for _ in range(2):  # what waited is told, and then the connection's end
            event = talk.event()
            assert event["error"]["code"] == "websocket_connection_limit_reached"
            assert event["status"] == 400
        assert closed(talk) == (1000, "lifetime")
    assert len(scripted.requests) == 1


# --- the server stops ------------------------------------------------------------------


def test_a_server_that_stops_closes_what_rests_and_lets_the_rest_end(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    served = serve(fresh=True, providers=[provider(scripted)])
    scripted.play(slow(0.6))
    with Talk(served) as busy, Talk(served) as resting:
        busy.send(input="one")
        busy.send(input="two")
        asked(scripted)
        served.stop()
        assert closed(resting) == (1001, "shutdown")
        assert busy.events()[-1]["type"] == "response.completed"
        event = busy.event()
        assert (event["status"], "shutting down" in event["error"]["message"]) == (503, True)
        assert closed(busy) == (1001, "shutdown")
    assert served.ended(5)
    assert len(scripted.requests) == 1


def test_what_outlasts_the_grace_fails(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], server={"shutdown_grace_s": 0.3})
    scripted.play(hanging())
    with Talk(served) as talk:
        talk.send(input="hi")
        asked(scripted)
        served.stop()
        last = talk.events()[-1]
        assert (last["type"], "shutting down" in str(last)) == ("response.failed", True)
        assert closed(talk) == (1001, "shutdown")
    assert served.ended(5)


def test_a_server_that_stops_does_not_wait_for_who_takes_nothing(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.server.LAST_WORDS_S", 1)
    served = serve(fresh=True, providers=[provider(scripted)], server={"shutdown_grace_s": 0.2})
    scripted.play(Reply(200, SSE, [FLOOD] * 400, "hang"))
    with upgraded(served, receive_bytes=1 << 16) as raw:
        raw.sendall(create())
        asked(scripted)
        time.sleep(0.3)
        served.stop()
        assert served.ended(12)


def test_a_close_that_nobody_answers_does_not_hold_up_a_stop(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(monkeypatch, idle_s=0.1)
    served = serve(fresh=True, providers=[provider(scripted)])
    with upgraded(served) as raw:
        assert raw.recv(1)[0] == 0x88  # a close frame
        served.stop()
        assert served.ended(3)


async def test_a_goodbye_that_nobody_takes_ends_in_a_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.websocket.session.LAST_WORDS_S", 0.01)
    cut: list[bool] = []

    class Transport(asyncio.WriteTransport):
        def abort(self) -> None:
            cut.append(True)

    async def never(_: object) -> None:
        await asyncio.Event().wait()

    gateway: Any = SimpleNamespace(server=Server(), state=None)
    bounds = Bounds(idle_s=0.01)
    session = Session(gateway, {}, b"id", "/v1/responses", never, Transport(), bounds, Memories())
    await asyncio.sleep(0.1)
    assert cut == [True]
    messages = iter([{"type": "websocket.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    await session.run(receive)


def test_a_fault_around_an_answer_ends_the_connection(
    serve: Serve, scripted: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve(fresh=True, providers=[provider(scripted)])

    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(served.gateway.metrics, "exchange", broken)
    with Talk(served) as talk:
        talk.answer(input="hi")
        assert closed(talk)[0] == 1011


def test_its_library_is_imported_with_the_first() -> None:
    code = "import sys, app.main, app.server; assert 'websockets' not in sys.modules, 'imported'"
    subprocess.run([sys.executable, "-c", code], check=True)
