"""The event loop of the server while a model loads, reads a long prompt and answers, for two clients."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from providers.onnx.provider import OnnxProvider
from tests.app.conftest import Serve
from tests.app.onnx_served import ENDLESS, chat, responses, started

MOST_S = 0.01


def test_nothing_holds_it(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """In processor time of its thread: what else the machine does is not counted."""
    gaps: list[float] = []
    tickers: list[asyncio.Task[None]] = []

    async def tick() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            gaps.append(now - before)
            before = now

    opened = OnnxProvider.open

    async def ticking(self: OnnxProvider, *asked: Any) -> Any:
        if not tickers:
            tickers.append(asyncio.create_task(tick()))
        return await opened(self, *asked)

    monkeypatch.setattr(OnnxProvider, "open", ticking)
    served = started(serve, fresh=True)
    long = "hello world " * 1_500
    with ThreadPoolExecutor(2) as clients:
        first = clients.submit(chat, served, long, stream=True, max_tokens=200, **ENDLESS)
        second = clients.submit(responses, served, long, stream=True, max_output_tokens=200)
        assert (first.result().status_code, second.result().status_code) == (200, 200)
    tickers[0].get_loop().call_soon_threadsafe(tickers[0].cancel)
    assert len(gaps) > 50
    assert max(gaps) < MOST_S
