"""Media in a client's own input items: `messages.media` of the profile, part by part."""

from __future__ import annotations

from typing import Any

from ..dialect import Loss
from ..ir import Json, Text
from ..media import MediaPolicy, keeps_all, modality_of
from ..profile import MediaRules
from .decode_parts import decode_part


def edit_media(body: Json, rules: MediaRules, losses: list[Loss]) -> None:
    """Describe what the backend takes no form of; raises 400 (`ProxyError`) for what it refuses.

    Needs `input` to be a list; it is replaced in `body`, never changed.
    """
    if keeps_all(rules):
        return
    policy = MediaPolicy(rules, losses)
    body["input"] = [_item(item, f"/input/{i}", policy) for i, item in enumerate(body["input"])]


def _item(item: Any, at: str, policy: MediaPolicy) -> Any:
    if not isinstance(item, dict):
        return item
    for key in ("content", "output"):
        parts = item.get(key)
        if isinstance(parts, list) and any(map(_is_medium, parts)):
            words = "output_text" if item.get("role") == "assistant" else "input_text"
            lowered = [_part(part, f"{at}/{key}/{i}", words, policy) for i, part in enumerate(parts)]
            item = {**item, key: lowered}
    return item


def _is_medium(part: Any) -> bool:
    return isinstance(part, dict) and modality_of(part.get("type")) is not None


def _part(raw: Any, at: str, words: str, policy: MediaPolicy) -> Any:
    if not _is_medium(raw):
        return raw
    lowered = policy.lower(decode_part(raw, at), at, in_result=False)
    return {"type": words, "text": lowered.text} if isinstance(lowered, Text) else raw
