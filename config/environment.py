"""`${NAME}` in strings is replaced by the environment; `$${` stays a literal `${`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .problems import Place, Problem

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def substitute(raw: Any, environ: Mapping[str, str], problems: list[Problem], place: Place = ()) -> Any:
    """A copy of a parsed file with every string filled in; faults are added to `problems`.

    A variable that is set to nothing counts as not set: an empty key would sign nothing, or
    let everybody in. Values never appear in a fault.
    """
    if isinstance(raw, dict):
        return {key: substitute(value, environ, problems, (*place, key)) for key, value in raw.items()}
    if isinstance(raw, list):
        return [substitute(value, environ, problems, (*place, at)) for at, value in enumerate(raw)]
    if isinstance(raw, str) and "${" in raw:
        return _REFERENCE.sub(_filler(environ, problems, place), raw)
    return raw


def _filler(
    environ: Mapping[str, str], problems: list[Problem], place: Place
) -> Callable[[re.Match[str]], str]:
    def fill(match: re.Match[str]) -> str:
        name, closed = match[1], match[2]
        if name is None:
            return "${"
        fault = _fault(name, closed, environ)
        if fault:
            problems.append(Problem(place, fault))
            return match[0]
        return environ[name]

    return fill


def _fault(name: str, closed: str, environ: Mapping[str, str]) -> str | None:
    if not closed:
        return "${ is never closed; write $${ for a literal ${"
    if not _NAME.fullmatch(name):
        return f"${{{name}}} does not name an environment variable; write $${{ for a literal ${{"
    if name not in environ:
        return f"environment variable {name} is not set"
    return None if environ[name] else f"environment variable {name} is empty"
