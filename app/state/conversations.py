"""Conversations: what the routes do with them, and a request that is made in one.

Such a request is asked with all the items of the conversation before its own. What it added and what it was
answered are appended together, next to each other, in the transaction that keeps the response, and before its
client knows that it has ended. Turns may overlap: each sees what was there when it began, and they are
appended in the order in which they end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from translators.errors import ProxyError, bad_request
from translators.ir import Json
from translators.responses.decode_parts import wrong

from ..ids import new_id
from ..request import Request
from ..store import Record
from ..store.conversations import Conversation, Entry
from ..store.runs import Step
from . import chaining
from .conversation_items import check_items, is_id, items_of, place_behind, shown, to_entries
from .state import Keeping, State

if TYPE_CHECKING:
    from .stored import Page

T = TypeVar("T")

_SAYING = ("completed", "incomplete")
"""The statuses of responses that become part of their conversation; a failed turn can be asked again."""


class Conversations:
    """The conversations of one owner; every method raises `ProxyError`, 404 for what is not there."""

    def __init__(self, state: State, owner: str) -> None:
        self._state, self._owner = state, owner

    async def create(self, metadata: bytes, items: Sequence[Json], key: Callable[[], bytes]) -> Json:
        """`key`: of summaries among the items."""
        made = Conversation(self._owner, new_id("conv_"), int(time.time()), metadata)
        entries = await self._entries(items, key)
        await self._state.conversations(lambda kept: kept.create(made, entries))
        return _object(made)

    async def get(self, id: str) -> Json:
        _check(id)
        return _object(_there(id, await self._state.conversations(lambda kept: kept.get(self._owner, id))))

    async def update(self, id: str, metadata: bytes) -> Json:
        _check(id)
        found = await self._state.conversations(lambda kept: kept.update(self._owner, id, metadata))
        return _object(_there(id, found))

    async def delete(self, id: str) -> Json:
        _check(id)
        if not await self._state.conversations(lambda kept: kept.delete(self._owner, id)):
            raise not_found(id)
        return {"id": id, "object": "conversation.deleted", "deleted": True}

    async def add(
        self, id: str, items: Sequence[Json], include: Collection[str], key: Callable[[], bytes]
    ) -> Json:
        """The list of what was added; `key`: of summaries among it."""
        await self.get(id)  # whatever is wrong with the items, there is nowhere to put them
        entries = await self._entries(items, key)
        taken = await self._state.conversations(lambda kept: kept.add(self._owner, id, entries))
        if _there(id, taken):
            raise _taken(min(taken or ()))
        return _list([shown(entry, include) for entry in entries], has_more=False)

    async def page(self, id: str, page: Page, include: Collection[str]) -> Json:
        found = await self._page(id, page.after, page.limit + 1, page)
        entries = found[: page.limit]
        more = len(found) > page.limit or bool(entries and await self._page(id, entries[-1].id, 1, page))
        return _list([shown(entry, include) for entry in entries], more)

    async def _page(self, id: str, after: str | None, limit: int, page: Page) -> Sequence[Entry]:
        _check(id)
        found, most = None, self._state.max_bytes
        if after is None or is_id(after):
            found = await self._state.conversations(
                lambda kept: kept.page(self._owner, id, after, limit, page.newest_first, most)
            )
        if found is None:
            await self.get(id)
            raise bad_request(f"`after`: no item has the id {str(after)[:80]!r}", "after")
        return found

    async def item(self, id: str, item: str, include: Collection[str]) -> Json:
        await self.get(id)
        found = None
        if is_id(item):
            found = await self._state.conversations(lambda kept: kept.entry(self._owner, id, item))
        if found is None:
            raise _item_not_found(item)
        return shown(found, include)

    async def remove(self, id: str, item: str) -> Json:
        """The conversation without that item."""
        made = await self.get(id)
        gone = is_id(item) and await self._state.conversations(
            lambda kept: kept.remove(self._owner, id, item)
        )
        if not gone:
            raise _item_not_found(item)
        return made

    async def said(self, id: str) -> Sequence[Entry]:
        """All of its items, the oldest first."""
        found, most = None, self._state.max_bytes
        if is_id(id):
            asked = self._state.conversations(lambda kept: kept.entries(self._owner, id, most))
            found = await self._state.within(asked, "conversation")
        if found is None:
            raise not_found(id, "conversation")
        return found

    async def append(self, id: str, items: Sequence[Any], record: Record | None) -> None:
        """A turn that has ended, and its response; of a conversation that is gone the response alone."""
        taken: set[str] = set()
        while True:
            entries = to_entries(items, new_id, taken)
            found = await self._state.conversations(
                lambda kept: kept.add(self._owner, id, entries, record)  # noqa: B023 - asked at once
            )
            if not found:
                return
            taken |= set(found)  # there are backends that give the same ids again

    async def end_turn(self, id: str, items: Sequence[Any], step: Step) -> bool:
        """The same of a background run, together with its end; whether it was written."""
        taken: set[str] = set()
        while True:
            entries = to_entries(items, new_id, taken)
            found = await self._state.conversations(
                lambda kept: kept.end_turn(step, id, entries)  # noqa: B023 - asked at once
            )
            if not found:
                return found is not None
            taken |= set(found)

    async def _entries(self, items: Sequence[Json], key: Callable[[], bytes]) -> list[Entry]:
        items = await self._state.with_references(self._owner, list(items), {})
        seen: set[str] = set()
        for id in (item["id"] for item in items if item.get("id") is not None):
            if id in seen:
                raise _taken(id)
            seen.add(id)
        check_items(items, new_id, key)
        return to_entries(items, new_id)


class Turn(Keeping):
    """An answer on its way into its conversation, and into the store unless it says `store: false`."""

    def __init__(self, state: State, owner: str, conversation: str, place: str, request: Request) -> None:
        """`place`: where in the conversation the turn began."""
        super().__init__(state.put, owner, conversation, request)
        self._conversations, self._place = Conversations(state, owner), place

    def record(self, response: Json, written: bytes) -> Record:
        return replace(super().record(response, written), previous=self._place)

    async def step(self, state: State, step: Step) -> bool:
        """With the turn, if that has ended: a run that somebody else ends at the same time adds nothing."""
        response = orjson.loads(step.record.response) if step.ended and step.record is not None else {}
        if response.get("status") not in _SAYING:
            return await super().step(state, step)
        return await self._conversations.end_turn(self._chain, self._items(response), step)

    async def _keep(self, response: Json, written: bytes) -> None:
        stored = self._request.context.stored and self.is_named(response)
        record = self.record(response, written) if stored else None
        if response.get("status") in _SAYING:
            await self._conversations.append(self._chain, self._items(response), record)
        elif record is not None:
            await self._put(record)

    def _items(self, response: Json) -> list[Any]:
        return [*self._request.own, *response["output"]]


async def enter(state: State, request: Request, owner: str) -> None:
    """Put what the conversation of a request holds before its own items, and have its turn appended to it."""
    body = request.body
    if body.get("previous_response_id") is not None:
        message = (
            "Mutually exclusive parameters. Ensure you are only providing one of: "
            "'previous_response_id' or 'conversation'."
        )
        raise bad_request(message, "conversation", "mutually_exclusive_parameters")
    id = _named(body["conversation"])
    if not isinstance(body.get("input"), str | list | None):
        raise wrong("/input", "a string or a list of items")
    await state.check()
    entries = await Conversations(state, owner).said(id)
    own = chaining.unknown(chaining.own_items(body.get("input")), {entry.id for entry in entries})
    request.own = await state.with_references(owner, own, {})
    request.continues(None, items_of(entries) + request.own, conversation=id)
    if body.get("store") is not False:
        request.is_stored()
    elif body.get("background"):
        raise bad_request("`background` needs a response that is stored: leave out `store`", "background")
    request.keeping = Turn(state, owner, id, place_behind(id, entries), request)


def _named(value: Any) -> str:
    """The id in a request's `conversation`; raises `ProxyError` (400)."""
    if isinstance(value, dict):
        value = value.get("id")
    if not isinstance(value, str):
        raise wrong("/conversation", "the id of a conversation, or an object with its `id`")
    return value


def _check(id: str) -> None:
    if not is_id(id):
        raise not_found(id)


def _there(id: str, found: T | None) -> T:
    if found is None:
        raise not_found(id)
    return found


def _object(conversation: Conversation) -> Json:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created,
        "metadata": orjson.loads(conversation.metadata),
    }


def _list(data: Sequence[Json], has_more: bool) -> Json:
    """OpenAI's type has no null for the ids of an empty list."""
    first, last = (data[0]["id"], data[-1]["id"]) if data else ("", "")
    return {"object": "list", "data": data, "first_id": first, "last_id": last, "has_more": has_more}


def not_found(id: str, param: str | None = None) -> ProxyError:
    message = f"Conversation with id '{id[:80]}' not found."
    return ProxyError("not_found", message, param, "conversation_not_found")


def _item_not_found(id: str) -> ProxyError:
    return ProxyError("not_found", f"Item with id '{id[:80]}' not found.", code="item_not_found")


def _taken(id: str) -> ProxyError:
    message = f"Invalid 'items': an item with id '{id[:80]}' is already in the conversation."
    return bad_request(message, "items", "item_already_exists")
