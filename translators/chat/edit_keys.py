"""The keys of the Chat shape inside messages, calls and tools, for backends that refuse any other.

`request.extra_keys` of the profile, when it is a list, names what a backend knows beyond
these. Left out on purpose are official keys that only OpenAI's own servers take:
`prompt_cache_breakpoint` on parts, `audio` and `refusal` of assistant messages (the words of
a refusal are kept as text, see `edit_messages`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..ir import Json
from .edit_draft import Draft

MESSAGE_KEYS: Mapping[str, tuple[str, ...]] = {
    "system": ("role", "content", "name"),
    "developer": ("role", "content", "name"),
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "tool_calls", "function_call"),
    "tool": ("role", "content", "tool_call_id"),
    "function": ("role", "content", "name"),
}
TOOL_KEYS: Mapping[str, tuple[str, ...]] = {
    "function": ("name", "description", "parameters", "strict"),
    "custom": ("name", "description", "format"),
}
CALL_KEYS: Mapping[str, tuple[str, ...]] = {
    "function": ("name", "arguments"),
    "custom": ("name", "input"),
}


def known_only(draft: Draft, holder: Json, known: Collection[str], pointer: str) -> Json:
    """`holder` without nulls and keys that are neither `known` nor the profile's extra ones.

    The same object when there are none. A removed key that held something is a loss. A null
    `content` stays: what becomes of it is a rule of its own.
    """
    extra = draft.profile.request.extra_keys or ()
    gone = [
        key
        for key, value in holder.items()
        if (value is None and key != "content") or (key not in known and key not in extra)
    ]
    if not gone:
        return holder
    for key in gone:
        if not _says_nothing(holder[key]):
            draft.lose(f"{pointer}/{key}", "this backend takes only fields it knows", "bookkeeping")
    return {key: value for key, value in holder.items() if key not in gone}


def _says_nothing(value: Any) -> bool:
    return value is None or value in ("", [], {})
