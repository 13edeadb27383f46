"""A request in a task of its own: pieces come out, faults are raised, closing ends it anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from providers.onnx.exchange import Exchange
from translators.errors import ProxyError

ended: list[str] = []


async def pieces(*texts: bytes, fault: Exception | None = None, hang: bool = False) -> AsyncGenerator[bytes]:
    try:
        for text in texts:
            yield text
        if hang:
            await asyncio.Event().wait()
        if fault is not None:
            raise fault
    finally:
        ended.append("ended")


async def test_what_comes_is_read_to_the_end_and_stays_ended() -> None:
    exchange = Exchange(pieces(b"a", b"b"))
    await exchange.begun()
    assert [each async for each in exchange] == [b"a", b"b"]
    assert [each async for each in exchange] == []


async def test_a_fault_before_the_first_piece_is_raised_at_once() -> None:
    with pytest.raises(ProxyError, match="no"):
        await Exchange(pieces(fault=ProxyError("upstream", "no"))).begun()


async def test_a_fault_after_it_is_raised_to_the_reader() -> None:
    exchange = Exchange(pieces(b"a", fault=ValueError("bug")))
    await exchange.begun()
    assert await anext(exchange) == b"a"
    with pytest.raises(ValueError, match="bug"):
        await anext(exchange)


async def test_closing_ends_it_wherever_it_is() -> None:
    exchange = Exchange(pieces(b"a", hang=True))
    await exchange.begun()
    ended.clear()
    exchange.close()
    exchange.close()
    assert await anext(exchange) == b"a"
    with pytest.raises(ProxyError, match="was ended"):
        await anext(exchange)
    assert ended == ["ended"]


async def test_who_leaves_before_the_first_piece_ends_it() -> None:
    exchange = Exchange(pieces(hang=True))
    waiting = asyncio.create_task(exchange.begun())
    await asyncio.sleep(0.01)
    ended.clear()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0.01)
    assert ended == ["ended"]
