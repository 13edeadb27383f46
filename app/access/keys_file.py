"""The keys file while the gateway serves: read again when it changes; requests under way go on.

A file with faults leaves the keys as they were; the log says every fault, and `/ready` that there are some.
At the start there are none to leave: then nobody is let in by that file until it is mended.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from config.keys import Key, load_keys
from config.problems import ConfigErrors
from config.schema import Server

from ..reload import LOOK_S, Stamp, stamp_of
from .auth import Keys

if TYPE_CHECKING:
    from ..gateway import Gateway

_log = structlog.get_logger("dragoman.keys")


@dataclass(frozen=True, slots=True)
class KeysOf:
    """The entries of one state of the file; `entries` None: no file is configured.

    `fault`: why they are not those of its last state, None: they are. `unread`: it could not even be read,
    for a reason that may pass without the file being touched.
    """

    path: Path | None = None
    entries: Sequence[Key] | None = None
    stamp: Stamp | None = None
    fault: str | None = None
    unread: bool = False

    def keys(self, server: Server) -> Keys:
        return Keys([key.get_secret_value() for key in server.api_keys], self.entries)


def read_keys(server: Server, former: KeysOf | None = None) -> KeysOf:
    """The file that is configured. Raises `ConfigErrors` where another was in use before."""
    if server.keys_file is None:
        return KeysOf()
    path = Path(server.keys_file)
    stamp = stamp_of(path)  # before it is read: what is written meanwhile is then seen as a change
    try:
        return KeysOf(path, load_keys(path), stamp)
    except ConfigErrors as errors:
        if former is not None and former.path != path:
            raise
        before = KeysOf(path, ()) if former is None else former
        return _not_loaded(before, errors, stamp)


def _not_loaded(before: KeysOf, errors: ConfigErrors, stamp: Stamp | None) -> KeysOf:
    """The entries of `before`, which go on. `/ready` needs no key: the log alone has the words."""
    unread = isinstance(errors.__cause__, OSError)
    what = errors.problems[0].message if unread else "it has faults"
    kept = "the keys read before stay in force, revoked ones too"
    still = kept if before.entries else "no key of it is taken"
    fault = f"{what}; {still} (keys_not_loaded in the log)"
    after = replace(before, stamp=stamp, fault=fault, unread=unread)
    if after != before:  # else it was said
        _log.error("keys_not_loaded", path=str(before.path), errors=errors.lines())
    return after


class KeysReload:
    """Looks at the file of a gateway, whichever its configuration names by now."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway, self._clock = gateway, clock
        self._looked = clock()
        self._seen: Stamp | None = None

    async def tick(self) -> None:
        """Called often; looks once in a while. A change is taken up when two looks find the same one.

        What could not be read is tried at each look: nothing of the file may tell that it can be by now.
        """
        now, known = self._clock(), self._gateway.keys_of
        if known.path is None or now - self._looked < LOOK_S:
            return
        self._looked = now
        before, self._seen = self._seen, stamp_of(known.path)
        if self._seen == before and (self._seen != known.stamp or known.unread):
            await self._reload(known.path, known, self._seen)

    async def _reload(self, path: Path, known: KeysOf, stamp: Stamp | None) -> None:
        try:
            found = KeysOf(path, await asyncio.to_thread(load_keys, path), stamp)
        except ConfigErrors as errors:
            found = _not_loaded(known, errors, stamp)
        else:
            _log.info("keys_reloaded", path=str(path), keys=len(found.entries or ()))
        if (
            found != known and self._gateway.keys_of is known
        ):  # else another configuration came, and has read it
            self._gateway.take_keys(found)
