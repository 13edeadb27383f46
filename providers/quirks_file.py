"""The file in which learned quirks outlive a process.

    {"version": 1, "learned": [{"host": "h:443", "model": "m", "surface": "chat",
                                "path": ["tools", "*", "function", "strict"], "until": 1790000000.0}]}

`value`, `instead`, `bounds`, `name` and `beside` of a `Rejection` stand next to `path` where they are set.
Several processes share the file: each writes what is there and what it adds, whole, under a new name that
then takes the old one's place. Two that write in the same moment may lose one of their additions, which costs
one refused request later.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError
from yarl import URL

from translators.rejections import Rejection, allowed

from .base import SHAPE_OF, Surface

VERSION = 1


class UnreadableQuirks(Exception):
    """The file is there and cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Learned:
    """One rejection of one model. `host`: with its port; `until`: seconds since the epoch."""

    host: str
    model: str
    surface: Surface
    rejection: Rejection
    until: float

    def table(self) -> dict[str, Any]:
        """As it is written: flat, without what is not set."""
        found = self.rejection
        keys = ("value", "instead", "bounds", "name", "beside")
        rest = {key: getattr(found, key) for key in keys}
        set_ones = {key: value for key, value in rest.items() if value is not None}
        place = {"host": self.host, "model": self.model, "surface": self.surface}
        return {**place, "path": found.path, **set_ones, "until": self.until}


_PLACE = ("host", "model", "surface", "until")


class QuirksFile:
    """Read and replaced as a whole; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None

    def read(self) -> list[Learned]:
        """Everything in it, none when there is no file. Raises `UnreadableQuirks`."""
        self._seen = self._stamp()
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise UnreadableQuirks(error.strerror or str(error)) from error
        try:
            return _parse(orjson.loads(raw))
        except (orjson.JSONDecodeError, ValidationError, TypeError, KeyError) as error:
            raise UnreadableQuirks("it is not a file of learned quirks") from error

    def changed(self) -> bool:
        """Whether it is another file than the one last read."""
        return self._stamp() != self._seen

    def update(self, edit: Callable[[list[Learned]], Sequence[Learned]]) -> None:
        """Replace what is there with `edit` of it; an unreadable file counts as empty.

        Raises `OSError`.
        """
        with self._lock:
            try:
                before = self.read()
            except UnreadableQuirks:
                before = []
            self._replace({"version": VERSION, "learned": [each.table() for each in edit(before)]})

    def _replace(self, content: Mapping[str, Any]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f"{self.path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
            os.replace(name, self.path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


def host_of(base_url: str) -> str:
    """The host with its port: what is learned of a backend is filed under it."""
    url = URL(base_url)
    return f"{url.host}:{url.port}"


def state_file(environ: Mapping[str, str]) -> Path | None:
    """`$XDG_STATE_HOME/dragoman/quirks.json`, else below `~/.local/state`; None: there is no home.

    A relative `XDG_STATE_HOME` counts as unset, as its specification says.
    """
    state, home = Path(environ.get("XDG_STATE_HOME", "")), environ.get("HOME", "")
    if not state.is_absolute():
        if not home:
            return None
        state = Path(home) / ".local" / "state"
    return state / "dragoman" / "quirks.json"


@cache
def _adapter() -> TypeAdapter[list[Learned]]:
    """Built on first use: most processes find no file."""
    return TypeAdapter(list[Learned], config=ConfigDict(extra="forbid"))


def _parse(content: Any) -> list[Learned]:
    if content["version"] != VERSION:
        raise KeyError("version")
    tables = [
        {
            **{key: table[key] for key in _PLACE},
            "rejection": {key: value for key, value in table.items() if key not in _PLACE},
        }
        for table in content["learned"]
    ]
    learned = _adapter().validate_python(tables)
    return [each for each in learned if allowed(each.rejection, SHAPE_OF[each.surface])]
