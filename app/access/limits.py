"""What one key may ask for in a minute or a day, and at a time.

Requests and tokens are counted in windows that begin with the first of them. Tokens are known only when an
answer is there: a request is let in while any are left, and what it took is counted when it ends. Requests of
keys without limits never come here.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import structlog

from config.keys import KeyLimits
from config.schema import RateLimits
from translators.budget import prompt_tokens
from translators.errors import ProxyError

from ..request import BOM, read_object
from ..telemetry.trace import Headers, Trace

if TYPE_CHECKING:
    from ..stream import Client
    from .auth import Access

AGAIN_S = 5.0
"""How long Redis is left alone after it did not answer: every request would wait for it anew."""
BUSY_RETRY_S = 1.0
"""When a key that has all its places taken may try again: one may come free at any moment."""
PREFIX = b"x-ratelimit-"
LOOKUPS = 10
"""What a key may read, cancel or take out of the store for each request that it may make."""
LEAST_LOOKUPS = 120
"""At least, in a minute: a client asks each second or two how its background response gets on."""
MINUTE_S = 60
DAY_S = 86400

_log = structlog.get_logger("dragoman.limits")


class LimitsDown(Exception):
    """Whatever counts did not answer."""


@dataclass(frozen=True, slots=True)
class Window:
    """A kind of thing that is counted, how many there may be of it, and for how long, in seconds."""

    of: str
    most: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Left:
    """What is left in a window and in how many seconds it begins anew."""

    window: Window
    remaining: int
    reset_s: float


class Counter(Protocol):
    """Where is counted; every method may raise `LimitsDown`."""

    async def count(self, key: str, window: Window, amount: int) -> bool:
        """Count `amount`, and whether that was within the window."""
        ...

    async def left(self, key: str, window: Window) -> Left: ...

    async def aclose(self) -> None: ...


class Place:
    """One of those that a key has at a time."""

    __slots__ = ("_free",)

    def __init__(self, free: Callable[[], None]) -> None:
        self._free: Callable[[], None] | None = free

    def leave(self) -> None:
        """The request has ended; what it began may go on in its place."""
        if self._free is not None:
            self._free()

    def pass_on(self) -> Callable[[], None]:
        """What frees it, which is the caller's from now on."""
        free, self._free = self._free, None
        assert free is not None  # noqa: S101 - a request begins one thing
        return free


class KeyLimiter:
    """The limits of all keys, in one process."""

    def __init__(self, config: RateLimits, counter: Counter, running: dict[str, int]) -> None:
        """`running`: by the names of their keys, requests under way and background runs that have not ended.

        The limiter of a new configuration takes it over: what began under the former one frees its places.
        """
        self._closed, self._counter = config.on_failure == "closed", counter
        self.running = running
        self._down_until = 0.0
        self._down = False
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def within(self, access: Access, client: Client, raw: bytes) -> AsyncIterator[Place]:
        """Answer a request in here; `raw` is its body. Raises `ProxyError` (429, or 503)."""
        limits = access.limits
        assert limits is not None  # noqa: S101 - others need not come here
        place = self._take_place(access.name, limits)
        try:
            left = await self._let_in(access.name, token_windows(limits), request_windows(limits))
            client.head_with(lambda headers: with_limits(headers, left))
            failed = False
            try:
                yield place
            except ProxyError:
                failed = not client.committed
                raise
            finally:
                if not failed:
                    self.count_tokens(access.name, limits, client.trace, raw)
        finally:
            place.leave()

    async def let_in(self, access: Access, client: Client, makes: bool) -> None:
        """Count what asks no model; raises `ProxyError` (429, or 503).

        `makes`: it writes something new, else it is about what is stored already.
        """
        limits = access.limits
        assert limits is not None  # noqa: S101 - others need not come here
        left = await self._let_in(
            access.name, (), request_windows(limits) if makes else lookup_windows(limits)
        )
        client.head_with(lambda headers: with_limits(headers, left))

    async def aclose(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._counter.aclose()

    # --- places ---------------------------------------------------------------------------

    def _take_place(self, name: str, limits: KeyLimits) -> Place:
        running, most = self.running.get(name, 0), limits.concurrency
        if most is not None and running >= most:
            message = (
                f"this API key has {running} requests under way, background responses that have not ended "
                f"among them, and may have {most} at a time: wait for one to end, or cancel it"
            )
            raise _refused(message, BUSY_RETRY_S)
        self.running[name] = running + 1
        return Place(partial(self._free_place, name))

    def _free_place(self, name: str) -> None:
        running = self.running[name] - 1
        if running:
            self.running[name] = running
        else:
            del self.running[name]

    # --- windows --------------------------------------------------------------------------

    async def _let_in(
        self, name: str, tokens: Sequence[Window], requests: Sequence[Window]
    ) -> Sequence[Left]:
        """What is left once this request is counted; nothing when that is not known."""
        if not tokens and not requests:
            return ()
        try:
            if time.monotonic() < self._down_until:
                raise LimitsDown("it did not answer a moment ago")
            left = await asyncio.gather(*(self._counter.left(name, each) for each in tokens))
            for each in left:
                if not each.remaining:
                    raise _spent(each)
            left += await asyncio.gather(*(self._request(name, each) for each in requests))
        except LimitsDown as down:
            self._note_down(down)
            if self._closed:
                message = "the limits of this API key cannot be looked up; send the request again"
                raise ProxyError(
                    "unavailable", message, code="limits_unavailable", retry_after=AGAIN_S
                ) from None
            return ()
        self._note_up()
        return left

    async def _request(self, name: str, window: Window) -> Left:
        taken = await self._counter.count(name, window, 1)
        left = await self._counter.left(name, window)
        if not taken:
            raise _spent(left)
        return left

    def count_tokens(self, name: str, limits: KeyLimits, trace: Trace, raw: bytes) -> None:
        """Behind the answer's back: it need not wait for that."""
        windows = token_windows(limits)
        tokens = tokens_of(trace, raw) if windows else 0
        if tokens > 0:
            task = asyncio.get_running_loop().create_task(self._count(name, windows, tokens))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _count(self, name: str, windows: Sequence[Window], tokens: int) -> None:
        try:
            await asyncio.gather(*(self._counter.count(name, each, tokens) for each in windows))
        except LimitsDown as down:
            self._note_down(down)

    def _note_down(self, down: LimitsDown) -> None:
        """The log says it once, until it is over."""
        now = time.monotonic()
        if now >= self._down_until:
            self._down_until = now + AGAIN_S
        if not self._down:
            self._down = True
            _log.error("limits:down", reason=str(down), requests="refused" if self._closed else "not limited")

    def _note_up(self) -> None:
        if self._down:
            self._down = False
            _log.warning("limits:up")


def request_windows(limits: KeyLimits) -> Sequence[Window]:
    most = limits.requests_per_minute
    return () if most is None else (Window("requests", most, MINUTE_S),)


def lookup_windows(limits: KeyLimits) -> Sequence[Window]:
    most = limits.requests_per_minute
    return () if most is None else (Window("lookups", max(LOOKUPS * most, LEAST_LOOKUPS), MINUTE_S),)


def token_windows(limits: KeyLimits) -> Sequence[Window]:
    each = ((limits.tokens_per_minute, MINUTE_S), (limits.tokens_per_day, DAY_S))
    return [Window("tokens", most, seconds) for most, seconds in each if most is not None]


def tokens_of(trace: Trace, raw: bytes) -> int:
    """What an exchange took: as the backend says, else unless it failed the prompt's estimate.

    Without that a client that leaves before the backend tells its count would never reach a limit.
    """
    if trace.usage is not None:
        return max(0, trace.usage.input) + max(0, trace.usage.output)
    if not trace.attempts or trace.error is not None:
        return 0
    _, body = read_object(raw.removeprefix(BOM))  # as it was read when it came
    return prompt_tokens(body)


def with_limits(headers: Headers, left: Sequence[Left]) -> Headers:
    """An answer's headers with what is left to the key.

    A backend's own are left out: they tell of an account that all clients share. Of two windows of one kind
    the one with less left is told, as OpenAI's clients know one of each.
    """
    told: dict[str, Left] = {}
    for each in sorted(left, key=lambda each: each.remaining, reverse=True):
        told[each.window.of] = each
    ours = [header for each in told.values() for header in _headers(each)]
    return [header for header in headers if not header[0].startswith(PREFIX)] + ours


def _headers(left: Left) -> Headers:
    of = left.window.of.encode()
    return [
        (b"x-ratelimit-limit-" + of, b"%d" % left.window.most),
        (b"x-ratelimit-remaining-" + of, b"%d" % left.remaining),
        (b"x-ratelimit-reset-" + of, duration(left.reset_s).encode()),
    ]


def duration(seconds: float) -> str:
    """As OpenAI writes it: `6m0s`, `1s`, `20ms`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest}s"


_SPAN: Mapping[int, str] = {MINUTE_S: "minute", DAY_S: "day"}


def _spent(left: Left) -> ProxyError:
    window = left.window
    message = (
        f"Rate limit reached: this API key may use {window.most} {window.of} a {_SPAN[window.seconds]}. "
        f"Please try again in {duration(left.reset_s)}."
    )
    error = _refused(message, max(left.reset_s, 1.0))
    error.headers = {name.decode(): text.decode() for name, text in _headers(left)}
    return error


def _refused(message: str, retry_after: float) -> ProxyError:
    return ProxyError("rate_limit", message, code="rate_limit_exceeded", retry_after=retry_after)
