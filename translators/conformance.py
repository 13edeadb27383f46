"""Checking a stream against the rules of its wire: anyone's, and in the tests our own.

Sans-IO: `feed` network reads, `close` at the end, read `findings`. A checker maps frames to the
events of `ir.py` and has their order judged by `ir.Grammar`; what the events cannot say (numbers,
names, required fields, sums) it judges itself. It never raises, and goes on after a finding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from .framing import FrameCutter, payload_of
from .ir import Event, Grammar, GrammarError, Json, Started
from .lenient import read_json

MAX_FINDINGS = 200
"""A stream that is wrong in every frame needs no longer list."""


class Finding(NamedTuple):
    """A violation. `frame` counts the stream's frames from 1, comments too; `why` says whom it hurts."""

    frame: int
    rule: str
    expected: str
    why: str


class StreamCheck(ABC):
    """One stream of one wire."""

    why: Mapping[str, str]
    """Every rule, and what a break of it does to which client."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.frame = 0
        self._cutter = FrameCutter()
        self._marked = False
        """Whether `[DONE]` has come."""

    def feed(self, data: bytes) -> None:
        for frame in self._cutter.feed(data):
            self._take(frame)

    def close(self) -> list[Finding]:
        """The end of the bytes; all findings."""
        if rest := self._cutter.close().rstrip(b"\r\n"):
            self._take(rest + b"\n\n")
            self.fault("unended_frame", "a blank line after the last frame")
        self.end()
        return self.findings

    def fault(self, rule: str, expected: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(self.frame, rule, expected, self.why[rule]))

    @abstractmethod
    def take(self, obj: Json, name: str | None) -> None:
        """One frame's object; `name` is its `event:` line."""

    @abstractmethod
    def end(self) -> None:
        """The end of the bytes."""

    def _take(self, frame: bytes) -> None:
        self.frame += 1
        payload = payload_of(frame)
        if payload is None:
            return
        if self._marked:
            self.fault("after_done", "nothing after `[DONE]`")
        elif payload.strip() == b"[DONE]":
            self._marked = True
        else:
            value, plain = read_json(payload)
            if isinstance(value, dict) and plain:
                self.take(value, _name(frame))
            else:
                self.fault("not_json", "a JSON object in `data:`")

    def see(self, grammar: Grammar, event: Event, rule: str) -> bool:
        """Have the order judged; whether `event` was legal."""
        try:
            grammar.see(event)
        except GrammarError:
            if grammar.state == "done":
                self.fault("after_end", "nothing after the reply's end")
            elif grammar.state == "new":
                self.fault("no_beginning", "the event that begins a reply before all others")
                grammar.see(Started())
                return self.see(grammar, event, rule)
            else:
                self.fault(rule, f"no {type(event).__name__.lower()} here: see the order of events")
            return False
        return True

    def fields(self, obj: Json, wanted: Mapping[str, type | tuple[type, ...]], where: str) -> bool:
        """Whether `obj` has all of these; each that is missing or of another type is a finding."""
        wrong = [key for key, kind in wanted.items() if not _is(obj.get(key), kind)]
        for key in wrong:
            self.fault("bad_field", f"{where}.{key}: {_words(wanted[key])}")
        return not wrong

    def tokens(self, usage: Json, keys: tuple[str, str, str], details: Mapping[str, str]) -> None:
        """Whole token counts, whose total is their sum; `details`: object -> the count in it."""
        if not self.fields(usage, dict.fromkeys(keys, int), "usage"):
            return
        if usage[keys[0]] + usage[keys[1]] != usage[keys[2]]:
            self.fault("usage_sum", f"{keys[2]} = {keys[0]} + {keys[1]}")
        for name, key in details.items():
            if isinstance(usage.get(name), dict):
                self.fields(usage[name], {key: int}, f"usage.{name}")


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)


def _words(kind: type | tuple[type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join(each.__name__ for each in kinds)


def _name(frame: bytes) -> str | None:
    names = [line[6:].strip() for line in frame.splitlines() if line.startswith(b"event:")]
    return names[-1].decode("utf-8", "replace") if names else None
