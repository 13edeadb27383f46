"""What a store of responses is: records in, records out, each in reach of its owner alone.

A record is one response with the input that was its own. A conversation is a *chain* of records, each
naming the one before it, so that a turn is written once however long the conversation is. Records of one
chain expire together, `ttl_s` after the last of them was written: a conversation that goes on loses nothing.

Ids of responses and of items come from backends and clients: only those that `is_id` takes get here.

All implementations pass one test (`tests/app/store/test_conformance.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .conversations import ConversationStore
    from .runs import RunStore

MAX_CHAIN = 100_000
"""Records of one chain that are read at most; its bytes are limited too, and sooner."""


MOST_ID = 1024
"""Bytes of an id. An entry of a PostgreSQL index holds 2,704, other columns included."""


class StoreDown(Exception):
    """The store cannot do it now (gone, locked, full, too slow); the text says why."""


class ChainTooLong(Exception):
    """The records of a chain hold more bytes than were asked for at most."""


def is_id(text: str) -> bool:
    """Whether every store takes it as an id; under any other nothing is stored.

    PostgreSQL takes no NUL in a text, no database half a surrogate pair.
    """
    try:
        return len(text.encode()) <= MOST_ID and "\0" not in text
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True, slots=True)
class Record:
    """One response. `input` is a JSON array of the items of this turn, `response` the response's JSON."""

    owner: str
    """Whose it is: the hash of an API key, or `local` where none is asked for."""
    id: str
    chain: str
    """The same for all responses of a conversation, its branches too."""
    previous: str | None
    created: int
    """Seconds since the epoch."""
    input: bytes
    response: bytes
    items: Sequence[str] = ()
    """Ids of the output items, under which later requests may refer to them; written, not read."""
    target: str = ""
    """Whose backend (`provider/model`) stored it too and can be asked to go on from it; empty: nobody's."""
    upstream: str = ""
    """Its id there."""

    @property
    def size(self) -> int:
        return len(self.input) + len(self.response)


class ResponseStore(Protocol):
    """Every method raises `StoreDown` when the store cannot be used."""

    @property
    def conversations(self) -> ConversationStore: ...

    @property
    def runs(self) -> RunStore: ...

    async def check(self) -> None:
        """Whether something could be written now."""
        ...

    async def put(self, record: Record) -> None:
        """Durable on return. A record under the same owner and id is replaced."""
        ...

    async def get(self, owner: str, id: str) -> Record | None: ...

    async def chain(self, owner: str, id: str, max_bytes: int) -> list[Record]:
        """The record and those before it, the oldest first; empty: there is no such record.

        The first of them names a previous one when that is gone. Raises `ChainTooLong`.
        """
        ...

    async def holders(self, owner: str, items: Sequence[str], max_bytes: int) -> Mapping[str, Record]:
        """Which record holds each of these output items, as far as there is one; raises `ChainTooLong`."""
        ...

    async def delete(self, owner: str, id: str) -> bool:
        """Whether there was one."""
        ...

    async def purge(self) -> None:
        """Take out what has expired, and of the rest the oldest chains that are over the size."""
        ...

    async def aclose(self) -> None: ...
