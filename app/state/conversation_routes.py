"""`/v1/conversations` and what is under it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import orjson

from translators.errors import ProxyError, bad_request
from translators.ir import Json

from ..bodies import read_body
from ..request import BOM, read_object
from .conversation_items import read_include, read_items, read_metadata
from .conversations import Conversations, not_found
from .stored import read_page

if TYPE_CHECKING:
    from ..gateway import Gateway
    from ..routes import Exchange

    Serve = Callable[[Exchange], Awaitable[None]]
    Work = Callable[[Conversations, Exchange], Awaitable[Json]]

_INCLUDE = ("include", "include[]")
"""How clients spell a list in a query."""


def conversation_methods(gateway: Gateway) -> Mapping[str, Mapping[str, Serve]]:
    """Path -> method -> what it does."""

    def serve(work: Work) -> Serve:
        async def serve(exchange: Exchange) -> None:
            if gateway.state is None:
                raise _nowhere(exchange)
            kept = Conversations(gateway.state, gateway.keys.owner(exchange.headers))
            await exchange.answer(200, orjson.dumps(await work(kept, exchange)))

        return serve

    async def body(exchange: Exchange) -> Json:
        raw = await read_body(exchange.receive, exchange.headers, gateway.server.max_body_bytes)
        return read_object(raw.removeprefix(BOM))[1]

    async def create(kept: Conversations, exchange: Exchange) -> Json:
        asked = await body(exchange)
        metadata, items = read_metadata(asked.get("metadata")), asked.get("items")
        return await kept.create(metadata, [] if items is None else read_items(items), gateway.seal_key)

    async def update(kept: Conversations, exchange: Exchange) -> Json:
        asked = await body(exchange)
        return await kept.update(_id(exchange), read_metadata(_required(asked, "metadata")))

    async def add(kept: Conversations, exchange: Exchange) -> Json:
        include = read_include(_all(exchange, _INCLUDE))
        asked = await body(exchange)
        items = read_items(_required(asked, "items"))
        return await kept.add(_id(exchange), items, include, gateway.seal_key)

    return {
        "": {"POST": serve(create)},
        "/{id}": {"GET": serve(_get), "POST": serve(update), "DELETE": serve(_delete)},
        "/{id}/items": {"GET": serve(_items), "POST": serve(add)},
        "/{id}/items/{item}": {"GET": serve(_item), "DELETE": serve(_remove)},
    }


async def _get(kept: Conversations, exchange: Exchange) -> Json:
    return await kept.get(_id(exchange))


async def _delete(kept: Conversations, exchange: Exchange) -> Json:
    return await kept.delete(_id(exchange))


async def _items(kept: Conversations, exchange: Exchange) -> Json:
    page = read_page(dict(_query(exchange)))
    return await kept.page(_id(exchange), page, read_include(_all(exchange, _INCLUDE)))


async def _item(kept: Conversations, exchange: Exchange) -> Json:
    return await kept.item(_id(exchange), _item_id(exchange), read_include(_all(exchange, _INCLUDE)))


async def _remove(kept: Conversations, exchange: Exchange) -> Json:
    return await kept.remove(_id(exchange), _item_id(exchange))


def _id(exchange: Exchange) -> str:
    id: str = exchange.scope["path_params"]["id"]
    return id


def _item_id(exchange: Exchange) -> str:
    id: str = exchange.scope["path_params"]["item"]
    return id


def _query(exchange: Exchange) -> list[tuple[str, str]]:
    query = exchange.scope.get("query_string", b"").decode("latin-1")
    return parse_qsl(query, keep_blank_values=True)


def _all(exchange: Exchange, names: tuple[str, ...]) -> list[str]:
    return [value for name, value in _query(exchange) if name in names]


def _required(body: Json, name: str) -> Any:
    if name not in body:
        raise bad_request(f"Missing required parameter: '{name}'.", name, "missing_required_parameter")
    return body[name]


def _nowhere(exchange: Exchange) -> ProxyError:
    """Of a gateway that keeps nothing."""
    if "id" in exchange.scope.get("path_params", {}):
        return not_found(_id(exchange))
    return bad_request("conversations are not kept here: its store is off (store.kind)", code="store_off")
