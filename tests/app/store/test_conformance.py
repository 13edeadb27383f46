"""What every store does, over all implementations, with and without encryption."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import pytest

from app.store.base import MOST_ID, ChainTooLong, Record, ResponseStore, is_id

from .conftest import TTL_S, Clock


def record(id: str, previous: str | None = None, chain: str = "c", owner: str = "o", size: int = 0) -> Record:
    response = b'{"id":"%b"}' % id.encode() + b" " * size
    return Record(owner, id, chain, previous, 5, b"[1]", response, (f"msg_{id}",))


def told(found: Record | None) -> Record:
    """Without what is written only."""
    assert found is not None
    return replace(found, items=())


async def test_what_is_put_is_there(store: ResponseStore) -> None:
    await store.check()
    await store.put(record("a"))
    assert told(await store.get("o", "a")) == replace(record("a"), items=())
    assert await store.get("o", "b") is None


async def test_where_a_response_is_stored_too_is_told(store: ResponseStore) -> None:
    kept = replace(record("a"), target="p/m", upstream="resp_up")
    await store.put(kept)
    assert told(await store.get("o", "a")) == replace(kept, items=())
    assert [each.upstream for each in await store.chain("o", "a", 999)] == ["resp_up"]
    await store.put(record("a"))
    assert (told(await store.get("o", "a")).target, told(await store.get("o", "a")).upstream) == ("", "")


async def test_nobody_sees_another_owners(store: ResponseStore) -> None:
    await store.put(record("a"))
    assert await store.get("p", "a") is None
    assert await store.chain("p", "a", 999) == []
    assert await store.holders("p", ["msg_a"], 999) == {}
    assert not await store.delete("p", "a")
    assert await store.get("o", "a") is not None


async def test_two_owners_may_have_the_same_id(store: ResponseStore) -> None:
    await store.put(record("a"))
    await store.put(record("a", owner="p", chain="d", size=1))
    assert told(await store.get("o", "a")).size + 1 == told(await store.get("p", "a")).size


async def test_a_record_is_replaced(store: ResponseStore) -> None:
    await store.put(record("a"))
    await store.put(record("a", size=7))
    assert told(await store.get("o", "a")).response == record("a", size=7).response


async def test_a_chain_is_told_from_its_first(store: ResponseStore) -> None:
    for id, previous in (("a", None), ("b", "a"), ("c", "b"), ("side", "a")):
        await store.put(record(id, previous))
    assert [each.id for each in await store.chain("o", "c", 9999)] == ["a", "b", "c"]
    assert [each.id for each in await store.chain("o", "side", 9999)] == ["a", "side"]
    assert await store.chain("o", "nowhere", 9999) == []


async def test_a_chain_of_many_bytes_is_refused(store: ResponseStore) -> None:
    await store.put(record("a", size=500))
    await store.put(record("b", "a", size=500))
    with pytest.raises(ChainTooLong):
        await store.chain("o", "b", 900)
    with pytest.raises(ChainTooLong):
        await store.holders("o", ["msg_a", "msg_b"], 900)


async def test_items_are_found(store: ResponseStore) -> None:
    await store.put(record("a"))
    await store.put(record("b", "a"))
    found = await store.holders("o", ["msg_b", "msg_a", "msg_x"], 9999)
    assert {item: each.id for item, each in found.items()} == {"msg_a": "a", "msg_b": "b"}


async def test_what_is_deleted_is_gone_and_breaks_the_chain(store: ResponseStore) -> None:
    for id, previous in (("a", None), ("b", "a"), ("c", "b")):
        await store.put(record(id, previous))
    assert await store.delete("o", "b")
    assert not await store.delete("o", "b")
    assert await store.get("o", "b") is None
    assert await store.holders("o", ["msg_b"], 9999) == {}
    (last,) = await store.chain("o", "c", 9999)
    assert last.previous == "b"


async def test_a_conversation_expires_as_a_whole_after_its_last_response(
    store: ResponseStore, clock: Clock
) -> None:
    await store.put(record("a"))
    clock.time += TTL_S - 10
    await store.put(record("b", "a"))
    clock.time += TTL_S - 10
    assert [each.id for each in await store.chain("o", "b", 9999)] == ["a", "b"]
    clock.time += 20
    assert await store.get("o", "a") is None
    assert await store.chain("o", "b", 9999) == []
    assert await store.holders("o", ["msg_a"], 9999) == {}
    assert not await store.delete("o", "a")
    await store.purge()
    clock.time -= 100
    assert await store.get("o", "b") is None


async def test_what_was_continued_longest_ago_makes_room(store: ResponseStore, clock: Clock) -> None:
    for number in range(6):
        clock.time += 10
        await store.put(record(f"r{number}", chain=f"chain{number}", size=2000))
        if number == 2:
            clock.time += 10
            await store.put(record("again", "r0", chain="chain0"))
    await store.purge()
    found = [number for number in range(6) if await store.get("o", f"r{number}") is not None]
    assert found == [0, 3, 4, 5]


@pytest.mark.parametrize("odd", ["", "\n", "\x01\x7f'\"", "\U0001f600" * (MOST_ID // 4)])
async def test_odd_ids(store: ResponseStore, odd: str) -> None:
    """The longest does not become shorter where a database packs it."""
    odd = odd if len(odd.encode()) < MOST_ID else os.urandom(MOST_ID // 2).hex()
    assert is_id(odd)
    assert await store.get("o", odd) is None
    assert await store.chain("o", odd, 9999) == []
    assert await store.holders("o", [odd, "msg_x"], 9999) == {}
    assert not await store.delete("o", odd)
    await store.put(replace(record(odd), items=("msg_a", odd)))
    assert set(await store.holders("o", ["msg_a", odd], 9999)) == {"msg_a", odd}
    assert [each.id for each in await store.chain("o", odd, 9999)] == [odd]
    assert await store.delete("o", odd)


@pytest.mark.parametrize("odd", ["\0", "a\0b", "x" * (MOST_ID + 1), "\U0001f600" * 300, "\ud83d"])
def test_what_is_no_id(odd: str) -> None:
    assert not is_id(odd)


async def test_many_at_once(store: ResponseStore) -> None:
    await asyncio.gather(*(store.put(record(f"r{number}", chain=f"c{number}")) for number in range(100)))
    found = await asyncio.gather(*(store.get("o", f"r{number}") for number in range(100)))
    assert all(found)
