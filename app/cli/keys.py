"""`dragoman keys`: makes, lists and takes away the keys of the keys file.

A key is printed once, when it is made.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import orjson
import typer

from config.keys import Key, hash_of, load_keys, new_key, read_keys_text, with_key, without_key
from config.load import find, keys_file_of, read
from config.problems import ConfigErrors, Problem

from .configuration import LEAST_LENGTH, TOO_SHORT, ConfigOption, refuse, say

NOT_WRITTEN = 1
"""Exit status when the file could not be written."""

keys = typer.Typer(
    name="keys", help="Make, list and take away API keys.", no_args_is_help=True, rich_markup_mode=None
)

FileOption = Annotated[Path | None, typer.Option("--file", help="The keys file; else server.keys_file.")]
Count = Annotated[int | None, typer.Option(min=1)]


@keys.command()
def add(
    name: Annotated[str, typer.Argument(help="Whose key it is: a-z, 0-9 and -.")],
    model: Annotated[
        list[str] | None, typer.Option(help="A model it may use, or a pattern; repeatable.")
    ] = None,
    cls: Annotated[list[str] | None, typer.Option("--class", help="A class it may use; repeatable.")] = None,
    requests_per_minute: Count = None,
    tokens_per_minute: Count = None,
    tokens_per_day: Count = None,
    concurrency: Count = None,
    expires: Annotated[str | None, typer.Option(help="Date or time, e.g. 2027-01-31.")] = None,
    owner: Annotated[str | None, typer.Option(help="Whose the stored responses are; else NAME.")] = None,
    file: FileOption = None,
    config: ConfigOption = None,
) -> None:
    """Make a key: its hash goes into the file, the key to stdout, once."""
    limits = {
        "requests_per_minute": requests_per_minute,
        "tokens_per_minute": tokens_per_minute,
        "tokens_per_day": tokens_per_day,
        "concurrency": concurrency,
    }
    key = new_key()
    lines = [f"name = {_toml(name)}", f"hash = {_toml(hash_of(key))}"]
    lines += [f"owner = {_toml(owner)}"] if owner else []
    lines += [f"models = {_toml(model)}"] if model else []
    lines += [f"classes = {_toml(cls)}"] if cls else []
    lines += [f"expires = {_moment(expires)}"] if expires else []
    given = ", ".join(f"{what} = {most}" for what, most in limits.items() if most is not None)
    lines += [f"limits = {{{given}}}"] if given else []
    entry = "\n".join(("[[keys]]", *lines)) + "\n"
    path = _path(file, config)
    made = _edit(path, lambda text: with_key(text, entry, name), new=True)
    where = f"a new file that user {_user(path.stat().st_uid)} alone can read" if made else "as one more"
    say(f"key {name!r} is in {path.absolute()}, {where}; it is shown this once:")
    typer.echo(key)


@keys.command("list")
def show(
    file: FileOption = None,
    config: ConfigOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the keys of the file and what each may do."""
    try:
        found = load_keys(_path(file, config))
    except ConfigErrors as errors:
        refuse(errors)
    if as_json:
        typer.echo(orjson.dumps([key.model_dump(exclude={"hash"}, mode="json") for key in found]).decode())
    else:
        _print(found)


@keys.command()
def revoke(
    name: Annotated[str, typer.Argument(help="The key's name.")],
    file: FileOption = None,
    config: ConfigOption = None,
) -> None:
    """Refuse a key from now on; a gateway that runs sees that within seconds."""
    path = _path(file, config)
    _edit(path, lambda text: without_key(text, name))
    say(f"key {name!r} is disabled in {path.absolute()}")


@keys.command("hash")
def hashed() -> None:
    """Print the hash of a key that is read from stdin (an argument would stand in the list of processes)."""
    asked = sys.stdin.isatty()
    given = typer.prompt("key", hide_input=True, err=True) if asked else sys.stdin.readline()
    if not given.strip():
        say("there is no key on stdin")
        raise typer.Exit(2)
    if len(given.strip()) < LEAST_LENGTH:
        say(f"warning: this key {TOO_SHORT}")
    typer.echo(hash_of(given.strip()))


def _path(file: Path | None, config: Path | None) -> Path:
    if file is not None:
        return file
    source = find(config, os.environ, Path.cwd())
    try:
        named = None if source is None else keys_file_of(read(source), os.environ, source)
    except ConfigErrors as errors:
        refuse(errors)
    if named is None:
        say('no keys file is configured: name one with --file, or set keys_file = "keys.toml" in [server]')
        raise typer.Exit(2)
    return Path(named)


def _edit(path: Path, change: Callable[[str], str], new: bool = False) -> bool:
    """All or nothing, so that a gateway never reads half a file. `new`: it may not be there yet.

    Whether it was not.
    """
    made = new and not path.exists()
    try:
        text = change("" if made else read_keys_text(path))
    except ConfigErrors as errors:
        refuse(ConfigErrors(errors.problems, path.absolute()))
    try:
        _replace(path, text)
    except OSError as error:
        _not_written(path, error)
    return made


def _replace(path: Path, text: str) -> None:
    """Whose it was, and readable by whom it was; a new one by its owner only. A link stays one."""
    path = path.resolve()
    former = path.stat() if path.exists() else None
    handle, written = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
            if former is not None:
                _give(out.fileno(), former)
        Path(written).replace(path)
    except BaseException:
        Path(written).unlink(missing_ok=True)
        raise


def _give(handle: int, former: os.stat_result) -> None:
    """Owner, group and mode: who can no longer read the file goes on with keys that are revoked."""
    # Whoever may not give files away may still give them to a group of theirs.
    for owner in (former.st_uid, -1):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, owner, former.st_gid)
            break
    given = os.fstat(handle)
    others = 0o777 if given.st_gid == former.st_gid else 0o707
    os.fchmod(handle, former.st_mode & others)
    if given.st_uid != former.st_uid:
        say(f"warning: the file was user {_user(former.st_uid)}'s; can the gateway still read it?")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _not_written(path: Path, error: OSError) -> NoReturn:
    say(f"{path}: {error.strerror}")
    raise typer.Exit(NOT_WRITTEN)


def _moment(text: str) -> str:
    """A date or a time as TOML writes it: without quotes."""
    try:
        return datetime.fromisoformat(text).isoformat() if "T" in text or " " in text else text
    except ValueError:
        refuse(ConfigErrors([Problem((), "--expires must be a date or a time such as 2027-01-31T12:00:00Z")]))


def _toml(value: str | Sequence[str]) -> str:
    return orjson.dumps(value).decode()


def _print(found: Sequence[Key]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "models", "classes", "limits", "state", box=None)
    for key in found:
        limits = key.limits.model_dump(exclude_none=True)
        told = ", ".join(f"{what} {most}" for what, most in limits.items())
        table.add_row(key.name, _shown(key.models), _shown(key.classes), told or "none", _state(key))
    Console().print(table)


def _shown(names: Sequence[str] | None) -> str:
    return "all" if names is None else ", ".join(names)


def _state(key: Key) -> str:
    if key.disabled:
        return "disabled"
    if key.expires is None:
        return "valid"
    return (
        f"{'expired' if key.expires <= datetime.now(UTC) else 'valid until'} {key.expires:%Y-%m-%d %H:%M %Z}"
    )
