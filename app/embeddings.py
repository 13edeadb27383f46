"""`/v1/embeddings`: the same path as every call, never translated.

The shape is the same everywhere, base64 and dimensions included, so the body passes with the
model's name rewritten and the answer as it came.
"""

from __future__ import annotations

from translators.errors import error_in
from translators.ir import Json, Usage
from translators.profile import Profile
from translators.usage import read_chat_usage


def tidy_reply(body: Json, profile: Profile) -> tuple[Json, Usage | None]:
    """The answer unchanged and its token counts; raises the `ProxyError` it carries, if any."""
    error = error_in(body)
    if error is not None:
        raise error
    return body, read_chat_usage(body.get("usage"))
