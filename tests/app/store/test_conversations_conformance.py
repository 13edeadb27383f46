"""What every store does with conversations, over all implementations, with and without encryption."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from app.store.base import ChainTooLong, Record, ResponseStore
from app.store.conversations import Conversation, Entry

from .conftest import TTL_S, Clock

PLENTY = 1 << 20


def conversation(id: str = "conv_a", owner: str = "o", metadata: bytes = b"{}") -> Conversation:
    return Conversation(owner, id, 5, metadata)


def entries(*ids: str, size: int = 0) -> list[Entry]:
    return [Entry(id, b'{"id":"%b"}' % id.encode() + b" " * size) for id in ids]


def record(id: str, chain: str = "conv_a") -> Record:
    return Record("o", id, chain, None, 5, b"[1]", b'{"id":"%b"}' % id.encode(), (f"msg_{id}",))


async def ids(store: ResponseStore, id: str = "conv_a", owner: str = "o") -> list[str] | None:
    found = await store.conversations.entries(owner, id, PLENTY)
    return None if found is None else [entry.id for entry in found]


async def test_what_is_created_is_there(store: ResponseStore) -> None:
    made = conversation(metadata=b'{"a":"b"}')
    await store.conversations.create(made, entries("x", "y"))
    assert await store.conversations.get("o", "conv_a") == made
    assert await store.conversations.entries("o", "conv_a", PLENTY) == entries("x", "y")
    assert await store.conversations.entry("o", "conv_a", "y") == entries("y")[0]
    assert await store.conversations.entry("o", "conv_a", "z") is None
    assert await store.conversations.get("o", "conv_b") is None
    assert await ids(store, "conv_b") is None


async def test_metadata_are_replaced(store: ResponseStore) -> None:
    await store.conversations.create(conversation(metadata=b'{"a":"b"}'), entries("x"))
    changed = conversation(metadata=b'{"c":"d"}')
    assert await store.conversations.update("o", "conv_a", b'{"c":"d"}') == changed
    assert await store.conversations.get("o", "conv_a") == changed
    assert await ids(store) == ["x"]
    assert await store.conversations.update("o", "conv_b", b"{}") is None


async def test_nobody_reaches_anothers(store: ResponseStore) -> None:
    kept = store.conversations
    await kept.create(conversation(), entries("x"))
    assert await kept.get("p", "conv_a") is None
    assert await kept.update("p", "conv_a", b"{}") is None
    assert await kept.add("p", "conv_a", entries("y")) is None
    assert await ids(store, owner="p") is None
    assert await kept.page("p", "conv_a", None, 9, True, PLENTY) is None
    assert await kept.entry("p", "conv_a", "x") is None
    assert await kept.named("p", ["x"], PLENTY) == {}
    assert not await kept.remove("p", "conv_a", "x")
    assert not await kept.delete("p", "conv_a")
    assert await ids(store) == ["x"]


async def test_what_is_added_stands_at_the_end(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), [])
    assert await ids(store) == []
    for each in (["c", "b"], [], ["a"]):
        assert await store.conversations.add("o", "conv_a", entries(*each)) == ()
    assert await ids(store) == ["c", "b", "a"]
    assert await store.conversations.remove("o", "conv_a", "a")
    assert await store.conversations.add("o", "conv_a", entries("d")) == ()
    assert await ids(store) == ["c", "b", "d"]


async def test_ids_that_are_taken_add_nothing(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), entries("x", "y"))
    taken = await store.conversations.add("o", "conv_a", entries("z", "y"), record("r"))
    assert list(taken or ()) == ["y"]
    assert await ids(store) == ["x", "y"]
    assert await store.get("o", "r") is None


async def test_a_turn_is_kept_with_its_response(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), [])
    assert await store.conversations.add("o", "conv_a", entries("x"), record("r")) == ()
    assert (await ids(store), (await store.chain("o", "r", PLENTY))[0].id) == (["x"], "r")
    assert await store.conversations.add("o", "conv_gone", entries("x"), record("s", "conv_gone")) is None
    assert await store.get("o", "s") is not None
    assert await ids(store, "conv_gone") is None


async def test_ids_may_be_taken_in_another_conversation(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), entries("x"))
    await store.conversations.create(conversation("conv_b"), entries("x", size=3))
    assert await store.conversations.add("o", "conv_b", entries("y")) == ()
    assert (await ids(store), await ids(store, "conv_b")) == (["x"], ["x", "y"])


PAGES = [
    (None, 2, False, ["a", "b"]),
    (None, 2, True, ["e", "d"]),
    (None, 9, False, ["a", "b", "c", "d", "e"]),
    ("b", 2, False, ["c", "d"]),
    ("b", 2, True, ["a"]),
    ("e", 2, False, []),
    ("a", 1, True, []),
]


@pytest.mark.parametrize(("after", "limit", "newest_first", "wanted"), PAGES)
async def test_pages(
    store: ResponseStore, after: str | None, limit: int, newest_first: bool, wanted: Sequence[str]
) -> None:
    await store.conversations.create(conversation(), entries("a", "b", "x", "c", "d", "e"))
    await store.conversations.create(conversation("conv_b"), entries("other"))
    await store.conversations.remove("o", "conv_a", "x")
    page = await store.conversations.page("o", "conv_a", after, limit, newest_first, PLENTY)
    assert page == entries(*wanted)


async def test_a_page_behind_what_is_not_there(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), entries("a"))
    assert await store.conversations.page("o", "conv_a", "b", 9, True, PLENTY) is None
    assert await store.conversations.page("o", "conv_b", None, 9, True, PLENTY) is None


async def test_a_page_holds_no_more_than_asked_but_for_its_first(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), entries("a", "b", "c", size=900))
    for most, wanted in ((10, ["a"]), (2000, ["a", "b"]), (9000, ["a", "b", "c"])):
        page = await store.conversations.page("o", "conv_a", None, 9, False, most)
        assert [entry.id for entry in page or ()] == wanted


async def test_many_bytes_are_refused(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), entries("a", "b", size=500))
    with pytest.raises(ChainTooLong):
        await store.conversations.entries("o", "conv_a", 900)
    with pytest.raises(ChainTooLong):
        await store.conversations.named("o", ["a", "b"], 900)


async def test_entries_are_found_by_their_ids(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), entries("a", "b"))
    await store.conversations.create(conversation("conv_b"), entries("c"))
    found = await store.conversations.named("o", ["c", "a", "x"], PLENTY)
    assert found == {entry.id: entry.body for entry in entries("a", "c")}


async def test_what_is_taken_out_is_gone(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), entries("a", "b"))
    assert await store.conversations.remove("o", "conv_a", "a")
    assert not await store.conversations.remove("o", "conv_a", "a")
    assert await ids(store) == ["b"]
    assert await store.conversations.named("o", ["a"], PLENTY) == {}


async def test_deleting_a_conversation_leaves_its_responses(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), entries("a"))
    await store.conversations.add("o", "conv_a", entries("b"), record("r"))
    assert await store.conversations.delete("o", "conv_a")
    assert not await store.conversations.delete("o", "conv_a")
    assert await store.conversations.get("o", "conv_a") is None
    assert await store.conversations.named("o", ["a", "b"], PLENTY) == {}
    assert await store.conversations.add("o", "conv_a", entries("c")) is None
    assert await store.get("o", "r") is not None


async def test_deleting_a_response_leaves_its_conversation(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), entries("a"))
    await store.conversations.add("o", "conv_a", entries("b"), record("r"))
    assert await store.delete("o", "r")
    assert await ids(store) == ["a", "b"]


async def test_it_expires_after_what_was_last_written_to_it(store: ResponseStore, clock: Clock) -> None:
    await store.conversations.create(conversation(), entries("a"))
    for entry in ("b", "c"):
        clock.time += TTL_S - 10
        assert await store.conversations.add("o", "conv_a", entries(entry)) == ()
    clock.time += TTL_S - 10
    await store.put(record("r"))
    clock.time += TTL_S - 10
    assert await ids(store) == ["a", "b", "c"]
    clock.time += 20
    assert await store.conversations.get("o", "conv_a") is None
    assert await store.conversations.add("o", "conv_a", entries("d")) is None
    assert await store.conversations.named("o", ["a"], PLENTY) == {}
    await store.purge()
    clock.time -= 100
    assert await store.conversations.get("o", "conv_a") is None


async def test_what_was_written_to_longest_ago_makes_room(store: ResponseStore, clock: Clock) -> None:
    for number in range(6):
        clock.time += 10
        await store.conversations.create(conversation(f"conv_{number}"), entries("a", size=2000))
        if number == 2:
            clock.time += 10
            await store.conversations.update("o", "conv_0", b'{"a":"b"}')
    await store.purge()
    found = [
        number for number in range(6) if await store.conversations.get("o", f"conv_{number}") is not None
    ]
    assert found == [0, 3, 4, 5]


async def test_room_is_made_for_all_that_is_kept(store: ResponseStore, clock: Clock) -> None:
    await store.conversations.create(conversation(), entries("a", size=6000))
    clock.time += 10
    await store.put(Record("o", "r", "c", None, 5, b"[]", b" " * 6000))
    await store.purge()
    assert await store.conversations.get("o", "conv_a") is None
    assert await store.get("o", "r") is not None


async def test_turns_at_once_are_all_there_and_whole(store: ResponseStore) -> None:
    await store.conversations.create(conversation(), [])
    turns = [[f"{turn}-{place}" for place in range(3)] for turn in range(40)]
    done = await asyncio.gather(
        *(store.conversations.add("o", "conv_a", entries(*turn), record(turn[0])) for turn in turns)
    )
    assert done == [()] * len(turns)
    found = await ids(store) or []
    assert sorted(found[::3]) == sorted(turn[0] for turn in turns)
    assert [found[place : place + 3] for place in range(0, len(found), 3)] == [
        turns[int(each.partition("-")[0])] for each in found[::3]
    ]
