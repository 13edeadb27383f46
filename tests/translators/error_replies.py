"""A backend's error replies, read with a profile."""

from __future__ import annotations

from typing import Any

import orjson

from translators.errors import ProxyError, decode_error
from translators.profile import ErrorRules, Profile, RetryRules

PLAIN = Profile()
DATABRICKS = Profile(errors=ErrorRules(retry=RetryRules(window_s=60, codes=("REQUEST_LIMIT_EXCEEDED",))))


def decode(
    status: int, body: Any, headers: dict[str, str] | None = None, profile: Profile = PLAIN, **how: Any
) -> ProxyError:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return decode_error(status, raw, headers or {}, profile, **how)


def openai(
    message: str, type: str | None = None, code: Any = None, param: str | None = None
) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "code": code, "param": param}}
