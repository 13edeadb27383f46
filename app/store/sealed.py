"""Encryption at rest: what was said is written as AES-256-GCM, bound to its owner and id.

What finds a record (ids, owner, times, sizes) stays readable for the database.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .base import Record, ResponseStore, StoreDown
from .sealed_conversations import SealedConversations
from .sealed_runs import SealedRuns

_PURPOSE = b"dragoman store, version 1: "
_NONCE = 12


class SealedStore:
    """Seals on the way into another store, opens on the way out."""

    def __init__(self, store: ResponseStore, secret: str) -> None:
        """`secret`: any text; what is sealed with one can be read with the same only."""
        self._store = store
        self._cipher = AESGCM(hashlib.sha256(_PURPOSE + secret.encode()).digest())
        self.runs = SealedRuns(store.runs, self._sealed, self._seal, self._open_one)
        self.conversations = SealedConversations(
            store.conversations, self._seal, self._open_one, self._sealed, self.runs.sealed_step
        )

    async def check(self) -> None:
        await self._store.check()

    async def put(self, record: Record) -> None:
        await self._store.put(self._sealed(record))

    async def get(self, owner: str, id: str) -> Record | None:
        record = await self._store.get(owner, id)
        return None if record is None else self._open(record)

    async def chain(self, owner: str, id: str, max_bytes: int) -> list[Record]:
        return [self._open(record) for record in await self._store.chain(owner, id, max_bytes)]

    async def holders(self, owner: str, items: Sequence[str], max_bytes: int) -> Mapping[str, Record]:
        found = await self._store.holders(owner, items, max_bytes)
        opened = {id: self._open(record) for id, record in {each.id: each for each in found.values()}.items()}
        return {item: opened[record.id] for item, record in found.items()}

    async def delete(self, owner: str, id: str) -> bool:
        return await self._store.delete(owner, id)

    async def purge(self) -> None:
        await self._store.purge()

    async def aclose(self) -> None:
        await self._store.aclose()

    def _sealed(self, record: Record) -> Record:
        given, response = (self._seal(each, _bound(record)) for each in (record.input, record.response))
        return replace(record, input=given, response=response)

    def _open(self, record: Record) -> Record:
        given, response = (self._open_one(each, _bound(record)) for each in (record.input, record.response))
        return replace(record, input=given, response=response)

    def _seal(self, plain: bytes, bound: str) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._cipher.encrypt(nonce, plain, bound.encode())

    def _open_one(self, sealed: bytes, bound: str) -> bytes:
        try:
            return self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], bound.encode())
        except (InvalidTag, ValueError):
            id = bound.partition("\0")[2]
            raise StoreDown(f"{id} was sealed with another store.encryption_key") from None


def _bound(record: Record) -> str:
    return f"{record.owner}\0{record.id}"
