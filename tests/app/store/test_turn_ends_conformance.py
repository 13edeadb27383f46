"""The end of a background run and of its turn in a conversation: both or neither, in every store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.store.base import ResponseStore
from app.store.conversations import Conversation, Entry
from app.store.runs import ANYONES, Batch, Step

from .test_conformance import record

TURN = [Entry("msg_1", b'{"a":1}'), Entry("msg_2", b'{"a":2}')]


def end(worker: str = "w", first: int = 2) -> Step:
    ended = replace(record("a", chain="conv"), response=b'{"ended":true}')
    return Step("o", "a", worker, 200, Batch(first, first, b"last"), ended, True)


@pytest.fixture
async def begun(store: ResponseStore) -> ResponseStore:
    """With a run in a conversation that holds nothing."""
    await store.conversations.create(Conversation("o", "conv", 1, b"{}"), [])
    await store.runs.begin(record("a", chain="conv"), "w", 100, Batch(0, 1, b"first"))
    return store


async def said(store: ResponseStore) -> list[str] | None:
    found = await store.conversations.entries("o", "conv", 9999)
    return None if found is None else [each.id for each in found]


async def told(store: ResponseStore) -> tuple[bool, int, bytes]:
    run, _ = await store.runs.read("o", "a", -1)
    kept = await store.get("o", "a")
    assert run is not None
    assert kept is not None
    return run.ended, run.last, kept.response


async def test_both_are_written(begun: ResponseStore) -> None:
    assert await begun.conversations.end_turn(end(), "conv", TURN) == ()
    assert await begun.conversations.entries("o", "conv", 9999) == TURN
    assert await told(begun) == (True, 2, b'{"ended":true}')
    assert [each.data for each in (await begun.runs.read("o", "a", 1))[1]] == [b"last"]
    assert await begun.conversations.end_turn(end(first=3), "conv", [Entry("msg_3", b"{}")]) is None
    assert await said(begun) == ["msg_1", "msg_2"]


async def test_of_a_run_that_was_ended_nothing_is(begun: ResponseStore) -> None:
    cancelled = replace(end("other"), free_before=ANYONES)
    assert await begun.runs.step(cancelled)
    assert await begun.conversations.end_turn(end(), "conv", TURN) is None
    assert await said(begun) == []


async def test_of_a_run_that_was_deleted_nothing_is(begun: ResponseStore) -> None:
    assert await begun.delete("o", "a")
    assert await begun.conversations.end_turn(end(), "conv", TURN) is None
    assert await said(begun) == []


async def test_ids_that_are_taken_are_told_and_nothing_is_written(begun: ResponseStore) -> None:
    assert await begun.conversations.add("o", "conv", TURN[1:]) == ()
    assert list(await begun.conversations.end_turn(end(), "conv", TURN) or ()) == ["msg_2"]
    assert await said(begun) == ["msg_2"]
    assert (await told(begun))[:2] == (False, 1)
    assert await begun.conversations.end_turn(end(), "conv", TURN[:1]) == ()
    assert await said(begun) == ["msg_2", "msg_1"]


async def test_of_a_conversation_that_is_gone_the_run_ends(begun: ResponseStore) -> None:
    assert await begun.conversations.delete("o", "conv")
    assert await begun.conversations.end_turn(end(), "conv", TURN) == ()
    assert await said(begun) is None
    assert (await told(begun))[0]


async def test_nobody_ends_a_turn_in_anothers_conversation(begun: ResponseStore) -> None:
    await begun.conversations.create(Conversation("p", "theirs", 1, b"{}"), [])
    assert await begun.conversations.end_turn(end(), "theirs", TURN) == ()
    assert await begun.conversations.entries("p", "theirs", 9999) == []
