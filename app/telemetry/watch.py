"""Who looks closely at exchanges: traces, events at level debug, the raw log of what goes over the wire.

All of them hang on one object of an exchange, `Trace.watched`. Where nobody looks it is None, and an exchange
pays for that test alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from translators.errors import ProxyError, conceal

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from providers.base import Upstream

    from ..plan import Plan
    from ..stream import Client, Send
    from .trace import Trace


LAST_READS = 4
"""Reads at the end of a reply that are kept, beside its first, to see how it ended."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a request came: what W3C trace context says, and what a trace tells of HTTP."""

    traceparent: str = ""
    tracestate: str = ""
    user_agent: str = ""
    method: str = ""
    path: str = ""
    scheme: str = "http"
    version: str = ""


def arrival(
    headers: Mapping[bytes, bytes], path: str, method: str = "", scheme: str = "http", version: str = "1.1"
) -> Arrival:
    """`method` empty: it came as no HTTP request."""
    traceparent, tracestate, agent = (headers.get(name, b"")[:512].decode("latin-1") for name in _NAMES)
    return Arrival(traceparent, tracestate, agent, method, path[:200], scheme, version)


def onward(trace: Trace) -> Arrival | None:
    """How work that outlives its request belongs to the same trace; None: nobody keeps one."""
    watched = trace.watched
    return None if watched is None or not watched.traceparent else Arrival(watched.traceparent)


_NAMES = (b"traceparent", b"tracestate", b"user-agent")


@dataclass(slots=True)
class Outcome:
    """What became of asking a backend once."""

    error: ProxyError | None = None
    status: int = 0
    """The backend's; 0: it gave none."""
    gone: bool = False
    """Whether it was cut short: by the client, or by the end of the process."""
    heard: Sequence[bytes] = ()
    """The first and the last reads of the reply, for what is told of it in passing."""


class Attempts(Protocol):
    """Looks at one request to a backend: entered before it is sent, told the outcome, left at its end."""

    def attempt(self, plan: Plan, outcome: Outcome) -> AbstractContextManager[None]: ...


class Exchanges(Protocol):
    """Somebody who looks at exchanges."""

    def begin(self, trace: Trace, name: str) -> Watching:
        """An exchange begins; `name` is its path where requests are counted."""
        ...


class Watching(Attempts, Protocol):
    """The same for one of them."""

    trace_id: str
    """Empty: it belongs to no trace."""
    traceparent: str
    """What W3C trace context says of it; empty as above."""

    def received(self, raw: bytes, headers: Mapping[bytes, bytes]) -> None:
        """A client's request for a model, its body decoded."""
        ...

    def sent(self, message: MutableMapping[str, Any]) -> None:
        """What the client is sent, in ASGI's form."""
        ...

    def read(self, data: bytes) -> None:
        """A read of the backend's reply."""
        ...

    def end(self, trace: Trace) -> None: ...


class Watch:
    """Of an application: everybody who looks."""

    def __init__(self, those: Sequence[Exchanges]) -> None:
        self._those = those

    def begin(self, trace: Trace, client: Client, name: str) -> None:
        trace.watched = watched = Watched([each.begin(trace, name) for each in self._those])
        client.wrap(watched.sending)


class Watched:
    """Everybody who looks at one exchange."""

    def __init__(self, those: Sequence[Watching]) -> None:
        self._those = those
        self._outcome = Outcome()
        self.trace_id = next((each.trace_id for each in those if each.trace_id), "")
        self.traceparent = next((each.traceparent for each in those if each.traceparent), "")

    @contextmanager
    def attempt(self, plan: Plan, client: Client) -> Iterator[None]:
        """One request to a backend, from before it is sent until its reply has ended."""
        self._outcome = outcome = Outcome()
        before = plan.request.trace.error
        with ExitStack() as stack:
            for each in self._those:
                stack.enter_context(each.attempt(plan, outcome))
            try:
                yield
            except Exception as failed:
                outcome.error = _told(failed)
                raise
            except BaseException:  # cancelled: because of the client, or since the first token took too long
                outcome.gone = client.cause is not None
                outcome.error = None if outcome.gone else ProxyError("timeout", "the wait for it has ended")
                raise
            finally:
                now = plan.request.trace.error
                if outcome.error is None and now is not before:
                    outcome.error = now
                if outcome.error is not None:  # a backend may repeat the key that it was sent
                    conceal(outcome.error, plan.target.provider.private)

    def answered(self, upstream: Upstream) -> None:
        """The backend has answered: its reply is read through us from now on."""
        outcome, heard = self._outcome, list[bytes]()
        outcome.status, outcome.heard = upstream.status, heard
        upstream.chunks = _Reading(upstream.chunks, heard, self._those)

    def received(self, raw: bytes, headers: Mapping[bytes, bytes]) -> None:
        """The client's request, its body decoded."""
        for each in self._those:
            each.received(raw, headers)

    def sending(self, send: Send) -> Send:
        async def sent(message: MutableMapping[str, Any]) -> None:
            for each in self._those:
                each.sent(message)
            await send(message)

        return sent

    def end(self, trace: Trace) -> None:
        for each in self._those:
            each.end(trace)


class _Reading:
    """No generator: one that is cut short by a timeout gives nothing any more, and a reply goes on."""

    def __init__(self, chunks: AsyncIterator[bytes], heard: list[bytes], those: Sequence[Watching]) -> None:
        self._chunks, self._heard, self._those = aiter(chunks), heard, those

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk, heard = await anext(self._chunks), self._heard
        if len(heard) > LAST_READS:
            del heard[1]
        heard.append(chunk)
        for each in self._those:
            each.read(chunk)
        return chunk


def _told(failed: Exception) -> ProxyError:
    """What a failure of an attempt says; those that only steer the next one carry it."""
    error = failed if isinstance(failed, ProxyError) else getattr(failed, "error", None)
    return error if isinstance(error, ProxyError) else ProxyError("internal", type(failed).__name__)
