"""`/v1/embeddings`: the same path as every call, never translated.

The shape is the same everywhere, base64 and dimensions included, so the body passes with the
model's name rewritten and the answer as it came.
"""

from __future__ import annotations

from translators.errors import bad_request, error_in
from translators.ir import Json, Usage
from translators.profile import Profile
from translators.usage import read_chat_usage

_TOKEN = frozenset({str, int, list})


def check_request(body: Json) -> None:
    """Raise 400 (`ProxyError`) for an `input` that no backend can answer."""
    given = body.get("input")
    if type(given) is list and given and _TOKEN.issuperset(map(type, given)):
        return
    if type(given) is not str and not (given is None and "messages" in body):  # vLLM embeds conversations
        raise bad_request("`input` must be a text, or a list of at least one text, or of tokens.", "input")


def tidy_reply(body: Json, profile: Profile) -> tuple[Json, Usage | None]:
    """The answer unchanged and its token counts; raises the `ProxyError` it carries, if any."""
    error = error_in(body)
    if error is not None:
        raise error
    return body, read_chat_usage(body.get("usage"))
