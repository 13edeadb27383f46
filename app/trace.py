"""What is known of one exchange: one record that headers and the log line read.

Filled in along the path, never branched on: nothing decides by what the trace says.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from translators.dialect import Loss, Repair
from translators.errors import ProxyError
from translators.ir import Usage

if TYPE_CHECKING:
    from .routing import Considered

Headers = list[tuple[bytes, bytes]]

MAX_POINTERS = 50
MAX_DROPPED_BYTES = 2048
"""Contract: `x-dragoman-dropped` names at most this much, then `...+N`."""

MAX_MODEL = 512
"""Characters of the client's name for a model that are logged."""

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
    tries: list[Mapping[str, Any]] = field(default_factory=list)
    """What each candidate said, in the order in which they were asked."""
    route_source: str = ""
    """How the model's name was read: exact, alias, group, class or search."""
    considered: Sequence[Considered] = ()
    """The candidates in their order, when there were several."""
    retries: int = 0
    """Times a backend was asked again after a failure that might pass."""
    learned: int = 0
    """Fields that a backend was found not to take."""
    violations: Mapping[str, int] = field(default_factory=dict)
    """What was illegal in the answer's stream, by kind: bugs of ours and very odd backends."""
    usage: Usage | None = None
    error: ProxyError | None = None
    upstream_id: str = ""

    def tried(self, target: str, outcome: str, began: float, delay_s: float | None) -> None:
        """Note what became of asking `target` since `began`; `delay_s` until it may be asked again."""
        pause = None if delay_s is None else round(delay_s * 1000, 1)
        took = round((time.perf_counter() - began) * 1000, 2)
        self.tries.append(
            {"target": target, "surface": self.surface, "outcome": outcome, "ms": took, "again_in_ms": pause}
        )

    def headers(self) -> Headers:
        """What every answer carries, errors too, as far as it is known by now."""
        out = [(b"x-request-id", self.id)]
        if self.target:
            out.append((b"x-dragoman-model", quote(self.target, safe=_PLAIN_POINTER).encode()))
        if self.losses and (pointers := dropped(self.losses)):
            out.append((b"x-dragoman-dropped", pointers.encode()))
        if self.repairs:
            out.append((b"x-dragoman-repairs", b"%d" % len(self.repairs)))
        return out

    def _decision(self) -> dict[str, Any]:
        """Who was considered and who was asked, where that was more than one."""
        said: dict[str, Any] = {}
        if self.considered:
            said["candidates"] = [each.explained() for each in self.considered]
        if len(self.tries) > 1:
            said["tries"] = self.tries
        return said

    def fields(self) -> dict[str, Any]:
        """The log line's fields; counts that no backend told are null."""
        total = time.perf_counter() - self.began
        ttft = None if self.first_byte is None else self.first_byte - self.began
        return {
            "request_id": self.id.decode(),
            "route": self.route,
            "status": self.status,
            "model": self.model[:MAX_MODEL],
            "target": self.target,
            "lane": self.lane,
            "surface": self.surface,
            "stream": self.stream,
            "source": self.route_source,
            "attempts": self.attempts,
            **self._decision(),
            "ttft_ms": _ms(ttft),
            "total_ms": _ms(total),
            **_counts(self.usage, total),
            **_spent(self.usage),
            "dropped": [loss.pointer for loss in self.losses if loss.kind != "policy"][:MAX_POINTERS],
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
    """Comma list of the pointers left out, each once, as long as the contract lets it be; no policy."""
    lost = (loss.pointer for loss in losses if loss.kind != "policy")
    pointers = list(dict.fromkeys(quote(pointer, safe=_PLAIN_POINTER) for pointer in lost))
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


def _spent(usage: Usage | None) -> dict[str, float]:
    """What a local backend told of its time: `load_ms`, `prompt_ms`, `eval_ms`."""
    told = usage.seconds if usage is not None else None
    return {f"{phase}_ms": round(seconds * 1000, 2) for phase, seconds in (told or {}).items()}


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
