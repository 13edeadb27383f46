"""Media in a client's own Chat messages: `messages.media` of the profile, part by part."""

from __future__ import annotations

from typing import Any

from ..ir import Text
from ..media import MediaPolicy, keeps_all, modality_of
from .decode_content import decode_part
from .edit_draft import Draft


def edit_media(draft: Draft) -> None:
    """Describe what the backend takes no form of; raises 400 (`ProxyError`) for what it refuses.

    Needs a list of messages; entries that are no messages are left for those who check them.
    """
    rules = draft.profile.messages.media
    if keeps_all(rules):
        return
    policy = MediaPolicy(rules, draft.losses)
    messages = draft.body["messages"]
    edited = [_message(message, f"/messages/{i}", policy) for i, message in enumerate(messages)]
    draft.keep("messages", edited)


def _message(message: Any, at: str, policy: MediaPolicy) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or not any(map(_is_medium, content)):
        return message
    in_result = message.get("role") == "tool"
    parts = [_part(part, f"{at}/content/{i}", in_result, policy) for i, part in enumerate(content)]
    same = all(a is b for a, b in zip(parts, content, strict=True))
    return message if same else {**message, "content": parts}


def _is_medium(part: Any) -> bool:
    return isinstance(part, dict) and modality_of(part.get("type")) is not None


def _part(raw: Any, at: str, in_result: bool, policy: MediaPolicy) -> Any:
    if not _is_medium(raw):
        return raw
    lowered = policy.lower(decode_part(raw, at), at, in_result)
    return {"type": "text", "text": lowered.text} if isinstance(lowered, Text) else raw
