"""Whether a request can fit its model's context, estimated before it is sent.

By what the profile names as `request.context_window`, else by what the backend's list says. The estimate
counts characters, so it errs towards letting a request through: the backend has the last word. The answer's
own limit is no part of it: backends differ in whether they count that.
"""

from __future__ import annotations

from typing import Any

import orjson

from .errors import ProxyError
from .ir import Json
from .profile import RequestRules

CHARS_PER_TOKEN = 4.0
"""English text; what most other text and JSON hold per token is less, so less is refused."""
LISTED_MARGIN = 1.5
"""How far over a window that was only listed an estimate must be to be believed: prose in English takes up to
five characters a token, indented code six."""
MEDIA_CHARS = 4000
"""The most that one inline picture, sound or document counts, whatever its base64 takes."""

_OPAQUE = frozenset({"encrypted_content", "signature", "id", "call_id", "tool_call_id", "type", "role"})
"""Keys whose text the model does not read as such."""
_INLINE = frozenset({"data", "file_data"})
_SYSTEM = ("system", "developer")


def check_context(sent: bytes, rules: RequestRules, listed: int | None = None, param: str = "input") -> None:
    """Refuse (400 `context_length_exceeded`) a body estimated to exceed the window.

    `sent` is the body as it goes out, a JSON object: no character takes less than a byte, so most
    requests are let through by its size alone, unread. `listed`: the window by the backend's list, which is
    asked where the profile says nothing. `param`: what the client calls its conversation.
    """
    window, margin = rules.context_window, 1.0
    if window is None:
        if listed is None:
            return
        window, margin = listed, LISTED_MARGIN
    ratio = rules.chars_per_token or CHARS_PER_TOKEN
    if len(sent) <= window * margin * ratio:
        return
    body = orjson.loads(sent)
    tokens = {bucket: int(held / ratio) for bucket, held in _buckets(body).items()}
    if sum(tokens.values()) > window * margin:
        raise _over(tokens, window, param)


def prompt_tokens(body: Json, rules: RequestRules | None = None) -> int:
    """A low estimate of what the prompt of a body of either shape takes; `rules`: the profile's."""
    ratio = (rules.chars_per_token if rules is not None else None) or CHARS_PER_TOKEN
    form = chars([body.get("text"), body.get("response_format")])
    return int((sum(_buckets(body).values()) + form) / ratio)


def _buckets(body: Json) -> dict[str, int]:
    """Characters by what holds them."""
    turns = body.get("messages", body.get("input"))
    turns = turns if isinstance(turns, list) else [turns]
    system = [each for each in turns if isinstance(each, dict) and each.get("role") in _SYSTEM]
    history = [each for each in turns if not (isinstance(each, dict) and each.get("role") in _SYSTEM)]
    return {
        "system": chars([body.get("instructions"), *system]),
        "tools": chars(body.get("tools")),
        "history": chars(history),
    }


def chars(value: Any) -> int:
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
