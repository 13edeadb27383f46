"""How much WebSockets remember of responses that are not stored: each of them, and all together."""

from __future__ import annotations

import gc
import time
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from app.store import Record
from app.websocket.memory import MOST_TOGETHER, Memories
from tests.app.conftest import Serve, Served, provider
from tests.app.sockets import Talk, create, upgraded
from tests.backends.scripted import ScriptedBackend

MOST = 1 << 20
HALF = "x" * (MOST // 2)


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend) -> Served:
    server = {"max_body_bytes": MOST}
    return serve(fresh=True, server=server, providers=[provider(scripted)], store={"kind": "off"})


def warm(talk: Talk, **fields: Any) -> str:
    id: str = talk.answer(generate=False, store=False, **fields)["id"]
    return id


def forgotten(talk: Talk, id: str) -> bool:
    events = talk.turn(input="more", store=False, previous_response_id=id)
    if events[0]["type"] != "error":
        return False
    assert (events[0]["status"], events[0]["error"]["code"]) == (400, "previous_response_not_found")
    return True


def test_a_connection_remembers_the_conversations_that_went_on_last(served: Served) -> None:
    with Talk(served) as talk:
        ids = [warm(talk, input=str(number)) for number in range(8)]
        ids[0] = warm(talk, input="goes on", previous_response_id=ids[0])
        warm(talk, input="one more")
        assert [forgotten(talk, id) for id in ids] == [False, True, *[False] * 6]


def test_a_long_conversation_on_each_of_many_lanes(served: Served) -> None:
    """Each is continued after all others have been, as a client does that runs agents side by side."""
    with Talk(served) as talk:
        last = {lane: warm(talk, input="begin", stream_id=str(lane)) for lane in range(8)}
        for _ in range(5):
            for lane, id in last.items():
                answer = talk.answer(input="on", store=False, previous_response_id=id, stream_id=str(lane))
                last[lane] = answer["id"]


def test_all_together_have_a_bound_and_whoever_holds_most_makes_room(served: Served) -> None:
    with ExitStack() as stack:
        talks = [stack.enter_context(Talk(served)) for _ in range(12)]
        small = warm(talks[0], input="small")
        ids = [warm(talk, input=HALF) for talk in talks[1:]]
        assert not forgotten(talks[0], small), "it is not the one that holds most"
        lost = [forgotten(talk, id) for talk, id in zip(talks[1:], ids, strict=True)]
        assert sum(not each for each in lost) in (6, 7), "four times what one request may hold"
        assert lost.index(False) > 0


def test_what_a_connection_remembered_is_gone_with_it(served: Served) -> None:
    for _ in range(10):
        with Talk(served) as talk:
            warm(talk, input=HALF)
    with ExitStack() as stack:
        talks = [stack.enter_context(Talk(served)) for _ in range(5)]
        ids = [warm(talk, input=HALF) for talk in talks]
        assert not any(forgotten(talk, id) for talk, id in zip(talks, ids, strict=True))


def record(id: str, size: int) -> Record:
    return Record("local", id, id, None, 0, b"x" * size, b"")


async def test_the_sum_is_what_is_there() -> None:
    memories = Memories()
    one, two = memories.open(100, 8), memories.open(100, 8)
    for number in range(20):
        await one.put(record(f"one-{number}", 30))
        await two.put(record(f"two-{number % 3}", 20))
        assert memories.size == one.size + two.size <= MOST_TOGETHER * 100
    memories.close(one)
    await one.put(record("late", 30))  # an answer that ended when its client had left
    memories.close(one)
    assert memories.size == two.size
    memories.close(two)
    assert memories.size == 0


def copies(size: int) -> int:
    """How many texts of about this size anything holds, what only the collector would free included."""
    found = set()
    for each in gc.get_objects():
        with suppress(ReferenceError):
            found |= {
                id(text)
                for text in gc.get_referents(each)
                if type(text) in (bytes, str, bytearray) and size <= len(text) < size + 500
            }
    return len(found)


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "cut"])
def test_nothing_of_a_message_stays_but_what_is_remembered(
    serve: Serve, scripted: ScriptedBackend, store: bool, whole: bool
) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "memory" if store else "off"})
    size = 777_777 + 10_000 * store + 1000 * whole
    gc.collect()
    gc.disable()
    try:
        with upgraded(served) as raw:
            raw.sendall(create(input="x" * size, generate=False, store=store))
            read = b""
            while b"response.completed" not in read:
                read += raw.recv(1 << 16)
            served.settled()
            assert copies(size) == 1
            if whole:
                raw.sendall(b"\x88\x80\0\0\0\0")
                raw.recv(1 << 16)
        deadline = time.monotonic() + 5
        while (left := copies(size)) > store and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left == store
    finally:
        gc.enable()
