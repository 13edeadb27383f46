"""`GET` and `DELETE /v1/responses/{id}`, and the items of its input, a page at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import orjson

from translators.errors import ProxyError, bad_request
from translators.ir import Json

from .followers import show, starting_after
from .runs import cancelled
from .state import State, response_not_found

if TYPE_CHECKING:
    from ..gateway import Gateway
    from ..routes import Exchange

    Serve = Callable[[Exchange], Awaitable[None]]

MOST_ITEMS = 100
ITEMS = 20
"""OpenAI's page, by default, and its largest."""


def stored_methods(gateway: Gateway) -> tuple[Mapping[str, Serve], Mapping[str, Serve]]:
    """What can be asked of one stored response, and of its input items."""

    async def retrieve(exchange: Exchange) -> None:
        query = _query(exchange)
        after = starting_after(query)
        state, owner, id = _asked(gateway, exchange)
        if query.get("stream") != "true":
            if after >= 0:
                raise bad_request("`starting_after` goes with `stream=true`", "starting_after")
            await exchange.answer(200, await state.response(owner, id))
            return
        exchange.client.watch(exchange.receive)
        exchange.trace.stream = True
        await show(gateway.background, state, await state.record(owner, id), after, exchange.client)

    async def delete(exchange: Exchange) -> None:
        state, owner, id = _asked(gateway, exchange)
        await state.delete(owner, id)
        gateway.background.drop((owner, id))
        await exchange.answer(200, orjson.dumps({"id": id, "object": "response", "deleted": True}))

    async def input_items(exchange: Exchange) -> None:
        page = read_page(_query(exchange))
        state, owner, id = _asked(gateway, exchange)
        await exchange.answer(200, orjson.dumps(page.of(await state.input_items(owner, id))))

    return {"GET": retrieve, "DELETE": delete}, {"GET": input_items}


def cancel_methods(gateway: Gateway) -> Mapping[str, Serve]:
    """What can be asked of a stored response while it is being made in the background."""

    async def cancel(exchange: Exchange) -> None:
        state, owner, id = _asked(gateway, exchange)
        record = await cancelled(state, await state.record(owner, id))
        gateway.background.drop((owner, id))
        await exchange.answer(200, record.response)

    return {"POST": cancel}


def _asked(gateway: Gateway, exchange: Exchange) -> tuple[State, str, str]:
    id: str = exchange.scope["path_params"]["id"]
    if gateway.state is None:
        raise response_not_found(id)
    return gateway.state, gateway.keys.owner(exchange.headers), id


def _query(exchange: Exchange) -> dict[str, str]:
    query = exchange.scope.get("query_string", b"").decode("latin-1")
    return dict(parse_qsl(query, keep_blank_values=True))


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: the newest first unless asked otherwise."""

    limit: int = ITEMS
    newest_first: bool = True
    after: str | None = None

    def of(self, items: list[Json]) -> dict[str, Any]:
        """OpenAI's list object; raises `ProxyError` when `after` names no item of it."""
        ordered = items[::-1] if self.newest_first else items
        start = 0
        if self.after is not None:
            places = [place for place, item in enumerate(ordered) if item.get("id") == self.after]
            if not places:
                raise bad_request(f"`after`: no item has the id {self.after[:80]!r}", "after")
            start = places[0] + 1
        shown = ordered[start : start + self.limit]
        return {
            "object": "list",
            "data": shown,
            "first_id": shown[0].get("id") if shown else None,
            "last_id": shown[-1].get("id") if shown else None,
            "has_more": len(ordered) > start + len(shown),
        }


def read_page(query: Mapping[str, str]) -> Page:
    """Raises `ProxyError` (400) naming the parameter."""
    limit, order = query.get("limit", str(ITEMS)), query.get("order", "desc")
    if not (limit.isascii() and limit.isdigit() and len(limit) < 10 and 1 <= int(limit) <= MOST_ITEMS):
        raise _wrong("limit", f"a number from 1 to {MOST_ITEMS}")
    if order not in ("asc", "desc"):
        raise _wrong("order", "asc or desc")
    return Page(int(limit), order == "desc", query.get("after") or None)


def _wrong(name: str, words: str) -> ProxyError:
    return bad_request(f"`{name}` must be {words}", name)
