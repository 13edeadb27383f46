"""Requests of every kind at a gateway before the chaos backend: a mix of what services meet in a bad week."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.backends.chaos import FAULTS

Json = dict[str, Any]
IDLE_S = 1.0
"""The idle limit that the gateway is configured with."""
LONG = {"huge-event", "gzip-bomb", "endless-body", "endless-event"}
"""Faults that cost seconds and hundreds of megabytes: tried once each elsewhere."""
STRAYING = {"surplus", "length-before-the-end"}
"""What they send too much may come while the next request waits on that connection, and be its answer."""
FAST = sorted(name for name, fault in FAULTS.items() if not fault.slow and name not in LONG | STRAYING)
SLOW = sorted(name for name, fault in FAULTS.items() if fault.slow)
BODIES: Mapping[str, Json] = {
    "/v1/responses": {"input": "hi"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
}
GOOD_ENDS = ('"finish_reason":"stop"', '"status":"completed"')
LAST = ("response.completed", "response.failed", "error")
WIRES = ("chat", "responses")
KINDS = {
    "good": 52,
    "broken": 25,
    "silent": 1,
    "leaving": 10,
    "wrong": 5,
    "asking": 4,
    "background": 1,
    "websocket": 2,
}
"""Kind of a request, and its share."""
WRONG: Sequence[tuple[str, Json]] = (
    ("/v1/responses", {"model": "chat/well"}),
    ("/v1/chat/completions", {"model": "nowhere/m", "messages": [{"role": "user", "content": "x"}]}),
    ("/v1/chat/completions", {"model": "chat/well", "messages": 5}),
    ("/v1/embeddings", {"model": "chat/well", "input": []}),
    ("/nothing", {}),
)


def providers(origin: str) -> list[Json]:
    """The chaos backend as a Chat and as a Responses backend."""
    common = {"kind": "openai", "base_url": f"{origin}/v1", "models": ["well"]}
    return [{**common, "name": wire, "wire": wire} for wire in WIRES]


LIMITS: Mapping[str, Any] = {"retry_budget_s": 0, "idle_timeout_s": IDLE_S, "keepalive_s": 0.5}


@dataclass
class Mix:
    """Sends requests; `counts` are what became of them, by kind and outcome."""

    base: str
    seed: int = 1
    stored: float = 0.1
    """The share of good requests whose answers are kept."""
    counts: Counter[str] = field(default_factory=Counter)
    surprises: list[str] = field(default_factory=list)
    """Exchanges that ended in no way that is right for anything."""

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    async def run(self, most: Callable[[], bool], at_once: int, pause_s: float = 0.0) -> int:
        """Send while `most` says so, `at_once` at a time; how many were sent."""
        connector = aiohttp.TCPConnector(limit=at_once)
        timeout = aiohttp.ClientTimeout(total=30)
        sent = 0

        async def worker(session: aiohttp.ClientSession) -> None:
            nonlocal sent
            while most():
                sent += 1
                await self._one(session)
                if pause_s:
                    await asyncio.sleep(pause_s)

        async with aiohttp.ClientSession(self.base, connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(worker(session) for _ in range(at_once)))
        return sent

    async def _one(self, session: aiohttp.ClientSession) -> None:
        (kind,) = self._random.choices([*KINDS], [*KINDS.values()])
        try:
            outcome = await getattr(self, f"_{kind}")(session)
        except (aiohttp.ClientError, TimeoutError) as error:
            outcome = type(error).__name__
            if kind != "leaving":
                self.surprises.append(f"{kind}: {error!r}")
        self.counts[f"{kind} {outcome}"] += 1

    async def _good(self, session: aiohttp.ClientSession) -> str:
        path, body = self._ask("well")
        body["store"] = self._random.random() < self.stored
        status, text = await self._asked(session, path, body)
        if status != 200 or not any(end in text for end in GOOD_ENDS):
            self.surprises.append(f"good: {status} {text[:200]}")
        return str(status)

    async def _broken(self, session: aiohttp.ClientSession) -> str:
        path, body = self._ask(self._random.choice(FAST))
        status, text = await self._asked(session, path, body)
        if status == 500 and "error-cut-short" not in body["model"]:
            self.surprises.append(f"{body['model']}: {text[:200]}")
        return str(status)

    async def _silent(self, session: aiohttp.ClientSession) -> str:
        path, body = self._ask(self._random.choice(SLOW))
        status, _ = await self._asked(session, path, body)
        return str(status)

    async def _leaving(self, session: aiohttp.ClientSession) -> str:
        """Gone before the headers, after them, or after a part of the answer."""
        path, body = self._ask("trickle")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._random.choice((0.005, 0.02, 0.1, 0.2))):
                async with session.post(path, json=body) as reply:
                    await reply.content.readany()
                    reply.close()
                    return "after a part"
        return "early"

    async def _background(self, session: aiohttp.ClientSession) -> str:
        """Asked, perhaps followed for a while, cancelled or waited for."""
        model = f"{self._random.choice(WIRES)}/{self._random.choice(('well', 'trickle', 'reset'))}"
        body = {"model": model, "input": "hi", "background": True, "store": True}
        async with session.post("/v1/responses", json=body) as reply:
            path = f"/v1/responses/{(await reply.json())['id']}"
        if self._random.random() < 0.3:
            async with session.get(path, params={"stream": "true"}) as reply:
                await reply.content.readany()
                reply.close()
        if self._random.random() < 0.3:
            async with session.post(f"{path}/cancel") as reply:
                return f"cancel {reply.status}"
        for _ in range(100):
            async with session.get(path) as reply:
                status = str((await reply.json())["status"])
            if status not in ("queued", "in_progress"):
                async with session.delete(path) as reply:
                    return status
            await asyncio.sleep(0.05)
        self.surprises.append(f"background: still {status}")
        return status

    async def _websocket(self, session: aiohttp.ClientSession) -> str:
        """A few turns; some clients leave in the middle of one."""
        async with session.ws_connect("/v1/responses") as socket:
            for _ in range(self._random.randint(1, 3)):
                model = f"{self._random.choice(WIRES)}/{self._random.choice(('well', 'trickle', 'reset'))}"
                await socket.send_json(
                    {"type": "response.create", "model": model, "input": "hi", "store": False}
                )
                if self._random.random() < 0.2:
                    return "left"
                async for message in socket:
                    if message.type is not aiohttp.WSMsgType.TEXT:
                        return str(message.type)
                    if message.json()["type"] in LAST:
                        break
        return "whole"

    async def _wrong(self, session: aiohttp.ClientSession) -> str:
        path, body = self._random.choice(WRONG)
        status, text = await self._asked(session, path, body)
        if not 400 <= status < 500:
            self.surprises.append(f"wrong: {status} {text[:200]}")
        return str(status)

    async def _asking(self, session: aiohttp.ClientSession) -> str:
        path = self._random.choice(
            ("/v1/models", "/models", "/health", "/ready", "/metrics", "/openapi.json")
        )
        async with session.get(path) as reply:
            await reply.read()
            return str(reply.status)

    def _ask(self, model: str) -> tuple[str, Json]:
        path = self._random.choice([*BODIES])
        wire, stream = self._random.choice(WIRES), self._random.random() < 0.6
        return path, {**BODIES[path], "model": f"{wire}/{model}", "stream": stream, "store": False}

    async def _asked(self, session: aiohttp.ClientSession, path: str, body: Json) -> tuple[int, str]:
        async with session.post(path, json=body) as reply:
            return reply.status, (await reply.read()).decode(errors="replace")
