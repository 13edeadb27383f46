"""What backends turned out not to take, remembered per host, model and surface.

Asked on every request, so it is a look-up in memory and nothing more where nothing was learned. A file
keeps it across restarts: read when the process starts and when someone else changed it (another worker,
`dragoman quirks --forget`), written in a thread. Everything expires: a backend may learn, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from translators.rejections import Rejection

from .base import Surface
from .quirks_file import Learned, QuirksFile, UnreadableQuirks

KEPT_S = 24 * 3600.0
"""For how long a field is left out before the backend is asked with it again."""
MAX_LEARNED = 2048
"""Rejections kept in all: model names come from clients, so there is a bound."""
REFRESH_S = 2.0
"""How often, at most, the file is looked at for changes that others made."""

Key = tuple[str, str, Surface]

_log = structlog.get_logger("dragoman.quirks")


class Quirks:
    """One per process, shared by its providers. `clock`: seconds since the epoch."""

    def __init__(self, file: QuirksFile | None = None, clock: Callable[[], float] = time.time) -> None:
        self._file, self._clock = file, clock
        self._learned: dict[Key, tuple[Learned, ...]] = {}
        self._refused: dict[Key, float] = {}
        self._looked = 0.0
        if file is not None:
            self._load(file)

    def known(self, host: str, model: str, surface: Surface) -> Sequence[Rejection]:
        """What this model is known not to take, in the order it was learned; never waits."""
        found = self._learned.get((host, model, surface))
        if found is None:
            return ()
        now = self._clock()
        if self._file is not None and not 0 <= now - self._looked < REFRESH_S:
            self._looked = now
            if self._file.changed():
                self._load(self._file)
                found = self._learned.get((host, model, surface), ())
        return [each.rejection for each in found if each.until > now]

    def learn(self, host: str, model: str, surface: Surface, found: Sequence[Rejection]) -> None:
        """Remember it from now on; the file is written behind the caller's back."""
        until = self._clock() + KEPT_S
        learned = [Learned(host, model, surface, each, until) for each in found]
        self._keep([*self._all(), *learned])
        if self._file is None:
            return
        try:
            asyncio.get_running_loop().run_in_executor(None, self._write, self._file, learned)
        except RuntimeError:  # no event loop: nobody is kept waiting
            self._write(self._file, learned)

    def refuse(self, host: str, model: str, surface: Surface, seconds: float) -> None:
        """Leave the surface alone for so long; for every provider of the host, until the process ends."""
        if len(self._refused) >= MAX_LEARNED:
            self._refused.clear()
        self._refused[host, model, surface] = self._clock() + seconds

    def open_surfaces(self, host: str, model: str, order: Sequence[Surface]) -> Sequence[Surface]:
        """Those of `order` that this model is not known to lack; never none of them."""
        if not self._refused:
            return order
        now = self._clock()
        left = [each for each in order if self._refused.get((host, model, each), 0.0) <= now]
        return left or order

    def _all(self) -> list[Learned]:
        return [each for entries in self._learned.values() for each in entries]

    def _keep(self, entries: Sequence[Learned]) -> None:
        kept: dict[Key, tuple[Learned, ...]] = {}
        for each in newest(entries, self._clock(), MAX_LEARNED):
            key = each.host, each.model, each.surface
            kept[key] = (*kept.get(key, ()), each)
        self._learned = kept

    def _load(self, file: QuirksFile) -> None:
        try:
            self._keep(file.read())
        except UnreadableQuirks as error:
            _log.warning("quirks_unreadable", file=str(file.path), reason=str(error))

    def _write(self, file: QuirksFile, learned: Sequence[Learned]) -> None:
        """A file that cannot be written is given up: what is learned then ends with the process."""
        try:
            file.update(lambda entries: newest([*entries, *learned], self._clock(), MAX_LEARNED))
        except OSError as error:
            self._file = None
            _log.warning("quirks_unwritable", file=str(file.path), reason=error.strerror or str(error))


def newest(entries: Sequence[Learned], now: float, most: int) -> list[Learned]:
    """Each rejection once, the expired and, where there are too many, the oldest left out."""
    fresh = {
        (each.host, each.model, each.surface, each.rejection): each for each in entries if each.until > now
    }
    ordered = list(fresh.values())
    if len(ordered) <= most:
        return ordered
    oldest = sorted(ordered, key=lambda each: each.until)[: len(ordered) - most]
    gone = {id(each) for each in oldest}
    return [each for each in ordered if id(each) not in gone]
