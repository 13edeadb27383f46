"""Bringing a backend's answer to the client: as a stream or as one body.

What the client asked for decides which, whatever form the backend answers in: an event
stream is folded for a client that wants one body, a body is played as a stream for a client
that wants one. The form is told by the first bytes, because content types lie.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson

from providers.base import SHAPE_OF, Upstream
from translators.continuation import ContinuedTranslator
from translators.dialect import ReplyStream
from translators.errors import ProxyError
from translators.ir import Json
from translators.lenient import read_json
from translators.stream import StreamTranslator

from .context.continuation import Write, go_on
from .errors import JSON, relayed
from .plan import TIDY, WATCHERS, Plan
from .stream import Client

TOLD_S = 2.0
"""How long what may follow a told end (usage, `[DONE]`) is waited for. Backends send it at once or
never: some leave the connection open for good, and the client would wait for the idle limit."""

REST_S = 1.0
"""How long the end of a finished reply is waited for, so that its connection can be used again."""

MAX_BODY_BYTES = 256 << 20
"""Of an answer that comes whole: the largest list of embeddings has a third of it."""

_BOM = b"\xef\xbb\xbf"
_LINES_TYPE = "application/x-ndjson"
"""What a backend streams as lines that was asked for no stream."""
_EVENT_LINES = (b"data:", b"event:", b"id:", b"retry:", b":")
_LONGEST_EVENT_LINE = max(map(len, _EVENT_LINES))


Whole = tuple[Json, bytes]
"""An answer that is one body, and how it is written."""


class Settled(Exception):
    """A failure that asking the same target again does not change; `error` says what it is."""

    def __init__(self, error: ProxyError) -> None:
        super().__init__(str(error))
        self.error = error


def told(error: ProxyError) -> Settled:
    """The backend reported a failure inside an answer of status 200: contract, that is a 502."""
    error.status = 502
    return Settled(error)


# --- a stream for the client -----------------------------------------------------------


def reply_stream(plan: Plan) -> ReplyStream:
    """The machine between the backend's stream and the client's."""
    context = plan.context
    if plan.lane == "pass":
        return WATCHERS[SHAPE_OF[plan.surface]](plan.profile, context)
    if plan.profile.answer.continuations:
        return plan.translate().continued(context, plan.profile.answer.continuations)
    return plan.translate().stream(context)


async def stream_answer(plan: Plan, upstream: Upstream, reply: ReplyStream, client: Client) -> None:
    """Pump `upstream` through `reply` to the client.

    Raises `Settled`, or `ProxyError` when the exchange breaks.
    """
    chunks = aiter(upstream.chunks)
    first = await _first(chunks)
    if _is_body(first, plan.backend.lines):
        body, _ = _object(await _rest(first, chunks), upstream)
        await _play(plan, body, reply, client)
        return
    data = _output(reply, first, client)
    while not (data or reply.ended or reply.told) and (chunk := await anext(chunks, b"")):
        data = _output(reply, chunk, client)
    if data:
        await client.write(data, not reply.ended)
    first = data = b""  # the rest may take minutes
    if not reply.ended:
        await _pump(reply, chunks, client)
    if isinstance(reply, ContinuedTranslator) and not client.ended:
        await _continue(plan, reply, reply.close(), client)
    elif not client.ended:
        await _close(reply, b"", client)
    await _finish(chunks, reply)


async def _pump(reply: ReplyStream, chunks: AsyncIterator[bytes], client: Client) -> None:
    """The hot path: one send for each read, and the last one ends the answer."""
    feed, write, pass_on, read = reply.feed, client.write, client.pass_on, chunks.__anext__
    try:
        while not reply.told:
            data = feed(await read())
            if reply.ended:
                if data:
                    await write(data, False)
                return
            if data and not pass_on(data):
                await write(data)
    except StopAsyncIteration:
        return
    async for chunk in _last_words(chunks):
        data = feed(chunk)
        if data:
            await write(data, not reply.ended)
        if reply.ended:
            return


async def _last_words(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What comes within the grace after a told end; a connection that breaks then breaks nothing."""
    clock = asyncio.get_running_loop().time
    end = clock() + TOLD_S
    while clock() < end:
        try:
            async with asyncio.timeout_at(end):
                chunk = await anext(chunks, b"")
        except (ProxyError, TimeoutError):
            return
        if not chunk:
            return
        yield chunk


def _output(reply: ReplyStream, chunk: bytes, client: Client) -> bytes:
    """What a read gives while nothing has gone out; raises `Settled` for an error in a reply's place."""
    data = reply.feed(chunk)
    if reply.begun or client.committed:
        return data
    if reply.error is not None:
        raise reply.fault or told(reply.error)
    return b""  # comments say nothing of a reply (OpenRouter's `: OPENROUTER PROCESSING`): no 200 for them


async def _play(plan: Plan, body: dict[str, Any], reply: ReplyStream, client: Client) -> None:
    """A whole body, for a client that asked for a stream: the events its stream would have given."""
    translation = plan.translate()
    # What has already gone out was begun by `reply`; a watcher begins nothing.
    player = reply if isinstance(reply, StreamTranslator) else translation.stream(plan.context)
    client.expect(player)
    data = player.take(translation.backend.decode_reply(body, plan.profile))
    if isinstance(player, ContinuedTranslator):
        await _continue(plan, player, data, client)
    else:
        await _close(player, data, client)


async def _continue(plan: Plan, reply: ContinuedTranslator, data: bytes, client: Client) -> None:
    """`data`, and what the reply says beyond the place where it was cut off."""

    async def write(more: bytes) -> None:
        if more:
            await client.write(more, not reply.ended)

    if reply.error is not None and not client.committed:
        raise reply.fault or told(reply.error)
    await write(data)
    await go_on(plan, reply, write, _read_round)
    if not client.ended:
        await client.write(b"", False)


async def _read_round(plan: Plan, upstream: Upstream, reply: ContinuedTranslator, write: Write) -> None:
    """One more reply of a backend, whatever form it has."""
    chunks = aiter(upstream.chunks)
    first = await _first(chunks)
    if _is_body(first, plan.backend.lines):
        try:
            body, _ = _object(await _rest(first, chunks), upstream)
        except Settled as settled:
            raise settled.error from None
        await write(reply.take(plan.backend.decode_reply(body, plan.profile)))
        return
    await write(reply.feed(first))
    while not (reply.told or reply.ended) and (chunk := await anext(chunks, b"")):
        await write(reply.feed(chunk))
    async for chunk in _last_words(chunks):
        await write(reply.feed(chunk))
    if not reply.ended:
        await write(reply.close())


async def _close(reply: ReplyStream, data: bytes, client: Client) -> None:
    """The end of the stream, after `data`."""
    if not reply.ended:
        data += reply.close()
    if reply.error is not None and not client.committed:
        raise reply.fault or told(reply.error)
    await client.write(data, False)


async def _finish(chunks: AsyncIterator[bytes], reply: ReplyStream) -> None:
    """Read to the end of a reply that has been told, so that its connection can be used again.

    What `reply` gives for that is nobody's any more: it counts what should not be there.
    """
    try:
        async with asyncio.timeout(REST_S):
            async for chunk in chunks:
                reply.feed(chunk)
    except (ProxyError, TimeoutError):
        pass


# --- one body for the client -----------------------------------------------------------


async def whole_answer(plan: Plan, upstream: Upstream, client: Client) -> None:
    """Read the whole answer and send it as one body; raises like `stream_answer`."""
    chunks = aiter(upstream.chunks)
    raw = await _first(chunks)
    while len(raw) < _LONGEST_EVENT_LINE and raw[:1] not in b"{[" and (chunk := await anext(chunks, b"")):
        raw += chunk
    if plan.profile.answer.continuations and plan.surface != "embeddings":
        reply, body = _written(await _continued(plan, raw, chunks, upstream))
    elif _is_events(raw) or _is_lines(upstream, plan):
        reply, body = _written(await _fold(plan, raw, chunks))
    else:
        reply, body = _read_whole(plan, await _rest(raw, chunks), upstream)
    if plan.request.keeping is not None:
        await plan.request.keeping.whole(body, reply)
    headers = [JSON, *plan.request.trace.headers(), *relayed(upstream.headers)]
    await client.whole(200, headers, body)


def _written(reply: Json) -> Whole:
    return reply, orjson.dumps(reply)


def _read_whole(plan: Plan, raw: bytes, upstream: Upstream) -> Whole:
    if plan.lane == "pass":
        return _tidied(plan, raw, upstream)
    return _written(_translated(plan, raw, upstream))


async def _continued(plan: Plan, first: bytes, chunks: AsyncIterator[bytes], upstream: Upstream) -> Json:
    """An answer of either form as one body, with what it says beyond the place where it was cut off."""
    reply = plan.translate().continued(plan.context, plan.profile.answer.continuations)
    if _is_events(first) or _is_lines(upstream, plan):
        reply.feed(first)
        if not reply.ended:
            await _read_on(reply, chunks)
        reply.close()
    else:
        body, _ = _object(await _rest(first, chunks), upstream)
        try:
            reply.take(plan.backend.decode_reply(body, plan.profile))
        except ProxyError as error:
            raise told(error) from error
    await go_on(plan, reply, _nowhere, _read_round)
    note_guard(plan, reply)
    if reply.error is not None:
        raise reply.fault or told(reply.error)
    plan.request.trace.usage = reply.usage
    return reply.body()


async def _nowhere(data: bytes) -> None:
    """A body is sent when it is whole."""


async def _fold(plan: Plan, first: bytes, chunks: AsyncIterator[bytes]) -> Json:
    """An event stream as one body, as soon as its end is told."""
    translator = plan.translate().stream(plan.context)
    translator.feed(first)
    if not translator.ended:
        await _read_on(translator, chunks)
    translator.close()
    note_guard(plan, translator)
    if translator.error is not None:
        raise translator.fault or told(translator.error)
    plan.request.trace.usage = translator.usage
    await _finish(chunks, translator)
    return translator.body()


async def _read_on(reply: ReplyStream, chunks: AsyncIterator[bytes]) -> None:
    size = 0
    while not (reply.told or reply.ended) and (chunk := await anext(chunks, b"")):
        reply.feed(chunk)
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            reply.fail(_too_long())
    async for chunk in _last_words(chunks):
        if reply.ended:
            return
        reply.feed(chunk)


def note_guard(plan: Plan, reply: ReplyStream) -> None:
    """Tell the trace what the guard met."""
    if reply.violations:
        plan.request.trace.violations = reply.violations


def _tidied(plan: Plan, raw: bytes, upstream: Upstream) -> Whole:
    """The backend's own bytes, unless something in them is odd and the backend is not marked exact."""
    body, readable = _object(raw, upstream)
    try:
        tidy, usage = TIDY[plan.surface](body, plan.profile)
    except ProxyError as error:
        raise told(error) from error
    plan.request.trace.usage = usage
    _note_id(plan, body)
    untouched = tidy is body or plan.profile.answer.exact
    return (body, raw) if readable and untouched else _written(tidy)


def _translated(plan: Plan, raw: bytes, upstream: Upstream) -> Json:
    body, _ = _object(raw, upstream)
    try:
        reply, usage = plan.translate().reply(body, plan.context)
    except ProxyError as error:
        raise told(error) from error
    plan.request.trace.usage = usage
    _note_id(plan, body)
    return reply


def _note_id(plan: Plan, body: dict[str, Any]) -> None:
    """What the backend calls a whole answer that it has stored."""
    keeping, id = plan.request.keeping, body.get("id")
    if plan.stored_there and keeping is not None and isinstance(id, str):
        keeping.upstream = id


# --- which form an answer has ----------------------------------------------------------


def _is_body(first: bytes, lines: bool) -> bool:
    """`lines`: the backend's stream is objects, so a whole answer is a stream of one."""
    return first.removeprefix(_BOM).lstrip()[:1] in ((b"[", b"<") if lines else (b"{", b"[", b"<"))


def _is_lines(upstream: Upstream, plan: Plan) -> bool:
    told = upstream.headers.get("content-type", "").startswith(_LINES_TYPE)
    return told and plan.lane == "translate" and plan.backend.lines


def _is_events(raw: bytes) -> bool:
    return raw.removeprefix(_BOM).lstrip().startswith(_EVENT_LINES)


async def _first(chunks: AsyncIterator[bytes]) -> bytes:
    """What comes first but blanks, however short; empty: there is nothing."""
    first = b""
    async for chunk in chunks:
        first = (first + chunk).lstrip()
        if not _BOM.startswith(first):
            break
    return first


async def _rest(first: bytes, chunks: AsyncIterator[bytes]) -> bytes:
    """The whole body; raises `Settled` for one that does not end."""
    parts, size = [first], len(first)
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise told(_too_long())
    return b"".join(parts)


def _too_long() -> ProxyError:
    return ProxyError("upstream", f"the backend's answer is longer than {MAX_BODY_BYTES >> 20} MiB")


def _object(raw: bytes, upstream: Upstream) -> tuple[dict[str, Any], bool]:
    """The answer's JSON object, and whether a client could read `raw` as that object.

    Raises `Settled` for anything else (a proxy's page, an empty body).
    """
    body, plain = read_json(raw)
    if isinstance(body, dict):
        return body, plain
    if isinstance(body, list) and len(body) == 1 and isinstance(body[0], dict):
        return body[0], False  # Google wraps its error object
    form = upstream.headers.get("content-type", "nothing").partition(";")[0][:60]
    raise told(ProxyError("upstream", f"the backend answered with {form} where a JSON object was expected"))
