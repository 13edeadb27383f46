"""Encryption of conversations at rest: their items and metadata, each bound to where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from .base import Record
from .conversations import Conversation, ConversationStore, Entry
from .runs import Step

Seal = Callable[[bytes, str], bytes]
"""(what is sealed or opened, what it is bound to) -> the other; opening raises `StoreDown`."""


class SealedConversations:
    """Seals on the way into another store, opens on the way out.

    An item is bound to its owner and its id, so that it can be found without its conversation.
    """

    def __init__(
        self,
        store: ConversationStore,
        seal: Seal,
        open: Seal,
        seal_record: Callable[[Record], Record],
        seal_step: Callable[[Step], Step],
    ) -> None:
        self._store, self._seal, self._open = store, seal, open
        self._seal_record, self._seal_step = seal_record, seal_step

    async def create(self, conversation: Conversation, entries: Sequence[Entry]) -> None:
        bound = _bound(conversation.owner, conversation.id)
        sealed = replace(conversation, metadata=self._seal(conversation.metadata, bound))
        await self._store.create(sealed, self._sealed(conversation.owner, entries))

    async def get(self, owner: str, id: str) -> Conversation | None:
        return self._opened_head(await self._store.get(owner, id))

    async def update(self, owner: str, id: str, metadata: bytes) -> Conversation | None:
        sealed = self._seal(metadata, _bound(owner, id))
        return self._opened_head(await self._store.update(owner, id, sealed))

    async def delete(self, owner: str, id: str) -> bool:
        return await self._store.delete(owner, id)

    async def add(
        self, owner: str, id: str, entries: Sequence[Entry], record: Record | None = None
    ) -> Collection[str] | None:
        sealed = None if record is None else self._seal_record(record)
        return await self._store.add(owner, id, self._sealed(owner, entries), sealed)

    async def end_turn(self, step: Step, id: str, entries: Sequence[Entry]) -> Collection[str] | None:
        return await self._store.end_turn(self._seal_step(step), id, self._sealed(step.owner, entries))

    async def entries(self, owner: str, id: str, max_bytes: int) -> Sequence[Entry] | None:
        return self._opened(owner, await self._store.entries(owner, id, max_bytes))

    async def page(
        self, owner: str, id: str, after: str | None, limit: int, newest_first: bool, max_bytes: int
    ) -> Sequence[Entry] | None:
        return self._opened(owner, await self._store.page(owner, id, after, limit, newest_first, max_bytes))

    async def entry(self, owner: str, id: str, entry: str) -> Entry | None:
        found = await self._store.entry(owner, id, entry)
        return None if found is None else Entry(found.id, self._open(found.body, _bound(owner, found.id)))

    async def remove(self, owner: str, id: str, entry: str) -> bool:
        return await self._store.remove(owner, id, entry)

    async def named(self, owner: str, ids: Sequence[str], max_bytes: int) -> Mapping[str, bytes]:
        found = await self._store.named(owner, ids, max_bytes)
        return {id: self._open(body, _bound(owner, id)) for id, body in found.items()}

    def _sealed(self, owner: str, entries: Sequence[Entry]) -> Sequence[Entry]:
        return [Entry(each.id, self._seal(each.body, _bound(owner, each.id))) for each in entries]

    def _opened(self, owner: str, entries: Sequence[Entry] | None) -> Sequence[Entry] | None:
        if entries is None:
            return None
        return [Entry(each.id, self._open(each.body, _bound(owner, each.id))) for each in entries]

    def _opened_head(self, found: Conversation | None) -> Conversation | None:
        if found is None:
            return None
        return replace(found, metadata=self._open(found.metadata, _bound(found.owner, found.id)))


def _bound(owner: str, id: str) -> str:
    return f"{owner}\0{id}"
