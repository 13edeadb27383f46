"""What is known of one exchange: one record that headers and the log line read.

Filled in along the path, never branched on: nothing decides by what the trace says.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from translators.dialect import Loss, Repair
from translators.errors import ProxyError
from translators.ir import Usage

Headers = list[tuple[bytes, bytes]]

MAX_POINTERS = 50
MAX_DROPPED_BYTES = 2048
"""Contract: `x-dragoman-dropped` names at most this much, then `...+N`."""

GONE = 499
"""Logged as the status when the client left before its answer was whole (nginx's number for it)."""

_SANE_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_PLAIN_POINTER = "/~!$&'()*+:;=@-._[]"


@dataclass(slots=True)
class Trace:
    """One exchange. Times are `time.perf_counter()` seconds; token counts come from `usage`."""

    id: bytes
    route: str
    began: float = field(default_factory=time.perf_counter)
    model: str = ""
    """The name the client asked for."""
    target: str = ""
    """`provider/model` that was asked last: the one that answers, or whose failure is told."""
    lane: str = ""
    surface: str = ""
    stream: bool = False
    status: int = 0
    first_byte: float | None = None
    attempts: int = 0
    losses: Sequence[Loss] = ()
    repairs: Sequence[Repair] = ()
    pairing: tuple[Sequence[str], Sequence[str]] | None = None
    """Ids of the calls and of the results that were sent in a Responses input; None unless it was mended."""
    retries: int = 0
    """Times a backend was asked again after a failure that might pass."""
    learned: int = 0
    """Fields that a backend was found not to take."""
    violations: Mapping[str, int] = field(default_factory=dict)
    """What was illegal in the answer's stream, by kind: bugs of ours and very odd backends."""
    usage: Usage | None = None
    error: ProxyError | None = None
    upstream_id: str = ""

    def headers(self) -> Headers:
        """What every answer carries, errors too, as far as it is known by now."""
        out = [(b"x-request-id", self.id)]
        if self.target:
            out.append((b"x-dragoman-model", quote(self.target, safe=_PLAIN_POINTER).encode()))
        if self.losses:
            out.append((b"x-dragoman-dropped", dropped(self.losses).encode()))
        if self.repairs:
            out.append((b"x-dragoman-repairs", b"%d" % len(self.repairs)))
        return out

    def fields(self) -> dict[str, Any]:
        """The log line's fields; counts that no backend told are null."""
        total = time.perf_counter() - self.began
        ttft = None if self.first_byte is None else self.first_byte - self.began
        return {
            "request_id": self.id.decode(),
            "route": self.route,
            "status": self.status,
            "model": self.model,
            "target": self.target,
            "lane": self.lane,
            "surface": self.surface,
            "stream": self.stream,
            "attempts": self.attempts,
            "ttft_ms": _ms(ttft),
            "total_ms": _ms(total),
            **_counts(self.usage, total),
            "dropped": [loss.pointer for loss in self.losses[:MAX_POINTERS]],
            "losses": [loss._asdict() for loss in self.losses[:MAX_POINTERS]],
            "repairs": len(self.repairs),
            "stream_violations": sum(self.violations.values()),
            "error": None if self.error is None else str(self.error)[:500],
            "error_code": None if self.error is None else self.error.body()["code"],
            "upstream_id": self.upstream_id or None,
        }


def request_id(headers: Mapping[bytes, bytes]) -> bytes:
    """The client's own `x-request-id` when it is short and plain, else a fresh one."""
    given = headers.get(b"x-request-id", b"")
    return given if _SANE_ID.fullmatch(given) else b"req_" + os.urandom(12).hex().encode()


def dropped(losses: Sequence[Loss]) -> str:
    """Comma list of the pointers left out, each once, within the contract's limits."""
    pointers = list(dict.fromkeys(quote(loss.pointer, safe=_PLAIN_POINTER) for loss in losses))
    size, shown = 0, 0
    for pointer in pointers[:MAX_POINTERS]:
        size += len(pointer) + 1
        if size > MAX_DROPPED_BYTES:
            break
        shown += 1
    rest = len(pointers) - shown
    return ",".join([*pointers[:shown], *([f"...+{rest}"] if rest else [])])


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)


def _counts(usage: Usage | None, total_s: float) -> dict[str, int | float | None]:
    if usage is None:
        return dict.fromkeys(
            ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "tokens_per_s")
        )
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cached_tokens": usage.cached,
        "reasoning_tokens": usage.reasoning,
        "tokens_per_s": round(usage.output / total_s, 1) if total_s > 0 else None,
    }
