"""What is known of one exchange: one record that headers and the log line read.

Filled in along the path, never branched on: nothing decides by what the trace says.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from translators.dialect import Loss, Repair
from translators.errors import ProxyError
from translators.ir import Usage

from ..ids import new_id

if TYPE_CHECKING:
    from ..routing.routing import Considered
    from .watch import Arrival, Watched

Headers = list[tuple[bytes, bytes]]

MAX_POINTERS = 50
MAX_DROPPED_BYTES = 2048
"""Contract: `x-dragoman-dropped` names at most this much, then `...+N`."""

MAX_MODEL = 512
"""Characters of the client's name for a model that are logged."""

EMULATED_S = 0.01
"""A stream whose first byte comes within that time of its last was a whole answer, played as a stream."""

RATE_LIMITS = "x-ratelimit-"
MAX_RATE_LIMITS = 20
"""Headers of a backend's rate limits in one line, each cut to 100 characters."""

GONE = 499
"""Logged as the status when the client left before its answer was whole (nginx's number for it)."""

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cached_pct",
    "reasoning_tokens",
    "tokens_per_s",
)
_SANE_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
_PLAIN_POINTER = "/~!$&'()*+:;=@-._[]"


@dataclass(slots=True)
class Trace:
    """One exchange. Times are `time.perf_counter()` seconds; token counts come from `usage`."""

    id: bytes
    route: str
    key: str = field(default="", kw_only=True)
    """The name of the key in the keys file that it came with."""
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
    upstream: str = ""
    """Where the backend is that was asked last: `https://host:port`."""
    upstream_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of its answer."""
    continuations: int = 0
    """Times a reply that was cut off was asked to go on."""
    chain_invalidated: bool = False
    """Whether the backend could not go on from what it had stored, and got the whole conversation."""
    waits: int = 0
    """Times it had to wait for a place at a provider."""
    cost: float | None = None
    """US dollars, None: not known."""
    arrival: Arrival | None = None
    """What is traced of how it came, None: nothing is."""
    watched: Watched | None = field(default=None, repr=False)
    """Who looks at it closely, None: nobody does."""

    @property
    def provider(self) -> str:
        return self.target.partition("/")[0]

    @property
    def ttft_s(self) -> float | None:
        return None if self.first_byte is None else self.first_byte - self.began

    def rate_limits(self) -> dict[str, str]:
        """What the backend said of its limits, by header."""
        if RATE_LIMITS not in " ".join(self.upstream_headers):  # most say nothing
            return {}
        found = [(name, text) for name, text in self.upstream_headers.items() if name.startswith(RATE_LIMITS)]
        return {name: text[:100] for name, text in found[:MAX_RATE_LIMITS]}

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
            out.append((b"x-dragoman-model", _plain(self.target)))
        if self.losses and (pointers := dropped(self.losses)):
            out.append((b"x-dragoman-dropped", pointers.encode()))
        if self.continuations:
            out.append((b"x-dragoman-continuations", b"%d" % self.continuations))
        if self.repairs:
            out.append((b"x-dragoman-repairs", b"%d" % len(self.repairs)))
        if self.chain_invalidated:
            out.append((b"x-dragoman-chain-invalidated", b"1"))
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
        ttft = self.ttft_s
        return {
            "request_id": self.id.decode(),
            "route": self.route,
            "key": self.key or None,
            "status": self.status,
            "model": self.model[:MAX_MODEL],
            "target": self.target,
            "lane": self.lane,
            "surface": self.surface,
            "upstream": self.upstream or None,
            "stream": self.stream,
            "emulated_stream": self.stream and ttft is not None and total - ttft <= EMULATED_S,
            "source": self.route_source,
            "attempts": self.attempts,
            **self._decision(),
            "ttft_ms": _ms(ttft),
            "total_ms": _ms(total),
            **_counts(self.usage, total),
            **_spent(self.usage),
            "cost_usd": self.cost,
            "dropped": [loss.pointer for loss in self.losses if loss.kind != "policy"][:MAX_POINTERS],
            "losses": [loss._asdict() for loss in self.losses[:MAX_POINTERS]],
            "repairs": len(self.repairs),
            "stream_violations": sum(self.violations.values()),
            "error": None if self.error is None else str(self.error)[:500],
            "error_code": None if self.error is None else self.error.body()["code"],
            "upstream_id": self.upstream_id or None,
            **self._besides(),
        }

    def _besides(self) -> dict[str, Any]:
        """What most requests have nothing of."""
        said: dict[str, Any] = {}
        if limits := self.rate_limits():
            said["rate_limits"] = limits
        if self.continuations:
            said["continuations"] = self.continuations
        if self.watched is not None and self.watched.trace_id:
            said["trace_id"] = self.watched.trace_id
        return said


def request_id(headers: Mapping[bytes, bytes]) -> bytes:
    """The client's own `x-request-id` when it is short and plain, else a fresh one."""
    given = headers.get(b"x-request-id", b"")
    return given if _SANE_ID.fullmatch(given) else new_id("req_").encode()


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


@lru_cache(maxsize=1024)
def _plain(target: str) -> bytes:
    """As a header's value; few are asked often."""
    return quote(target, safe=_PLAIN_POINTER).encode()


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)


def _spent(usage: Usage | None) -> dict[str, float]:
    """What a local backend told of its time: `load_ms`, `prompt_ms`, `eval_ms`."""
    told = usage.seconds if usage is not None else None
    return {f"{phase}_ms": round(seconds * 1000, 2) for phase, seconds in (told or {}).items()}


def _counts(usage: Usage | None, total_s: float) -> dict[str, int | float | None]:
    if usage is None:
        return dict.fromkeys(_COUNTS)
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cached_tokens": usage.cached,
        "cached_pct": round(100 * usage.cached / usage.input, 1) if usage.input > 0 else None,
        "reasoning_tokens": usage.reasoning,
        "tokens_per_s": round(usage.output / total_s, 1) if total_s > 0 else None,
    }
