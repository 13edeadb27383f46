"""Log probabilities of tokens: the same entries in both shapes, read tolerantly and made whole.

`{token, logprob, bytes, top_logprobs: [{token, logprob, bytes}]}`; typed clients require all
four keys. An entry without a token and a number says nothing and is left out.
"""

from __future__ import annotations

from typing import Any

from .ir import Json


def read_logprobs(entries: Any) -> list[Json] | None:
    """The entries of a list, whole; None when there is none."""
    if not isinstance(entries, list):
        return None
    found = [
        {**whole, "top_logprobs": _wholes(entry.get("top_logprobs"))}
        for entry in entries
        if (whole := _whole(entry)) is not None
    ]
    return found or None


def _wholes(entries: Any) -> list[Json]:
    rivals = entries if isinstance(entries, list) else []
    return [whole for rival in rivals if (whole := _whole(rival)) is not None]


def _whole(entry: Any) -> Json | None:
    if not isinstance(entry, dict):
        return None
    token, logprob, given = entry.get("token"), entry.get("logprob"), entry.get("bytes")
    if not isinstance(token, str) or isinstance(logprob, bool) or not isinstance(logprob, int | float):
        return None
    is_bytes = isinstance(given, list) and all(type(byte) is int for byte in given)
    return {"token": token, "logprob": logprob, "bytes": given if is_bytes else list(token.encode())}
