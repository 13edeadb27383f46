"""Keys files for tests, and how a key is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from config.keys import hash_of
from tests.backends.gateway import toml


def key_of(name: str) -> str:
    """The key of an entry by this name."""
    return f"sk-dragoman-test-4711-{name}"


def signed(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key_of(name)}"}


def entry(name: str, **more: Any) -> str:
    given = {"name": name, "hash": hash_of(key_of(name)), **more}
    return "[[keys]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in given.items())


def written(path: Path, *entries: str) -> str:
    """The file with these entries, as `server.keys_file`; replaced at once, as editors do."""
    new = path.with_suffix(".new")
    new.write_text("\n".join(entries))
    new.replace(path)
    return str(path)
