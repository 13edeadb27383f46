"""Whether a request can fit its model's context, estimated before it is sent.

Only for profiles that name `request.context_window`. The estimate counts characters, so it
errs towards letting a request through: the backend has the last word. The answer's own limit
is no part of it: backends differ in whether they count that.
"""

from __future__ import annotations

from typing import Any

import orjson

from .errors import ProxyError
from .ir import Json
from .profile import RequestRules

CHARS_PER_TOKEN = 4.0
"""English text; what most other text and JSON hold per token is less, so less is refused."""
MEDIA_CHARS = 4000
"""The most that one inline picture, sound or document counts, whatever its base64 takes."""

_OPAQUE = frozenset({"encrypted_content", "signature", "id", "call_id", "tool_call_id", "type", "role"})
"""Keys whose text the model does not read as such."""
_INLINE = frozenset({"data", "file_data"})
_SYSTEM = ("system", "developer")


def check_context(sent: bytes, rules: RequestRules) -> None:
    """Refuse (400 `context_length_exceeded`) a body estimated to exceed the window.

    `sent` is the body as it goes out, a JSON object: no character takes less than a byte, so most
    requests are let through by its size alone, unread.
    """
    window = rules.context_window
    if window is None:
        return
    ratio = rules.chars_per_token or CHARS_PER_TOKEN
    if len(sent) <= window * ratio:
        return
    body = orjson.loads(sent)
    tokens = {bucket: int(chars / ratio) for bucket, chars in _buckets(body).items()}
    if sum(tokens.values()) > window:
        raise _over(tokens, window, "messages" if "messages" in body else "input")


def prompt_tokens(body: Json) -> int:
    """A low estimate of what the prompt of a body of either shape takes."""
    return int(sum(_buckets(body).values()) / CHARS_PER_TOKEN)


def _buckets(body: Json) -> dict[str, int]:
    """Characters by what holds them."""
    turns = body.get("messages", body.get("input"))
    turns = turns if isinstance(turns, list) else [turns]
    system = [each for each in turns if isinstance(each, dict) and each.get("role") in _SYSTEM]
    history = [each for each in turns if not (isinstance(each, dict) and each.get("role") in _SYSTEM)]
    return {
        "system": _chars([body.get("instructions"), *system]),
        "tools": _chars(body.get("tools")),
        "history": _chars(history),
    }


def _chars(value: Any) -> int:
    """Characters of every text in `value`; inline media count `MEDIA_CHARS` at most."""
    total, waiting = 0, [("", value)]
    while waiting:
        key, each = waiting.pop()
        if isinstance(each, str):
            inline = key in _INLINE or each.startswith("data:")
            total += min(len(each), MEDIA_CHARS) if inline else len(each)
        elif isinstance(each, dict):
            waiting += [(name, held) for name, held in each.items() if name not in _OPAQUE]
        elif isinstance(each, list):
            waiting += [(key, held) for held in each]
    return total


def _over(tokens: dict[str, int], window: int, param: str) -> ProxyError:
    held = ", ".join(f"{bucket} {count}" for bucket, count in tokens.items())
    message = (
        f"the request is estimated at {sum(tokens.values())} tokens ({held}); the model takes {window}: "
        "shorten the largest of these, or use a model with a longer context"
    )
    return ProxyError("context_length", message, param=param)
