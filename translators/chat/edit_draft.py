"""A Chat body being edited for one backend: copied where it changes, with what it lost."""

from __future__ import annotations

from operator import is_

from ..dialect import Loss, LossKind, Repair
from ..errors import bad_request
from ..ir import Json
from ..params import PARAMS, idle
from ..profile import Profile
from ..turns import begins_turn

PARAM_OF = {param.chat: param for param in PARAMS if param.chat} | {
    "max_tokens": next(param for param in PARAMS if param.name == "max_tokens")
}
"""Chat name -> parameter; the limit has two names."""

_LEFT_OUT_FEATURES = frozenset({"web_search_options"})
"""Features left out and reported all the same, like the hosted tools they stand for."""


class Draft:
    """`body` is a copy at its top level only: what is inside is replaced, never changed."""

    __slots__ = ("_turn", "body", "losses", "profile", "renamed", "repairs")

    def __init__(self, body: Json, profile: Profile) -> None:
        self.body = dict(body)
        self.profile = profile
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self.renamed: dict[str, str] = {}
        """Top-level keys -> the names they came in by."""
        self._turn: int | None = None

    def in_scope(self, at: int) -> bool:
        """Whether reasoning of the message at `at` goes back, by `reasoning.scope`."""
        scope = self.profile.reasoning.scope
        if scope != "turn":
            return scope == "all"
        if self._turn is None:
            messages = self.body.get("messages") or ()
            self._turn = max((i for i, each in enumerate(messages) if begins_turn(each)), default=-1)
        return at > self._turn

    def lose(self, pointer: str, reason: str, kind: LossKind = "tuning") -> None:
        """Record a loss; `pointer` is a JSON pointer in the body as it came in."""
        old = self.renamed.get(pointer[1:])
        self.losses.append(Loss(f"/{old}" if old else pointer, reason, kind))

    def leave_out(self, key: str, reason: str) -> None:
        """Remove a top-level key, and record what is lost by that.

        Raises 400 (`ProxyError`) when a feature would be lost that a reply is wrong without.
        """
        value = self.body.pop(key)
        param = PARAM_OF.get(key)
        if value is None or (param is not None and idle(param.name, value)):
            return
        if param is not None and param.kind == "feature" and key not in _LEFT_OUT_FEATURES:
            raise bad_request(f"This model's backend does not take `{key}`: leave it out.", key)
        self.lose(f"/{key}", reason, param.kind if param is not None else "tuning")

    def keep(self, key: str, entries: list[Json]) -> None:
        """Set a list, unless it holds the same objects as the one that is there."""
        old = self.body[key]
        if len(old) != len(entries) or not all(map(is_, old, entries)):
            self.body[key] = entries
