"""What can go wrong with a call, and what a client is told.

`ProxyError` says whose fault it is and which HTTP status fits. The tables here are the one
place where backend statuses, codes and words become kinds, and kinds become statuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "bad_request",
    "context_length",
    "content_filter",
    "auth",
    "forbidden",
    "not_found",
    "too_large",
    "media_type",
    "rate_limit",
    "quota",
    "upstream",
    "upstream_auth",
    "unavailable",
    "overloaded",
    "timeout",
    "internal",
]

STATUS: Mapping[Kind, int] = {
    "bad_request": 400,
    "context_length": 400,
    "content_filter": 400,
    "auth": 401,
    "forbidden": 403,
    "not_found": 404,
    "too_large": 413,
    "media_type": 415,
    "rate_limit": 429,
    "quota": 429,
    "upstream": 502,
    "upstream_auth": 502,
    "unavailable": 503,
    "overloaded": 503,
    "timeout": 504,
    "internal": 500,
}
"""HTTP status of each kind when the backend's own status is not relayed."""

TYPE: Mapping[Kind, str] = {
    "bad_request": "invalid_request_error",
    "context_length": "invalid_request_error",
    "content_filter": "invalid_request_error",
    "auth": "authentication_error",
    "forbidden": "permission_error",
    "not_found": "invalid_request_error",
    "too_large": "invalid_request_error",
    "media_type": "invalid_request_error",
    "rate_limit": "rate_limit_error",
    "quota": "insufficient_quota",
    "upstream": "upstream_error",
    "upstream_auth": "upstream_error",
    "unavailable": "upstream_error",
    "overloaded": "upstream_error",
    "timeout": "timeout_error",
    "internal": "server_error",
}
"""`error.type` of each kind."""

CODE: Mapping[Kind, str] = {
    "context_length": "context_length_exceeded",
    "content_filter": "content_filter",
    "auth": "invalid_api_key",
    "too_large": "request_too_large",
    "rate_limit": "rate_limit_exceeded",
    "quota": "insufficient_quota",
    "upstream": "upstream_error",
    "upstream_auth": "upstream_auth",
    "unavailable": "provider_unavailable",
    "overloaded": "server_is_overloaded",
    "timeout": "upstream_timeout",
    "internal": "server_error",
}
"""`error.code` of each kind when nothing more exact is known."""


@dataclass(slots=True, eq=False)
class ProxyError(Exception):
    """A call failed, in words for the client.

    `status` and `type`, when set, replace the ones of `kind` (a backend's own are relayed);
    `retry_after` is in seconds; `headers` are upstream headers worth relaying (rate limits).
    """

    kind: Kind
    message: str
    param: str | None = None
    code: str | None = None
    status: int | None = None
    type: str | None = None
    retry_after: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message

    @property
    def http_status(self) -> int:
        return self.status if self.status is not None else STATUS[self.kind]

    def body(self) -> dict[str, object]:
        """The OpenAI error object, the same in both shapes: `{message, type, param, code}`."""
        return {
            "message": self.message,
            "type": self.type or TYPE[self.kind],
            "param": self.param,
            "code": self.code or CODE.get(self.kind),
        }


def bad_request(message: str, param: str | None = None, code: str | None = None) -> ProxyError:
    """A fault of the client's request: 400 naming `param`."""
    return ProxyError("bad_request", message, param=param, code=code)
