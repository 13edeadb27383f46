"""A configuration read again while the gateway serves: on SIGHUP, and when its file changes.

All or nothing. A file with errors leaves everything as it was, and the log says every one of them. Requests
under way end with the backends they began with. Each worker looks for itself, so all of them follow.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson
import structlog

from config.load import parse, read
from config.problems import ConfigErrors
from config.schema import Config
from providers.profiles import BY_NAME

LOOK_S = 1.0
"""Between two looks at the file. A change is taken up when a second look finds the same one: an
editor may write a file in several steps."""

FIXED = ("host", "port", "workers", "shutdown_grace_s")
"""Server settings that are those of the start until the end."""

Stamp = tuple[int, int, int, int]

_log = structlog.get_logger("dragoman.config")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a configuration was read from."""

    path: Path
    given: Mapping[str, Any]
    """Server settings of the command line, which win over the file's."""
    stamp: Stamp | None
    """Of the file as it was read."""


def origin_of(path: Path, given: Mapping[str, Any]) -> Origin:
    """Call it before the file is read: what is written meanwhile is then seen as a change."""
    return Origin(path, given, stamp_of(path))


def stamp_of(path: Path) -> Stamp | None:
    """What changes whenever the file does, its owner, or what a link leads to; None: it cannot be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns


class Kept:
    """The file as it was last taken up, for workers that are started later.

    By then the file may have errors, and all workers must serve the same. Make it before they are forked.
    It has no name, so nobody else reads the keys in it. Use it as a context manager.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - `__exit__` closes it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, text: str, stamp: Stamp | None) -> None:
        """Of several workers the last one's stays."""
        data, handle = orjson.dumps([text, stamp]), self._file.fileno()
        fcntl.lockf(handle, fcntl.LOCK_EX)
        try:
            os.ftruncate(handle, os.pwrite(handle, data, 0))
        finally:
            fcntl.lockf(handle, fcntl.LOCK_UN)

    def read(self) -> tuple[str, Stamp | None] | None:
        """None: the file was never taken up again."""
        handle = self._file.fileno()
        fcntl.lockf(handle, fcntl.LOCK_EX)
        try:
            data = os.pread(handle, os.fstat(handle).st_size, 0)
        finally:
            fcntl.lockf(handle, fcntl.LOCK_UN)
        if not data:
            return None
        text, stamp = orjson.loads(data)
        return text, None if stamp is None else tuple(stamp)


def newest(config: Config, origin: Origin, kept: Kept) -> tuple[Config, Origin]:
    """What a worker begins with: the start's configuration, or the one that the others took up since."""
    try:
        found = kept.read()
        if found is None:
            return config, origin
        text, stamp = found
        return _parsed(text, origin, fixed(config)), Origin(origin.path, origin.given, stamp)
    except (ConfigErrors, ValueError):  # written by half: its writer died of that, and the file is watched
        return config, origin


def fixed(config: Config) -> dict[str, Any]:
    """The settings that no reload changes."""
    return {key: getattr(config.server, key) for key in FIXED}


def _parsed(text: str, origin: Origin, settings: Mapping[str, Any]) -> Config:
    """Raises `ConfigErrors`."""
    return parse(text, os.environ, BY_NAME, settings, origin.path)


class Reload:
    """Watches one configuration file; `apply` puts a checked configuration into service."""

    def __init__(
        self,
        origin: Origin,
        config: Config,
        apply: Callable[[Config], Awaitable[None]],
        kept: Kept | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._origin, self._config, self._apply, self._kept, self._clock = origin, config, apply, kept, clock
        self._fixed, self._telemetry = fixed(config), config.telemetry
        self._stamp, self._seen = origin.stamp, origin.stamp
        self._looked = clock()
        self._asked = False

    def ask(self) -> None:
        """Read it at the next tick, changed or not; safe in a signal handler."""
        self._asked = True

    async def tick(self) -> None:
        """Called often; looks at the file once in a while. Never raises."""
        now = self._clock()
        if not self._asked and now - self._looked < LOOK_S:
            return
        self._looked = now
        before, self._seen = self._seen, stamp_of(self._origin.path)
        settled = self._seen != self._stamp and self._seen == before
        if self._asked or settled:
            asked, self._asked = self._asked, False
            self._stamp = self._seen
            await self._reload(asked)

    async def _reload(self, asked: bool) -> None:
        path = str(self._origin.path)
        try:
            text, found = await self._read()
            if found == self._config and not asked:  # touched, or written with nothing new in it
                return
            await self._apply(found)
        except ConfigErrors as errors:
            _log.error("config_not_reloaded", path=path, errors=errors.lines())
        except Exception:  # the gateway goes on with what it has
            _log.exception("config_not_reloaded", path=path, errors=["a fault of the gateway"])
        else:
            self._config = found
            if self._kept is not None:
                with contextlib.suppress(OSError):  # no space: a worker started later begins with the start's
                    self._kept.write(text, self._stamp)
            _log.info("config_reloaded", path=path, providers=[each.name for each in found.providers])

    async def _read(self) -> tuple[str, Config]:
        """The file's text and configuration, read in a thread: it may be long. Raises `ConfigErrors`.

        What needs a restart is told, and the rest is judged with what is in force: no file may do
        without keys because it names an address that is not listened to.
        """
        origin = self._origin
        text = await asyncio.to_thread(read, origin.path)
        found = await asyncio.to_thread(_parsed, text, origin, origin.given)
        changed = [key for key, value in self._fixed.items() if getattr(found.server, key) != value]
        settings = [f"server.{key}" for key in changed]
        settings += ["telemetry"] if found.telemetry != self._telemetry else []
        if settings:
            _log.warning("config_needs_restart", path=str(origin.path), settings=settings)
        if changed:
            found = await asyncio.to_thread(_parsed, text, origin, self._fixed)
        return text, found
