"""`[providers.extra_body]`: the last word on every body that is sent to one provider.

Laid over the body when everything else is done (translation, edits, what was learned, images):
tables merge, the rest replaces. It says what a profile has no key for, so nothing looks at what it means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog

from translators.ir import Json
from translators.profile import merge

_log = structlog.get_logger("dragoman")


class ExtraBody:
    """One provider's keys; never empty: a provider without them has None instead."""

    def __init__(self, provider: str, keys: Mapping[str, Any]) -> None:
        self._provider, self._keys = provider, keys
        self._named: set[str] = set()

    def over(self, body: Json) -> Json:
        """A copy of `body` with the keys in it; what they replace is named in the log, once each."""
        for path in _replaced(body, self._keys):
            if path not in self._named:
                self._named.add(path)
                _log.warning("provider:extra_body_overrides", provider=self._provider, key=path)
        mine = {key: body[key] for key in self._keys if key in body}
        return {**body, **merge(mine, self._keys)}

    def sets(self, path: Sequence[str]) -> bool:
        """Whether what stands at `path` of a body, or anything in it, is of these keys."""
        held: Any = self._keys
        for step in path:
            if not isinstance(held, Mapping):
                return True
            if step not in held:
                return False
            held = held[step]
        return True


def _replaced(body: Mapping[str, Any], keys: Mapping[str, Any], before: str = "") -> Iterator[str]:
    """Dotted names of the keys whose value in `body` is another one and does not merge."""
    for key, value in keys.items():
        known = body.get(key)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            yield from _replaced(known, value, f"{before}{key}.")
        elif key in body and known != value:
            yield before + key
