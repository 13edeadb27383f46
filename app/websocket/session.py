"""`/v1/responses` over a WebSocket: many responses over one connection, as OpenAI serves them.

A client sends `response.create` frames, whose other fields are those of the request's body. Every one is an
exchange like any other, answered by events as text frames. Those of one `stream_id` (none is a lane too) are
answered one after another, those of several at once. What is not a response (an unknown frame, a refused
request) is told in an `error` frame with its status, and the connection lives on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog

from translators.errors import ProxyError

from ..bodies import Receive
from ..calls import answer_call, framed
from ..gateway import Gateway
from ..lent import Lent
from ..stream import Client, Send
from ..telemetry.trace import Trace
from ..telemetry.watch import arrival
from .create import Create, Steer, read_message
from .frames import Frames, failure
from .memory import ConnectionState, Memories
from .warm import warm

LAST_WORDS_S = 5.0
"""How long a client may take nothing of a close."""

_log = structlog.get_logger("dragoman.websocket")

Cause = Literal["lifetime", "idle", "shutdown", "fault"]
_CODES: Mapping[Cause, int] = {"lifetime": 1000, "idle": 1000, "shutdown": 1001, "fault": 1011}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one connection; times in seconds."""

    lifetime_s: float = 3600.0
    """OpenAI's limit. A response that runs by then may end."""
    idle_s: float = 900.0
    """Without a response. A client that comes back later connects again."""
    lanes: int = 8
    """Responses at once, and conversations that are remembered."""
    waiting: int = 32
    """Requests that wait for those before them; their bytes are limited as one request's are."""


@dataclass(slots=True)
class _Lane:
    """Responses of one `stream_id`, one after another."""

    waiting: deque[Create] = field(default_factory=deque)
    client: Client | None = None
    task: asyncio.Task[None] | None = None


class Session:
    """One connection, from its accepted handshake on."""

    def __init__(
        self,
        gateway: Gateway,
        headers: Mapping[bytes, bytes],
        id: bytes,
        path: str,
        send: Send,
        transport: asyncio.WriteTransport | None,
        bounds: Bounds,
        memories: Memories,
    ) -> None:
        """`id`: what the handshake's `x-request-id` is; each response gets it with its number."""
        self._gateway, self._headers, self._id, self._path = gateway, headers, id, path
        self._send, self._transport, self._bounds = send, transport, bounds
        self._lanes: dict[str | None, _Lane] = {}
        self._waiting = self._waiting_bytes = self._count = 0
        self._gone = asyncio.Event()
        self._ending: Cause | None = None
        self._closing: asyncio.Task[None] | None = None
        self._memories = memories
        self._memory = memories.open(gateway.server.max_body_bytes, bounds.lanes)
        self._loop = asyncio.get_running_loop()
        self._lifetime = self._loop.call_later(bounds.lifetime_s, self._end, "lifetime")
        self._idle = self._loop.call_later(bounds.idle_s, self._end, "idle")

    async def run(self, receive: Receive) -> None:
        """Take messages until the connection is gone, and see that nothing of it goes on."""
        began = self._loop.time()
        try:
            while (message := await receive())["type"] != "websocket.disconnect":
                if message["type"] == "websocket.receive":
                    await self._take(message.pop("text", None))
                else:
                    self._end("shutdown")
        except OSError:
            pass  # it is gone
        except asyncio.CancelledError:  # the process ends, and waits no longer for who takes nothing
            self._abort()
            raise
        finally:
            await self._leave()
            took = round(self._loop.time() - began, 3)
            _log.debug("websocket_closed", request_id=self._id.decode(), responses=self._count, seconds=took)

    async def _take(self, text: str | None) -> None:
        try:
            asked = read_message(text)
            if isinstance(asked, Steer):
                await self._send({"type": "websocket.send", "text": asked.refused().decode()})
            else:
                self._enqueue(asked)
        except ProxyError as error:
            await self._send({"type": "websocket.send", "text": failure(error).decode()})

    def _enqueue(self, create: Create) -> None:
        """Raises `ProxyError` when the client asks for more than one connection may."""
        bounds = self._bounds
        lane = self._lanes.get(create.stream_id)
        if lane is None and len(self._lanes) >= bounds.lanes:
            raise _too_many(f"{bounds.lanes} `stream_id`s are in use on this connection")
        size = self._waiting_bytes + len(create.body)
        if self._waiting >= bounds.waiting or (self._waiting and size > self._gateway.server.max_body_bytes):
            raise _too_many(f"{self._waiting} requests wait on this connection")
        if lane is None:
            lane = self._lanes[create.stream_id] = _Lane()
            lane.task = self._loop.create_task(self._work(create.stream_id, lane))
        lane.waiting.append(create)
        self._waiting, self._waiting_bytes = self._waiting + 1, size
        self._idle.cancel()

    async def _work(self, stream_id: str | None, lane: _Lane) -> None:
        """Answer what waits in a lane; the lane is gone with the last of it."""
        frames = Frames(self._send, stream_id)
        try:
            while lane.waiting and not self._gone.is_set():
                create = lane.waiting.popleft()
                self._waiting, self._waiting_bytes = self._waiting - 1, self._waiting_bytes - len(create.body)
                await self._answer(create, lane, frames)
        except Exception:  # a bug of ours around an answer: whoever waits for it is told
            self._close("fault")
            raise
        finally:
            del self._lanes[stream_id]
        if not self._lanes and not self._gone.is_set():
            self._rest()

    async def _answer(self, create: Create, lane: _Lane, frames: Frames) -> None:
        self._count += 1
        trace = Trace(b"%b-%d" % (self._id, self._count), f"WEBSOCKET {self._path}")
        if self._gateway.watch is not None:
            trace.arrival = arrival(self._headers, self._path)
        client = Client(frames, trace, self._gateway.patience, Lent(self._transport))
        lane.client = client
        try:
            await framed(self._gateway, client, trace, self._serve(create, client), "/responses")
        finally:
            lane.client = None

    async def _serve(self, create: Create, client: Client) -> None:
        gateway = self._gateway
        if self._ending == "shutdown":
            raise ProxyError("unavailable", "the gateway is shutting down; send the request again")
        if self._ending == "lifetime":
            raise _too_old(self._bounds.lifetime_s)
        access = gateway.keys.admit(self._headers)  # a configuration that came since may have taken it away
        if access is not None:
            client.trace.key = access.name
        client.watch(self._disconnected)
        answer = answer_call if create.generate else warm
        state = ConnectionState(gateway.state, self._memory, gateway.server.max_body_bytes)
        await answer(gateway, "responses", create.body, self._headers, client, state)

    async def _disconnected(self) -> MutableMapping[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    # --- the end --------------------------------------------------------------------------

    def _rest(self) -> None:
        """Nothing runs: close what is to end, else wait for more."""
        if self._ending is not None:
            self._close(self._ending)
        else:
            self._idle = self._loop.call_later(self._bounds.idle_s, self._end, "idle")

    def _end(self, cause: Cause) -> None:
        self._ending = self._ending or cause
        if not self._lanes:
            self._close(self._ending)

    def _close(self, cause: Cause) -> None:
        if self._closing is None:
            self._closing = self._loop.create_task(self._say_goodbye(cause))

    async def _say_goodbye(self, cause: Cause) -> None:
        """The server gives `websocket.disconnect` after it, which ends `run`."""
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                if cause == "lifetime":
                    text = failure(_too_old(self._bounds.lifetime_s)).decode()
                    await self._send({"type": "websocket.send", "text": text})
                close = {"type": "websocket.close", "code": _CODES[cause], "reason": cause}
                await self._send(close)
        except (TimeoutError, OSError):
            self._abort()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def _leave(self) -> None:
        """The connection is gone: what runs for it ends."""
        self._gone.set()
        self._memories.close(self._memory)
        for timer in (self._lifetime, self._idle):
            timer.cancel()
        running = [lane for lane in self._lanes.values() if lane.task is not None]
        for lane in running:
            if lane.client is not None:
                lane.client.interrupt("gone")
        tasks = [lane.task for lane in running if lane.task is not None]
        tasks += [] if self._closing is None else [self._closing]
        await asyncio.gather(*tasks, return_exceptions=True)


def _too_many(what: str) -> ProxyError:
    message = f"{what}: send this one when an answer has ended, or open another connection"
    return ProxyError("rate_limit", message, code="too_many_requests")


def _too_old(lifetime_s: float) -> ProxyError:
    message = f"this connection has reached its limit of {lifetime_s / 60:g} minutes: open a new one"
    return ProxyError("bad_request", message, code="websocket_connection_limit_reached")
