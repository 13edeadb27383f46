"""A WebSocket's odd clients and backends."""

from __future__ import annotations

import orjson
import pytest

from tests.app.conftest import Serve, Served, provider
from tests.app.sockets import Talk, close_code, frame, rest_of, upgraded
from tests.backends.replies import response_stream, sse_reply
from tests.backends.scripted import ScriptedBackend

PINGS = 100_000
MOST_READ = 9 << 20
"""What the buffers of the system may hold of the answers; all of them would be 12 MiB and more."""


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend) -> Served:
    return serve(providers=[provider(scripted, "responses")], store={"kind": "memory"})


def test_a_flood_of_pings_that_nobody_reads_the_answers_of(served: Served) -> None:
    """Each was answered into the memory of the gateway: 400 MiB in 20 s, by one connection."""
    with upgraded(served, receive_bytes=4096) as raw:
        raw.settimeout(30)
        for start in range(0, PINGS, 1000):
            raw.sendall(b"".join(frame(b"%0125d" % number, 9) for number in range(start, start + 1000)))
        read, last = b"", b"%0125d" % (PINGS - 1)
        total = 0
        while last not in read:
            more = raw.recv(1 << 16)
            assert more, "closed"
            read, total = (read + more)[-1000:], total + len(more)
        assert total < MOST_READ
        raw.sendall(frame(b"again", 9))  # what comes later is answered as ever
        while b"again" not in read:
            read += raw.recv(1 << 16)


@pytest.mark.parametrize("told", ["{}", " { } "])
def test_an_event_without_fields_is_json_with_a_stream_id_too(
    served: Served, scripted: ScriptedBackend, told: str
) -> None:
    first, *rest = response_stream("hi")
    scripted.play(sse_reply([first, told, *rest]))
    with Talk(served) as talk:
        talk.send(input="hi", stream_id='a"}')
        events = [talk_event(talk)]
        while events[-1].get("type") != "response.completed":
            events.append(talk_event(talk))
    assert all(event["stream_id"] == 'a"}' for event in events)


def talk_event(talk: Talk) -> dict[str, object]:
    text = talk.socket.recv(timeout=5)
    assert isinstance(text, str)
    event: dict[str, object] = orjson.loads(text)
    return event


@pytest.mark.parametrize("data", [b"\xff\xfe", b'{"type": "\xed\xa0\x80"}'])
def test_bad_utf_8_is_told_to_the_client_alone(served: Served, data: bytes) -> None:
    """It came with a stack in the log, as if it were a fault of the gateway."""
    with upgraded(served) as raw:
        raw.sendall(frame(data))
        assert close_code(rest_of(raw)) == 1007
    assert b"Traceback" not in served.log_file.getvalue()
    assert not served.log("library")
