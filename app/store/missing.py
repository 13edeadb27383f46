"""A store that was asked for and cannot be had: what needs it is refused, the rest goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from .base import Record, StoreDown
from .conversations import ConversationStore
from .runs import RunStore


class MissingStore:
    def __init__(self, reason: str) -> None:
        self._reason = reason

    @property
    def conversations(self) -> ConversationStore:
        self._refuse()

    @property
    def runs(self) -> RunStore:
        self._refuse()

    async def check(self) -> None:
        self._refuse()

    async def put(self, record: Record) -> None:
        self._refuse()

    async def get(self, owner: str, id: str) -> Record | None:
        self._refuse()

    async def chain(self, owner: str, id: str, max_bytes: int) -> list[Record]:
        self._refuse()

    async def holders(self, owner: str, items: Sequence[str], max_bytes: int) -> Mapping[str, Record]:
        self._refuse()

    async def delete(self, owner: str, id: str) -> bool:
        self._refuse()

    async def purge(self) -> None:
        self._refuse()

    async def aclose(self) -> None:
        """Nothing is open."""

    def _refuse(self) -> NoReturn:
        raise StoreDown(self._reason)
