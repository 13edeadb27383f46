"""What storing a response adds to a request, and what a stored history takes to become an input again."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import orjson

from app.request import parse_request
from app.state.state import State
from app.store import Record
from app.store.sqlite import SqliteStore
from app.telemetry.trace import Trace

from .measure import Figures, once
from .processes import Server
from .report import Line
from .servers import CONTENDERS
from .work import Work, responses

CONNECTIONS = 16
ITEMS = 200
_KEPT = Work("stored request", "translated", {**responses("hi"), "store": True})
_NOT_KEPT = Work("request that is not stored", "translated", responses("hi"))


@dataclass(frozen=True, slots=True)
class Storing:
    """Medians: CPU and latency that a stored request has more than one that is not, and an expansion."""

    cpu_us: float
    p50_ms: float
    expansion_ms: float

    def lines(self) -> list[Line]:
        return [
            Line("storing a response, CPU", "us", self.cpu_us, most=250),
            Line(f"storing a response, p50 at {CONNECTIONS}", "ms", self.p50_ms, most=2),
            Line(f"history of {ITEMS} stored items", "ms", self.expansion_ms, most=1),
        ]


def storing(server: Server, rounds: int, seconds: float) -> Storing:
    """`server`: a Dragoman with its default store, an SQLite file."""
    who = CONTENDERS["dragoman"]
    found: dict[str, list[Figures]] = {_KEPT.name: [], _NOT_KEPT.name: []}
    for work in (_KEPT, _NOT_KEPT):
        once(who, server, work, CONNECTIONS, 0.3)  # warm
    for _ in range(rounds):
        for work in (_KEPT, _NOT_KEPT):
            found[work.name].append(once(who, server, work, CONNECTIONS, seconds))

    def more(name: str) -> float:
        pairs = zip(found[_KEPT.name], found[_NOT_KEPT.name], strict=True)
        extra: list[float] = [getattr(kept, name) - getattr(not_kept, name) for kept, not_kept in pairs]
        return statistics.median(extra)

    with tempfile.TemporaryDirectory() as folder:
        expansion = asyncio.run(_expansion_ms(Path(folder) / "responses.db"))
    return Storing(more("cpu"), more("p50"), expansion)


async def _expansion_ms(path: Path, turns: int = ITEMS // 2) -> float:
    """A chain of `turns` responses, read and put before a new item: the median of many times."""
    store = SqliteStore(path, ttl_s=3600, max_bytes=2**30, timeout_s=5)
    for turn in range(turns):
        await store.put(_turn(turn))
    state, took = State(store, max_bytes=2**26), []
    for _ in range(200):
        raw = orjson.dumps({"model": "m", "input": "go on", "previous_response_id": f"resp_{turns - 1}"})
        request = parse_request("responses", raw, {}, Trace(b"r", "POST /v1/responses"))
        began = time.perf_counter()
        await state.prepare(request, "local")
        took.append(time.perf_counter() - began)
        assert len(request.body["input"]) == 2 * turns + 1
    await state.aclose()
    return statistics.median(took) * 1000


def _turn(turn: int) -> Record:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "word " * 20}]}
    parts = [{"type": "output_text", "text": "word " * 40, "annotations": []}]
    output = {"type": "message", "id": f"msg_{turn}", "role": "assistant", "status": "completed"}
    reply = {"id": f"resp_{turn}", "status": "completed", "output": [{**output, "content": parts}]}
    previous = f"resp_{turn - 1}" if turn else None
    given, written = orjson.dumps([said]), orjson.dumps(reply)
    return Record("local", f"resp_{turn}", "chain", previous, turn, given, written, (f"msg_{turn}",))
