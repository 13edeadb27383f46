"""Request headers as the last layer of a profile: over the provider's overrides, under the body.

`x-dragoman-effort`, `-reasoning-mode` and `-reasoning-scope` set one key each, and win over
`x-dragoman-overrides`, a JSON table of profile sections. All are checked as a configuration is:
each key when it is read, keys that belong together when the layers are merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from config.conflicts import conflicts
from config.overrides import find_problems, without_false
from config.problems import Problem
from translators.errors import bad_request
from translators.lenient import MAX_DEPTH, writable
from translators.profile import Profile, merge

STRICT = b"x-dragoman-strict"
TRUTHS = {b"true": True, b"1": True, b"false": False, b"0": False, b"": False}
TABLE = b"x-dragoman-overrides"
KEYS: Mapping[bytes, tuple[str, str]] = {
    b"x-dragoman-effort": ("reasoning", "default_effort"),
    b"x-dragoman-reasoning-mode": ("reasoning", "mode"),
    b"x-dragoman-reasoning-scope": ("reasoning", "scope"),
}
"""Headers for one key: its section and name."""

_HEADERS = frozenset({TABLE, *KEYS})

GUARDED = frozenset(
    {
        *(("auth",), ("wire",), ("errors",)),
        *(("request", "max_body_bytes"), ("request", "learn_rejections"), ("request", "force")),
        *(("messages", "remote_images"), ("messages", "tool_call_id", "pattern")),
    }
)
"""What only the configuration may say: where keys go, what the gateway fetches, learns and runs (a
pattern may take for ever to match), and what the operator insists on."""


def read_layers(headers: Mapping[bytes, bytes]) -> Mapping[str, Any] | None:
    """The profile sections that the headers set; None without such headers, or with empty ones.

    Raises 400 (`ProxyError`) that names every fault, its `param` the first header with one.
    """
    if headers.keys().isdisjoint(_HEADERS):
        return None
    given = {name: headers[name].strip() for name in (TABLE, *KEYS) if headers.get(name, b"").strip()}
    layers = {name: _layer(name, value) for name, value in given.items()}
    faults = {name: told for name, layer in layers.items() if (told := _faults(name, layer))}
    if faults:
        words = "; ".join(f"{name.decode()}: {', '.join(told)}" for name, told in faults.items())
        raise bad_request(words, next(iter(faults)).decode())
    return without_false(merge(*layers.values())) or None  # type: ignore[arg-type]


def read_strict(headers: Mapping[bytes, bytes]) -> bool:
    """Whether `x-dragoman-strict` forbids that anything is left out; raises 400 for no answer to that."""
    said = headers.get(STRICT)
    if said is None:
        return False
    found = TRUTHS.get(said.strip().lower())
    if found is None:
        raise bad_request("x-dragoman-strict must be true or false", STRICT.decode())
    return found


def check_merged(profile: Profile) -> None:
    """Refuse (400) a profile whose keys, the headers' among them, cannot stand together."""
    found = [str(problem) for problem in conflicts(profile)]
    if found:
        name = TABLE.decode()
        raise bad_request(f"{name}: {', '.join(found)}", name)


def _layer(name: bytes, value: bytes) -> Mapping[str, Any] | str:
    """The sections that one header sets, or what is wrong with it."""
    if name in KEYS:
        section, key = KEYS[name]
        return {section: {key: value.decode("latin-1").lower()}}
    try:
        table = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        return f"not valid JSON: {error}"
    if value.count(b"[") + value.count(b"{") > MAX_DEPTH and not writable(table):
        return f"nested more than {MAX_DEPTH} levels deep"
    return table if isinstance(table, dict) else 'must be a JSON object, as {"reasoning": {"scope": "all"}}'


def _faults(name: bytes, layer: Mapping[str, Any] | str) -> list[str]:
    if isinstance(layer, str):
        return [layer]
    guarded = [Problem(place, "is for the configuration only") for place in _guarded(layer)]
    problems = find_problems(layer, "")
    if name in KEYS:
        return [each.message for each in problems]
    return [str(each) for each in (*guarded, *(each for each in problems if not _within(each, guarded)))]


def _guarded(layer: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for place in sorted(GUARDED):
        table: Any = layer
        for step in place:
            if not isinstance(table, Mapping) or step not in table:
                break
            table = table[step]
        else:
            yield place


def _within(problem: Problem, guarded: list[Problem]) -> bool:
    """Whether a refused place holds it: one word about that is enough."""
    return any(problem.place[: len(each.place)] == each.place for each in guarded)
