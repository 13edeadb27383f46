"""The gateway's event loop goes on while a model loads and reads a long prompt."""

from __future__ import annotations

import asyncio
import time

import orjson

from providers.http import HttpClient
from providers.onnx.extra import EMBEDDED
from providers.onnx.provider import OnnxProvider
from providers.openai import Settings

MOST_S = 0.01


async def test_nothing_holds_it() -> None:
    """In processor time of its own thread: what else the machine does is not counted."""
    provider = OnnxProvider(Settings("local", "", kind="onnx"), EMBEDDED, HttpClient())
    gaps: list[float] = []

    async def tick() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            gaps.append(now - before)
            before = now

    ticker = asyncio.create_task(tick())
    messages = [{"role": "user", "content": "hello world " * 1500}]
    body = orjson.dumps({"model": "tiny-chat", "messages": messages, "max_tokens": 200, "stream": True})
    await provider.models()
    upstream = await provider.open("chat", "tiny-chat", body, True)
    assert b"[DONE]" in await upstream.read()
    ticker.cancel()
    await provider.aclose()
    assert len(gaps) > 50
    assert max(gaps) < MOST_S
