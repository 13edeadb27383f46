"""Whether a conversation still stands as it stood when a thought was had.

A thought belongs to what was said before it. Each capsule tells how many items the request had that it
answered, and a hash of them; when it comes back, as many items are hashed the same way. Hashed are the
`instructions` and the items of `input` as JSON with sorted keys, without what clients and gateways change
between two turns though it says the same:

    ids, `status`, `annotations`, `logprobs`, keys that are null
    a text as a string, or as a part of any of its names
    reasoning items, which many clients leave out or shorten

Two things are left out on purpose. The model: a capsule names its target, which an alias does not change.
The tools: Codex offers none when it compacts a conversation, and the list of an MCP server may change with
every turn; no backend binds a thought to them.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import orjson

from .ir import Json

_UNHASHED = frozenset({"id", "status", "annotations", "logprobs", "phase", "internal_chat_message_metadata"})
_SKIPPED = frozenset({"reasoning", "additional_tools"})
_TEXTS = frozenset({"input_text", "output_text", "text"})


class Prefix(NamedTuple):
    """So many items, those that are skipped not counted, and the hash up to there."""

    items: int
    hash: str


class Asked:
    """A Responses request's body as the client sent it; it is hashed when that is first asked for."""

    __slots__ = ("_body", "_hashes")

    def __init__(self, body: Json) -> None:
        self._body = body
        self._hashes: list[str] | None = None

    def whole(self) -> Prefix:
        """What a reply to it is said after."""
        hashes = self._all()
        return Prefix(len(hashes) - 1, hashes[-1])

    def begins_with(self, prefix: Prefix) -> bool:
        hashes = self._all()
        return prefix.items < len(hashes) and hashes[prefix.items] == prefix.hash

    def _all(self) -> list[str]:
        """The hash after each item, from none on, in one pass."""
        if self._hashes is None:
            so_far = hashlib.sha256(orjson.dumps(self._body.get("instructions") or ""))
            self._hashes = [so_far.hexdigest()]
            for item in _items(self._body.get("input")):
                so_far.update(orjson.dumps(item, option=orjson.OPT_SORT_KEYS))
                self._hashes.append(so_far.hexdigest())
        return self._hashes


def _items(given: Any) -> list[Any]:
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if not isinstance(given, list):
        return []
    return [_plain(item) for item in given if not (isinstance(item, dict) and item.get("type") in _SKIPPED)]


def _plain(value: Any) -> Any:
    """Any value of the body without what does not count."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    plain = {k: _plain(v) for k, v in value.items() if k not in _UNHASHED and v is not None}
    if plain.get("type") in _TEXTS:
        plain["type"] = "text"
    if "role" in plain:
        plain.setdefault("type", "message")
        if isinstance(plain.get("content"), str):
            plain["content"] = [{"type": "text", "text": plain["content"]}]
    return plain
