"""Where a turn begins: at the last thing that a user said, on either wire.

Clients put notes of their own between the steps of one turn, as messages of the user: these say so at
their beginning, and begin no turn. Results of tools are no user's words.
"""

from __future__ import annotations

from typing import Any

from .ir import Json

_NOTES = ("<system-reminder>", "<environment_context>", "[Tool result", "[Attachments of the result of")
"""S Claude Code and Amp; S Codex, which sends its surroundings anew when they change. The last ones are our
own words for a result, or what it shows, that is told in the user's name."""


def begins_turn(message: Any) -> bool:
    """Whether a Chat message, or an item of a Responses input, is what a user said."""
    if not isinstance(message, dict) or message.get("role") != "user":
        return False
    return message.get("type") in (None, "message") and not _opening(message).startswith(_NOTES)


def message_of(pointer: str) -> str:
    """The Chat message that a pointer leads into: `/messages/3` of `/messages/3/reasoning_content`."""
    return "/".join(pointer.split("/")[:3])


def _opening(message: Json) -> str:
    """The first words of a message."""
    content = message.get("content")
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        content = next((text for text in texts if isinstance(text, str)), "")
    return content.lstrip() if isinstance(content, str) else ""
