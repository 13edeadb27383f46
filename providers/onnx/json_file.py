"""JSON objects in the files of a model folder."""

from __future__ import annotations

from pathlib import Path

import orjson

from translators.ir import Json


def read_json(path: Path) -> Json | None:
    """The object in the file; None when it is missing, unreadable or anything else."""
    try:
        found = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return found if isinstance(found, dict) else None
