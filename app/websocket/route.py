"""Who may open a WebSocket, and where."""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping, Sequence
from typing import Any

from starlette.routing import WebSocketRoute

from translators.errors import ProxyError

from ..access.origins import is_own
from ..bodies import Receive
from ..calls import framed
from ..gateway import Gateway
from ..lent import lent_to
from ..stream import Client, Send
from ..telemetry.trace import Trace, request_id
from .memory import Memories
from .session import Bounds, Session

PATHS = ("/v1/responses", "/responses")
_TARGETS = frozenset(path.encode() for path in PATHS)


def opens_websocket(
    gateway: Gateway, method: str, target: bytes, headers: Sequence[tuple[bytes, bytes]]
) -> int:
    """Bytes of a message at most; 0: the request is an ordinary one, which its route answers."""
    if not gateway.server.websocket or target.partition(b"?")[0] not in _TARGETS:
        return 0
    return gateway.server.max_body_bytes if method == "GET" and is_handshake(dict(headers)) else 0


def is_handshake(headers: Mapping[bytes, bytes]) -> bool:
    """Whether these are the headers that RFC 6455 asks for."""
    return (
        headers.get(b"upgrade", b"").lower() == b"websocket"
        and headers.get(b"sec-websocket-version") == b"13"
        and len(headers.get(b"sec-websocket-key", b"")) == 24
    )


def websocket_routes(gateway: Gateway) -> list[WebSocketRoute]:
    memories = Memories()
    return [WebSocketRoute(path, Door(gateway, memories)) for path in PATHS]


class Door:
    """Lets clients with a key in, and tells the others as HTTP does."""

    def __init__(self, gateway: Gateway, memories: Memories) -> None:
        self._gateway, self._memories, self.bounds = gateway, memories, Bounds()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        headers, path = dict(scope["headers"]), scope["path"]
        id = request_id(headers)
        await receive()  # `websocket.connect`
        try:
            self._gateway.keys.admit(headers)
            _check_origin(headers, self._gateway.server.cors_origins)
        except ProxyError as error:
            trace = Trace(id, f"WEBSOCKET {path}")
            client = Client(_refusing(send), trace, self._gateway.patience)
            await framed(self._gateway, client, trace, _failing(error), "/responses")
            return
        await send({"type": "websocket.accept", "headers": [(b"x-request-id", id)]})
        lent = lent_to(scope).transport
        session = Session(self._gateway, headers, id, path, send, lent, self.bounds, self._memories)
        await session.run(receive)


def _check_origin(headers: Mapping[bytes, bytes], allowed: Collection[str]) -> None:
    """A page of another site may open a WebSocket to this machine without asking first, unlike POST."""
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    if origin and not is_own(origin, headers) and origin not in allowed and "*" not in allowed:
        message = "no WebSocket for a page of another origin; `server.cors_origins` names those that may"
        raise ProxyError("forbidden", message, code="origin_not_allowed")


async def _failing(error: ProxyError) -> None:
    raise error


def _refusing(send: Send) -> Send:
    """An answer to the handshake in ASGI's form for HTTP, in the form it has for a WebSocket."""

    async def refuse(message: MutableMapping[str, Any]) -> None:
        await send({**message, "type": "websocket." + message["type"]})

    return refuse
