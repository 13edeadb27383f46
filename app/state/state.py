"""Stored responses in the path of a request: what it continues, and its answer on the way out.

An answer is kept before its client knows that it has ended: a body before it is sent, a stream while its last
event is held back. Where that fails nothing is acknowledged: a body becomes 503, a stream `response.failed`.
Requests that say `store: false` and continue nothing never come here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import orjson
import structlog

from translators.dialect import End
from translators.errors import ProxyError, bad_request
from translators.ir import Json
from translators.packed import packed
from translators.responses.decode_parts import wrong
from translators.responses.frames import failed_end

from ..ids import new_id
from ..request import Request
from ..store import ChainTooLong, Record, ResponseStore, StoreDown, is_id
from ..store.conversations import ConversationStore, Entry
from ..store.runs import Key, RunStore, Step
from . import chaining
from .conversation_items import INCLUDABLE, items_of, shown, until
from .links import Link
from .run_log import is_active
from .runs import current

T = TypeVar("T")
Put = Callable[[Record], Awaitable[None]]

RETRY_AFTER_S = 5
CHECK_S = 0.5
"""How long `GET /ready` waits for the store: orchestrators wait for a second."""
_GOOD = ("completed", "incomplete")
"""Ends from which a backend goes on."""
NOT_FOUND = "previous_response_not_found"

_log = structlog.get_logger("dragoman.store")


class NotKept(Exception):
    """An answer could not be stored; `error` is what its client is told. No backend is asked again for it."""

    def __init__(self, error: ProxyError) -> None:
        super().__init__(str(error))
        self.error = error


class State:
    """A store, and whether it did what it was asked last."""

    remembers = False
    """Whether a response that is not stored can be continued all the same."""

    def __init__(
        self, store: ResponseStore, max_bytes: int, count: Callable[[str], None] | None = None
    ) -> None:
        """`max_bytes`: most of a history that goes into one request; `count` is told what becomes of runs."""
        self._store, self.max_bytes, self._count = store, max_bytes, count
        self.at_work: Container[Key] = ()
        """The background runs of this process: alive, however late their leases are renewed (a store that was
        gone, a clock that was set, a machine that slept)."""
        self._down = False

    async def prepare(self, request: Request, owner: str) -> None:
        """Put what the request continues into it, and have its answer kept; raises `ProxyError`."""
        body = request.body
        previous, keep = body.get("previous_response_id"), body.get("store") is not False
        if (body.get("background") and not keep) or body.get("conversation") is not None:
            return  # refused later
        if not isinstance(body.get("input"), str | list | None):
            raise wrong("/input", "a string or a list of items")
        own = chaining.own_items(body.get("input"))
        if keep and self.keeps:
            await self.check()  # first: reading may go on where nothing can be written
        if previous is not None:
            chain = await self._expand(request, owner, previous, own)
        else:
            chain = await self._resolve(request, owner, own)
        if keep and self.keeps:
            request.is_stored()
            request.keeping = Keeping(self.put, owner, chain, request)
        elif self.remembers:
            request.keeping = Keeping(self.remember, owner, chain, request)

    @property
    def keeps(self) -> bool:
        """Whether anything is stored."""
        return True

    async def check(self) -> None:
        """Asked before a backend is: what cannot be kept is paid for in vain. Raises `ProxyError`."""
        if self._down:
            await self._ask(self._store.check(), proves=True)

    async def _expand(self, request: Request, owner: str, previous: Any, own: list[Any]) -> str:
        records = await self.chain(owner, previous) if isinstance(previous, str) else []
        entries = await self._before(owner, records[0]) if records else None
        if entries is None:
            raise _not_found(previous, bool(records))
        if is_active(records[-1].response):
            records[-1] = await self._ended(records[-1])
        before = items_of(entries) + chaining.history(records)
        own = await self.with_references(owner, own, chaining.by_id(before))
        new = chaining.joined(before, own)
        request.own = new[len(before) :]
        request.continues(previous, new)
        last = records[-1]
        if last.upstream:
            request.link = Link(last.target, last.upstream, chaining.output_of(last))
        return last.chain

    async def _before(self, owner: str, first: Record) -> Sequence[Entry] | None:
        """What a chain stands after: what its conversation held when it began; None: that is gone."""
        if first.previous is None:
            return ()
        conversation, slash, last = first.previous.partition("/")
        if not slash:
            return None
        asked = self.conversations(lambda kept: kept.entries(owner, conversation, self.max_bytes))
        entries = await self.within(asked)
        return None if entries is None else until(entries, last)

    async def _ended(self, record: Record) -> Record:
        """A background response as it ended; raises `ProxyError` (400) while it has not."""
        now = await current(self, record)
        if not is_active(now.response):
            return now
        words = f"Previous response with id {record.id!r} is still being made: wait for its end or cancel it."
        raise bad_request(words, "previous_response_id", "previous_response_not_completed")

    async def _resolve(self, request: Request, owner: str, own: list[Any]) -> str:
        """A new chain; items that are stored are put in the place of references to them."""
        request.own = await self.with_references(owner, own, {})
        if request.own is not own:
            request.continues(None, request.own)
        return new_id("")

    async def with_references(self, owner: str, own: list[Any], known: dict[str, Any]) -> list[Any]:
        wanted = chaining.references(own)
        if not wanted:
            return own
        elsewhere = [id for id in wanted if id not in known and is_id(id)]
        if elsewhere:
            holders = await self.holders(owner, elsewhere)
            records = {record.id: record for record in holders.values()}
            for record in records.values():
                known |= chaining.by_id(chaining.output_of(record))
            lost = [id for id in elsewhere if id not in known]
            if lost:
                known |= await self.said(owner, lost)
        return chaining.resolved(own, known)

    # --- what the routes ask -------------------------------------------------------------

    async def response(self, owner: str, id: str) -> bytes:
        """The response's JSON; raises `ProxyError`."""
        record = await current(self, await self.record(owner, id))
        return record.response

    async def record(self, owner: str, id: str) -> Record:
        """A response as it was written last; raises `ProxyError`."""
        record = await self._ask(self._store.get(owner, id)) if is_id(id) else None
        if record is None:
            raise response_not_found(id)
        return record

    def say_status(self, id: str, status: str, **more: Any) -> None:
        """A background run has another status."""
        structlog.get_logger("dragoman").info(
            "provider:background_status", response_id=id, status=status, **more
        )
        if self._count is not None:
            self._count(status)

    async def runs(self, ask: Callable[[RunStore], Awaitable[T]]) -> T:
        """What the store says of background runs; raises `ProxyError`."""

        async def asked() -> T:
            return await ask(self._store.runs)

        return await self._ask(asked())

    async def input_items(self, owner: str, id: str) -> list[Json]:
        """The response's input with all that it stood after, in order; raises `ProxyError`."""
        records = await self.chain(owner, id)
        if not records:
            raise response_not_found(id)
        before = await self._before(owner, records[0]) or ()
        return [shown(entry, INCLUDABLE) for entry in before] + chaining.listed(records)

    async def delete(self, owner: str, id: str) -> None:
        if not (is_id(id) and await self._ask(self._store.delete(owner, id))):
            raise response_not_found(id)

    async def put(self, record: Record) -> None:
        await self._ask(self._store.put(record), proves=True)

    async def remember(self, record: Record) -> None:
        """Keep a response that is not to be stored; only where `remembers`."""
        await self._ask(self._store.put(record))

    async def trouble(self) -> str | None:
        """Why the store cannot be used now, None: it can. The log says more, once."""
        try:
            async with asyncio.timeout(CHECK_S):
                await self._ask(self._store.check(), proves=True)
        except TimeoutError:
            return f"it gives no answer within {CHECK_S:g} s"
        except ProxyError:
            return "it cannot be used; requests that need it get 503"
        return None

    async def aclose(self) -> None:
        await self._store.aclose()

    async def chain(self, owner: str, id: str) -> list[Record]:
        """A response and those before it, the oldest first; raises `ProxyError`."""
        if not is_id(id):
            return []
        return chaining.unbroken(await self.within(self._store.chain(owner, id, self.max_bytes)))

    async def holders(self, owner: str, items: Sequence[str]) -> Mapping[str, Record]:
        """Which response holds each of these output items; raises `ProxyError`."""
        return await self.within(self._store.holders(owner, items, self.max_bytes))

    async def said(self, owner: str, items: Sequence[str]) -> Mapping[str, Any]:
        """These items, as far as they are in conversations; raises `ProxyError`."""
        found = self.conversations(lambda kept: kept.named(owner, items, self.max_bytes))
        return {id: orjson.loads(body) for id, body in (await self.within(found)).items()}

    async def conversations(self, ask: Callable[[ConversationStore], Awaitable[T]]) -> T:
        """What is asked of the conversations that are stored; raises `ProxyError`, `ChainTooLong`."""

        async def asked() -> T:
            return await ask(self._store.conversations)

        return await self._ask(asked())

    async def within(self, asked: Awaitable[T], param: str = "previous_response_id") -> T:
        """Raises `ProxyError` (400), naming `param`, when it is more than may go into one request."""
        try:
            return await self._ask(asked)
        except ChainTooLong:
            message = (
                f"what is stored of this conversation is larger than {self.max_bytes} bytes "
                "(server.max_body_bytes): begin a new one with a summary of it"
            )
            raise ProxyError("context_length", message, param) from None

    async def _ask(self, asked: Awaitable[T], proves: bool = False) -> T:
        """Raises `ProxyError` (503) when the store cannot; the log says why, once until it can again.

        `proves`: success shows that responses can be stored. Reading goes on where nothing can be written.
        """
        try:
            done = await asked
        except StoreDown as down:
            if not self._down:
                _log.error("store:down", reason=str(down))
            self._down = True
            raise unavailable() from down
        if proves and self._down:
            self._down = False
            _log.warning("store:up")
        return done


class Keeping:
    """One answer on its way into the store; `on_end` is what a stream's client asks (`Client.on_end`)."""

    def __init__(self, put: Put, owner: str, chain: str, request: Request) -> None:
        self._put, self._owner, self._chain, self._request = put, owner, chain, request
        self._done = False
        self.target = self.upstream = ""
        """Whose backend stores it too, and its id there."""
        self.failure: ProxyError | None = None
        """Why a stream that ended well was told as failed."""

    async def whole(self, body: bytes, response: Json) -> None:
        """Keep an answer that is one `body`, as which `response` is written; raises `NotKept`."""
        try:
            await self._keep(response, body)
        except ProxyError as error:
            raise NotKept(error) from error

    async def on_end(self, end: End, data: bytes) -> bytes:
        """`data` once the response is kept, or with a failure in the place of its last event."""
        if self._done:
            return data if self.failure is None else b""
        self._done, self.upstream = True, end.upstream
        try:
            await self._keep(end.response, orjson.dumps(end.response))
        except ProxyError as error:
            self.failure = error
            return data.rpartition(end.frame)[0] + failed_end(end, error)
        return data

    async def step(self, state: State, step: Step) -> bool:
        """Write what a background run has come to, whose answer this is; whether it was (`RunStore.step`)."""
        return await state.runs(lambda runs: runs.step(step))

    async def _keep(self, response: Json, written: bytes) -> None:
        if self.is_named(response):
            await self._put(self.record(response, written))

    def is_named(self, response: Json) -> bool:
        """Whether there is something by which it could be asked for."""
        id = response.get("id")
        return isinstance(id, str) and is_id(id)

    def record(self, response: Json, written: bytes) -> Record:
        """What is stored of this answer."""
        output, context = response.get("output"), self._request.context
        items = chaining.names(output if isinstance(output, list) else ())
        given = packed(orjson.dumps(self._request.own))
        id: str = response["id"]
        record = Record(
            self._owner, id, self._chain, context.previous, context.created, given, packed(written), items
        )
        if not self.target or not self.upstream or response.get("status") not in _GOOD:
            return record
        if not (is_id(self.target) and is_id(self.upstream)):
            return record
        return replace(record, target=self.target, upstream=self.upstream)


def unavailable() -> ProxyError:
    message = "responses cannot be stored or read now; send `store: false` if this one need not be kept"
    error = ProxyError("unavailable", message, code="store_unavailable", type="server_error")
    error.retry_after = RETRY_AFTER_S
    return error


def response_not_found(id: str) -> ProxyError:
    message = f"Response with id '{id[:80]}' not found."
    return ProxyError("not_found", message, code="response_not_found")


def _not_found(previous: Any, broken: bool) -> ProxyError:
    why = ": an earlier response of its conversation was deleted or replaced" if broken else ""
    message = (
        f"Previous response with id {str(previous)[:80]!r} not found{why}. "
        "Send the whole conversation in `input`."
    )
    return bad_request(message, "previous_response_id", NOT_FOUND)
