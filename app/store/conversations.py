"""What a store of conversations is: lists of items that grow at their end, each in reach of its owner alone.

A conversation's id is the chain of it: what is said in it, and the responses to that, expire together,
`ttl_s` after the last of them was written, and make room together.

All implementations pass one test (`tests/app/store/test_conversations_conformance.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .base import Record
from .runs import Step


@dataclass(frozen=True, slots=True)
class Conversation:
    owner: str
    id: str
    """Made here, and the same for no two conversations of whatever owners."""
    created: int
    """Seconds since the epoch."""
    metadata: bytes
    """A JSON object."""


class Entry(NamedTuple):
    """One item of a conversation: the id under which it is found in it, and its JSON."""

    id: str
    body: bytes


class ConversationStore(Protocol):
    """Every method raises `StoreDown` when the store cannot be used; what it writes is durable on return."""

    async def create(self, conversation: Conversation, entries: Sequence[Entry]) -> None:
        """The ids of `entries` are all different."""
        ...

    async def get(self, owner: str, id: str) -> Conversation | None: ...

    async def update(self, owner: str, id: str, metadata: bytes) -> Conversation | None:
        """With other metadata; None: there is no such conversation."""
        ...

    async def delete(self, owner: str, id: str) -> bool:
        """Whether there was one. Responses that were made in it stay."""
        ...

    async def add(
        self, owner: str, id: str, entries: Sequence[Entry], record: Record | None = None
    ) -> Collection[str] | None:
        """Append all of `entries` next to each other, and keep `record` with them, or nothing of it.

        The ids of entries that are taken already: then nothing was written. Empty: it is done. None: there is
        no such conversation, and `record` alone was kept.
        """
        ...

    async def end_turn(self, step: Step, id: str, entries: Sequence[Entry]) -> Collection[str] | None:
        """What a background run has come to, and `entries` that are appended with it, or nothing of it.

        The ids of entries that are taken already: then nothing was written. None: neither was, as
        `RunStore.step` refuses it. Empty: it is done; of a conversation that is gone the step alone.
        """
        ...

    async def entries(self, owner: str, id: str, max_bytes: int) -> Sequence[Entry] | None:
        """All of them, the oldest first; None: no such conversation. Raises `ChainTooLong`."""
        ...

    async def page(
        self, owner: str, id: str, after: str | None, limit: int, newest_first: bool, max_bytes: int
    ) -> Sequence[Entry] | None:
        """At most `limit` entries behind `after`, and no more than `max_bytes` of them but for the first.

        None: there is no such conversation, or no entry `after` in it.
        """
        ...

    async def entry(self, owner: str, id: str, entry: str) -> Entry | None: ...

    async def remove(self, owner: str, id: str, entry: str) -> bool:
        """Take one entry out; whether it was there."""
        ...

    async def named(self, owner: str, ids: Sequence[str], max_bytes: int) -> Mapping[str, bytes]:
        """The bodies of these entries of all the owner's conversations, as far as there are some.

        Raises `ChainTooLong`.
        """
        ...


def fitting(entries: Sequence[Entry], max_bytes: int) -> Sequence[Entry]:
    """The first of `entries` that are no more than `max_bytes`, one at least."""
    size = 0
    for place, entry in enumerate(entries):
        size += len(entry.body)
        if place and size > max_bytes:
            return entries[:place]
    return entries
