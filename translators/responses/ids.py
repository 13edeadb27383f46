"""Ids that fit: a long one keeps its beginning and gets a hash of the whole.

The same id always becomes the same short one, so a call and its result stay together, and
two long ids that begin alike stay apart (plain truncation joins them).
"""

from __future__ import annotations

import hashlib
import re

from ..profile import CallIdRule

_DIGEST = 16


def short_id(id: str, limit: int) -> str:
    """`id` in at most `limit` characters."""
    if len(id) <= limit:
        return id
    digest = hashlib.sha256(id.encode()).hexdigest()[: min(_DIGEST, limit)]
    head = id[: max(0, limit - len(digest) - 1)]
    return f"{head}_{digest}" if head else digest


def call_id(id: str, rule: CallIdRule) -> str:
    """A call id as the backend wants it; one of a refused form becomes a hash of itself."""
    if rule.pattern is None or re.fullmatch(rule.pattern, id):
        return short_id(id, rule.max)
    return hashlib.sha256(id.encode()).hexdigest()[: rule.max]


def split_id(joined: str) -> tuple[str, str | None]:
    """The call's id and the item's own in an id that has both (`call_1|fc_1`); only the first one pairs."""
    first, _, own = joined.partition("|")
    return first or joined, own if own.startswith("fc_") else None


def made_id(prefix: str, *seed: str) -> str:
    """An id for an item that has none, the same whenever the same request is sent."""
    return prefix + hashlib.sha256("\0".join(seed).encode()).hexdigest()[:32]
