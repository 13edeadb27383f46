"""The file of API keys (`server.keys_file`): who may ask for what, and how much of it.

    [[keys]]
    name = "ci"
    hash = "sha256:9f86d081..."          # of the key; the key itself is nowhere
    models = ["dbx/*", "gpt-5*"]
    classes = ["chat-fast"]
    limits = {requests_per_minute = 60, tokens_per_minute = 100000, concurrency = 4}

Keys are 256 random bits, so one fast hash of them cannot be reversed; passwords would need a slow one.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from .faults import explain, first_causes
from .load import placed, read, read_toml
from .problems import ConfigErrors, Place, Problem, did_you_mean
from .schema import NAME, Section, Text

SCHEME = "sha256:"
PREFIX = "sk-dragoman-"
"""Of the keys made here; `sk-` is what scanners for leaked keys, and our own masking, look for."""
_HASH = re.compile(r"sha256:[0-9a-f]{64}")

_Count = Annotated[int | None, Field(ge=1)]


class KeyLimits(Section):
    """What one key may ask for; absent: any number."""

    requests_per_minute: _Count = None
    """Requests for a model."""
    tokens_per_minute: _Count = None
    """Tokens of requests and answers together, as backends count them."""
    tokens_per_day: _Count = None
    """The same in 24 hours."""
    concurrency: _Count = None
    """Requests under way at a time, in each process."""

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth_value(cls, value: Any) -> Any:
        """Python counts `true` as 1."""
        if isinstance(value, bool):
            raise ValueError("must not be true or false")
        return value


class Key(Section):
    """One key."""

    name: str = Field(pattern=NAME)
    """Of whoever holds it: in the log and in limits, never sent to anybody."""
    hash: str
    """`sha256:` and the key's SHA-256 in hex, as `dragoman keys hash` prints it."""
    owner: str | None = Field(default=None, pattern=NAME)
    """Whose the stored responses are; absent: the name's. Keys with one owner read each other's."""
    models: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """What it may use: `provider/model`, or a model's own name; `*` and `?` as in file names. Absent: all."""
    classes: (
        Annotated[
            tuple[Literal["chat-thinking", "chat-balanced", "chat-fast", "embedding"], ...],
            Field(min_length=1),
        ]
        | None
    ) = None
    """Classes that a model has to be of, besides; absent: any."""
    limits: KeyLimits = KeyLimits()
    """Absent: none."""
    expires: datetime | None = None
    """From when on it is refused, a date or a time; without an offset UTC."""
    disabled: bool = False
    """Whether it is refused."""

    @field_validator("hash")
    @classmethod
    def _is_hash(cls, value: str) -> str:
        # Whatever else stands there may be the key itself: it is not quoted.
        if not _HASH.fullmatch(value):
            raise ValueError('must be "sha256:" and 64 hex digits; `dragoman keys hash` makes it of a key')
        return value

    @field_validator("expires", mode="before")
    @classmethod
    def _is_time(cls, value: Any) -> Any:
        if isinstance(value, int | float):
            raise ValueError("must be a date or a time such as 2027-01-31T12:00:00Z")
        return value

    @field_validator("expires")
    @classmethod
    def _with_offset(cls, value: datetime | None) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value

    @property
    def holder(self) -> str:
        """Whose the responses are that are stored for it."""
        return self.owner or self.name


class KeysFile(Section):
    keys: tuple[Key, ...] = ()


def load_keys(path: Path) -> tuple[Key, ...]:
    """Raises `ConfigErrors`."""
    return parse_keys(read_keys_text(path), path)


def read_keys_text(path: Path) -> str:
    """Raises `ConfigErrors`, because of an `OSError` when the file cannot be had.

    A relative path is looked for from where the process was started: the whole one says where that was.
    """
    try:
        return read(path)
    except ConfigErrors as errors:
        if not isinstance(errors.__cause__, FileNotFoundError):
            raise
        problem = Problem((), "no such file; `dragoman keys add NAME` makes it")
        raise ConfigErrors([problem], path.absolute()) from errors.__cause__


def parse_keys(text: str, source: Path | None = None) -> tuple[Key, ...]:
    """The keys of a file's text. Raises `ConfigErrors` with every fault and its line."""
    raw = read_toml(text, source)
    problems = list(_twice(raw))
    try:
        found = KeysFile.model_validate(raw).keys
    except ValidationError as error:
        found = ()
        problems += [explain(fault, _nearest) for fault in first_causes(error.errors(include_url=False))]
    if problems:
        raise ConfigErrors(placed(dict.fromkeys(problems), text), source)
    return found


def _twice(raw: dict[str, Any]) -> Iterator[Problem]:
    """Names and hashes are unique."""
    entries = raw.get("keys")
    seen: dict[tuple[str, str], int] = {}
    for at, entry in enumerate(entries if isinstance(entries, list) else ()):
        for what in ("name", "hash"):
            value = entry.get(what) if isinstance(entry, dict) else None
            if isinstance(value, str) and (before := seen.setdefault((what, value), at)) != at:
                yield Problem(("keys", at, what), f"is that of keys[{before}] too")


def _nearest(place: Place) -> str:
    owner: type[Section] = KeysFile
    if len(place) > 1:
        owner = KeyLimits if "limits" in place[:-1] else Key
    return did_you_mean(str(place[-1]), owner.model_fields)


def new_key() -> str:
    """A fresh key, of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """What is kept of a key."""
    return SCHEME + hashlib.sha256(key.encode()).hexdigest()


def with_key(text: str, entry: str, name: str) -> str:
    """A keys file's text with `entry`, one more `[[keys]]` table. Raises `ConfigErrors`."""
    keys = parse_keys(text)
    known = next((key for key in keys if key.name == name), None)
    if known is not None:
        raise ConfigErrors([Problem((), _taken(known))])
    new = text + ("" if not text or text.endswith("\n") else "\n") + ("\n" if text.strip() else "") + entry
    parse_keys(new)
    return new


def _taken(key: Key) -> str:
    if key.disabled:
        return (
            f"the name {key.name!r} is that of a revoked key, and no name is given again; choose another "
            f"(with --owner {key.holder} it reads what that key stored)"
        )
    return (
        f"there is a key {key.name!r} already; choose another name (to replace that key, add one with "
        f"--owner {key.holder}, then revoke it)"
    )


_TABLE = re.compile(r"^\s*\[\[?\s*([A-Za-z0-9_.-]+)\s*\]")
_SWITCH = re.compile(r"^\s*disabled\s*=")


def without_key(text: str, name: str) -> str:
    """A keys file's text in which that key is disabled; the entry stays, so that its name is not used again.

    Raises `ConfigErrors` for a name that is not there, or a file that is not written as `[[keys]]` tables.
    """
    keys = parse_keys(text)
    places = [at for at, key in enumerate(keys) if key.name == name]
    if not places:
        hint = did_you_mean(name, [key.name for key in keys])
        raise ConfigErrors([Problem((), f"no key is named {name!r}{hint}")])
    new = "".join(_disabled(text.splitlines(keepends=True), places[0]))
    if not _only_disabled(new, keys, places[0]):
        raise ConfigErrors([Problem((), f"write `disabled = true` at key {name!r} yourself: see its entry")])
    return new


def _disabled(lines: Sequence[str], place: int) -> Iterator[str]:
    """The lines with the switch put first in the entry at `place`."""
    entry, inside = -1, False
    for line in lines:
        header = _TABLE.match(line)
        if header is not None:
            entry += header[1] == "keys"
            inside = header[1] == "keys" and entry == place
        if not (inside and _SWITCH.match(line)):
            yield line if line.endswith("\n") else line + "\n"
        if inside and header is not None:
            yield "disabled = true\n"


def _only_disabled(text: str, keys: Sequence[Key], place: int) -> bool:
    try:
        found = parse_keys(text)
    except ConfigErrors:
        return False
    wanted = list(keys)
    wanted[place] = keys[place].model_copy(update={"disabled": True})
    return list(found) == wanted
