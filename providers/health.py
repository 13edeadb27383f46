"""What calls have shown of every endpoint: how fast, how often it fails, whether to leave it alone.

One record per `provider/model`, in this process. Averages are exponential with a half-life, so an
endpoint that was slow an hour ago is not slow for ever. An endpoint that fails a few times in a row
is left alone for a while, longer each time; then one call may try it, and its outcome decides. That
is advice for the order of candidates: one that is alone is asked all the same.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

from .ranking import LiveProfile

HALF_LIFE_S = 600.0
"""Age at which a measurement counts half."""
FAILURES_TO_REST = 3
"""Failures in a row after which an endpoint is left alone."""
FIRST_REST_S = 5.0
LONGEST_REST_S = 120.0
PROBE_S = 30.0
"""A probe that has not come back for so long no longer keeps others from trying."""
MAX_ENDPOINTS = 20_000
"""Clients can make up names of models; what was asked longest ago is forgotten first."""


@dataclass(slots=True)
class _Record:
    at: float
    """Clock time to which the decayed sums below refer."""
    weight: float = 0.0
    failures: float = 0.0
    ttft_weight: float = 0.0
    ttft_s: float = 0.0
    rate_weight: float = 0.0
    tokens_per_s: float = 0.0
    in_a_row: int = 0
    rest_until: float = 0.0
    rest_s: float = 0.0
    probe_until: float = 0.0

    def wake(self) -> None:
        """End its rest, and forget what led to it."""
        self.in_a_row, self.rest_until, self.rest_s, self.probe_until = 0, 0.0, 0.0, 0.0

    def decay(self, now: float) -> None:
        factor = 0.5 ** ((now - self.at) / HALF_LIFE_S)
        self.at = now
        self.weight *= factor
        self.failures *= factor
        self.ttft_weight *= factor
        self.rate_weight *= factor

    def live(self, now: float) -> LiveProfile:
        """As seen at `now`; changes nothing."""
        return LiveProfile(
            ttft_s=self.ttft_s if self.ttft_weight > 0 else None,
            tokens_per_s=self.tokens_per_s if self.rate_weight > 0 else None,
            error_rate=self.failures / self.weight if self.weight > 0 else 0.0,
            samples=self.weight * 0.5 ** ((now - self.at) / HALF_LIFE_S),
        )


class Health:
    """The records; `version` grows with every measurement, so that orders made of them can be renewed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._records: OrderedDict[str, _Record] = OrderedDict()
        self.version = 0

    def succeeded(self, endpoint: str, ttft_s: float | None, tokens: int | None, seconds: float) -> None:
        """A reply came whole: `ttft_s` to its first byte (streams only), `tokens` in `seconds` after it."""
        record = self._record(endpoint)
        record.weight += 1
        record.wake()
        if ttft_s is not None:
            record.ttft_weight += 1
            record.ttft_s += (ttft_s - record.ttft_s) / record.ttft_weight
        if tokens and seconds > 0:
            record.rate_weight += 1
            record.tokens_per_s += (tokens / seconds - record.tokens_per_s) / record.rate_weight

    def failed(self, endpoint: str, retry_after_s: float | None = None) -> None:
        """It failed in a way that says something of it; it asked to be left alone for `retry_after_s`."""
        record = self._record(endpoint)
        record.weight += 1
        record.failures += 1
        record.in_a_row += 1
        record.probe_until = 0.0
        rest_s = 0.0
        if record.in_a_row >= FAILURES_TO_REST:
            record.rest_s = min(record.rest_s * 2 or FIRST_REST_S, LONGEST_REST_S)
            rest_s = record.rest_s
        rest_s = max(rest_s, min(retry_after_s or 0.0, LONGEST_REST_S))
        if rest_s > 0:
            record.rest_until = max(record.rest_until, record.at + rest_s)

    def alive(self, endpoint: str) -> None:
        """It answered, if only to refuse the request: that is no failure of it, nor a success to measure."""
        record = self._records.get(endpoint)
        if record is not None:
            record.wake()

    def resting(self, endpoint: str) -> bool:
        """Whether it is better left alone now: it rests, or a probe of it is under way."""
        record = self._records.get(endpoint)
        if record is None or not record.in_a_row:
            return False
        now = self._clock()
        return now < record.rest_until or now < record.probe_until

    def asked(self, endpoint: str) -> bool:
        """A call goes there now; whether it is the probe, the first one after a rest: then `left` ends it."""
        record = self._records.get(endpoint)
        if record is None or not record.rest_until:
            return False
        now = self._clock()
        if now < record.rest_until or now < record.probe_until:
            return False
        record.probe_until = now + PROBE_S
        return True

    def left(self, endpoint: str) -> None:
        """The probe is over, whatever came of it: the client may have gone, or the queue been full."""
        record = self._records.get(endpoint)
        if record is not None:
            record.probe_until = 0.0

    def live(self, endpoint: str) -> LiveProfile | None:
        """What was measured; None: nothing yet."""
        record = self._records.get(endpoint)
        return None if record is None else record.live(self._clock())

    def all_live(self) -> dict[str, LiveProfile]:
        """`live` of every endpoint that was asked; safe to call from another thread."""
        now = self._clock()
        return {endpoint: record.live(now) for endpoint, record in list(self._records.items())}

    def forget(self, providers: Collection[str]) -> None:
        """Know nothing any more of the endpoints of these."""
        for endpoint in [each for each in self._records if each.partition("/")[0] in providers]:
            del self._records[endpoint]
            self.version += 1

    def _record(self, endpoint: str) -> _Record:
        self.version += 1
        now = self._clock()
        record = self._records.get(endpoint)
        if record is None:
            record = self._records[endpoint] = _Record(now)
            if len(self._records) > MAX_ENDPOINTS:
                self._records.popitem(last=False)
        else:
            self._records.move_to_end(endpoint)
            record.decay(now)
        return record
