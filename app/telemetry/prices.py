"""What a request costs: the configured prices, then what the backend's own listing tells, else nobody knows.

There is no built-in table: prices change, and a wrong one is worse than none. Unknown is None and never 0;
0 is a price (a model of one's own).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from config.schema import Price
from translators.ir import Usage

MAX_KEPT = 1024
"""Models whose price is remembered; clients can make up names."""
_MILLION = 1e6
_DATE = re.compile(r"[-@:._](?:20\d\d-?[01]\d-?[0-3]\d|[01]\d-?[0-3]\d|[01]\d-20\d\d)$")
"""Of a snapshot: `-2025-08-07`, `-20250807`, `@20250807`, `-0613`, `-08-2024`."""

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rate:
    """US dollars for one token of each kind."""

    input: float
    output: float | None
    cached: float
    written: float

    def cost(self, usage: Usage) -> float | None:
        """Cached and written tokens are a part of the input's, reasoning is one of the output's."""
        if usage.output and self.output is None:
            return None
        plain = max(0, usage.input - usage.cached - usage.cache_write)
        spent = plain * self.input + usage.cached * self.cached + usage.cache_write * self.written
        return round(spent + usage.output * (self.output or 0.0), 12)


def rate_of(price: Price) -> Rate:
    rates = [
        price.input,
        price.output,
        price.input if price.cached_input is None else price.cached_input,
        price.input if price.cache_write is None else price.cache_write,
    ]
    taken, given, cached, written = (None if each is None else each / _MILLION for each in rates)
    return Rate(taken or 0.0, given, cached or 0.0, written or 0.0)


class Prices:
    """The prices of one configuration; `facts` gives what a listing says of `provider/model`."""

    def __init__(self, table: Mapping[str, Price], facts: Callable[[str], Facts | None]) -> None:
        self._exact = {name.lower(): rate_of(each) for name, each in table.items() if "*" not in name}
        globs = [name for name in table if "*" in name]
        globs.sort(key=lambda name: len(name.replace("*", "")), reverse=True)
        self._globs = [(name.lower(), rate_of(table[name])) for name in globs]
        self._facts = facts
        self._kept: dict[str, tuple[Facts | None, Rate | None]] = {}

    def cost(self, target: str, usage: Usage | None) -> float | None:
        """US dollars of a reply of `provider/model`; None: not known."""
        if usage is None or not target:
            return None
        rate = self._rate(target)
        return None if rate is None else rate.cost(usage)

    def _rate(self, target: str) -> Rate | None:
        facts = self._facts(target)
        known = self._kept.get(target)
        if known is not None and known[0] is facts:
            return known[1]
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        rate = self._configured(target.lower())
        if rate is None and facts:
            rate = listed_rate(facts)
        self._kept[target] = facts, rate
        return rate

    def _configured(self, target: str) -> Rate | None:
        """The whole name wins over the one without its date, a name over a pattern, the longer pattern."""
        names = [target, target.partition("/")[2]]
        names += [_DATE.sub("", name) for name in names]
        for name in names:
            if name in self._exact:
                return self._exact[name]
        return next((rate for glob, rate in self._globs if any(fnmatchcase(n, glob) for n in names)), None)


def listed_rate(facts: Facts) -> Rate | None:
    """OpenRouter's `pricing` is in dollars for a token (-1: it depends), Together's for a million."""
    pricing = facts.get("pricing")
    if not isinstance(pricing, dict):
        return None
    if "prompt" in pricing:
        names, scale = ("prompt", "completion", "input_cache_read", "input_cache_write"), 1.0
    else:
        names, scale = ("input", "output", "", ""), 1 / _MILLION
    taken, given, cached, written = (_dollars(pricing.get(name)) for name in names)
    if taken is None or _dollars(pricing.get("request")):  # a price for each request, whatever its length
        return None
    rates = (taken if each is None else each for each in (cached, written))
    cached_rate, written_rate = (each * scale for each in rates)
    return Rate(taken * scale, None if given is None else given * scale, cached_rate, written_rate)


def _dollars(value: Any) -> float | None:
    """A price in a number or in digits; one below 0 says nothing."""
    try:
        price = float(value)
    except (TypeError, ValueError):
        return None
    return price if 0 <= price < float("inf") and not isinstance(value, bool) else None
