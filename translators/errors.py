"""What can go wrong with a call, and what a client is told.

`ProxyError` says whose fault it is and which HTTP status fits. The tables here are the one
place where backend statuses, codes and words become kinds, and kinds become statuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .error_bodies import Told, is_html, read_body, told_in
from .error_words import WORDS, words
from .quotes import with_short_quotes
from .redaction import redact
from .retry_after import told_delay, worded_delay

if TYPE_CHECKING:
    from .profile import Profile

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

    def forget(self) -> None:
        """Let go of where it came from, and of what came before it: those calls know the request, and it.

        Whoever keeps a failure beyond its handler does this, or all of that waits for the garbage collector.
        """
        self.__traceback__ = self.__context__ = self.__cause__ = None

    def body(self) -> dict[str, object]:
        """The OpenAI error object, the same in both shapes: `{message, type, param, code}`."""
        return {
            "message": self.message,
            "type": self.type or TYPE[self.kind],
            "param": self.param and self.param[:_LABEL_LENGTH],
            "code": self.code or CODE.get(self.kind),
        }


def bad_request(message: str, param: str | None = None, code: str | None = None) -> ProxyError:
    """A fault of the client's request: 400 naming `param`."""
    return ProxyError("bad_request", with_short_quotes(message), param=param, code=code)


def pointer_at(param: str) -> str:
    """The JSON pointer for the `param` of an error, the way back from `param_at`."""
    return "/" + re.sub(r"\[(\d+)\]", r"/\1", param).replace(".", "/")


def param_at(pointer: str) -> str:
    """The `param` of an error for a JSON pointer: `/input/0/content/1` is `input[0].content[1]`."""
    steps = pointer.removeprefix("/").split("/")
    return "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in steps).removeprefix(".")


# --- a backend's words become a kind ---------------------------------------------------

_BY_STATUS: Mapping[int, Kind] = {
    401: "upstream_auth",
    402: "quota",
    403: "forbidden",
    404: "not_found",
    408: "timeout",
    413: "too_large",
    415: "media_type",
    429: "rate_limit",
    504: "timeout",
    529: "overloaded",
}

_REQUEST_FAULTS = frozenset({"bad_request", "context_length", "content_filter", "too_large", "media_type"})

_BY_TYPE: Mapping[str, int] = {"invalid_request_error": 400, "invalid_argument": 400}
"""Status that a type stands for, inside a reply that names none."""

RETRY_DEFAULT_S = 2.0
"""Retry-After of a 429 whose backend says nothing and whose rate window nobody knows."""


_REDIRECTS = (
    "The backend answered with a redirect (status {}), and none is followed, for the key would go along: the "
    "provider's base_url must be the address that it leads to."
)


def decode_error(
    status: int,
    body: bytes,
    headers: Mapping[str, str],
    profile: Profile,
    now: float | None = None,
    hide: Sequence[str] = (),
) -> ProxyError:
    """The error for an HTTP answer that is none of success.

    `headers` have lower-case names; `now` (seconds since the epoch) is needed to read a
    Retry-After date; `hide` are private strings (key, host) that the message may quote.
    """
    told = read_body(body, profile.errors.shapes)
    kind = _kind(status, told, profile.errors.retry.codes)
    if is_html(body) and status == 403:
        kind = "upstream"  # a bot wall in front of the backend, not its own refusal
    error = _error(kind, told, hide)
    error.status = _status(kind, status)
    error.message = error.message or f"The backend answered with status {status} and no explanation."
    if 300 <= status < 400:  # what its page says ("301 Moved Permanently", nginx) helps nobody
        error.message = _REDIRECTS.format(status)
    error.retry_after = _retry_after(error, body, headers, profile, now)
    error.headers = {name: value for name, value in headers.items() if "ratelimit" in name}
    return error


def error_in(obj: Mapping[str, Any], hide: Sequence[str] = ()) -> ProxyError | None:
    """The error inside an object of a 200 reply or stream, None when it is no error.

    Before the first byte it is a 502, unless it blames the request: then 400.
    """
    told = told_in(dict(obj))
    if told is None:
        return None
    status = told.status or _BY_TYPE.get((told.type or told.code or "").lower())
    kind = _kind(status, told, ())
    error = _error(kind, told, hide)
    error.status = None if kind in _REQUEST_FAULTS else 502
    error.message = error.message or "The backend reported an error without a message."
    error.retry_after = worded_delay(told.message) if kind in ("rate_limit", "quota") else None
    return error


def responses_code(error: ProxyError) -> str:
    """The code of `response.failed`, by what clients do with it.

    Codex stops at context_length_exceeded, insufficient_quota and invalid_prompt, waits at
    rate_limit_exceeded, and retries at server_error; any other code it retries too. The first
    two are outside the SDK's enum, as in OpenAI's own streams; the SDK takes them.
    """
    if error.code in _RELAYED_CODES:
        return error.code
    if error.kind in _REQUEST_FAULTS or error.kind in ("not_found", "forbidden"):
        return "context_length_exceeded" if error.kind == "context_length" else "invalid_prompt"
    return {"quota": "insufficient_quota", "rate_limit": "rate_limit_exceeded"}.get(
        error.kind, "server_error"
    )


def responses_error(error: ProxyError) -> dict[str, str]:
    """`error` of a failed response: `{code, message}`; Codex reads the delay from the words."""
    code, message = responses_code(error), error.message
    if code == "rate_limit_exceeded" and error.retry_after is not None and worded_delay(message) is None:
        message = f"{message.rstrip('. ')}. Please try again in {error.retry_after:g}s."
    return {"code": code, "message": message}


_RELAYED_CODES = frozenset(
    {
        *("server_error", "rate_limit_exceeded", "invalid_prompt", "data_residency_mismatch", "bio_policy"),
        *("misalignment_policy_violation", "vector_store_timeout", "invalid_image", "invalid_image_format"),
        *("invalid_base64_image", "invalid_image_url", "image_too_large", "image_too_small"),
        *("image_parse_error", "image_content_policy_violation", "invalid_image_mode"),
        *("image_file_too_large", "unsupported_image_media_type", "empty_image_file"),
        *("failed_to_download_image", "image_file_not_found"),
        *("context_length_exceeded", "insufficient_quota", "server_is_overloaded", "slow_down"),
        *("usage_not_included", "cyber_policy"),
    }
)
"""The SDK's `ResponseError.code` values, then those that Codex acts on besides."""


def _kind(status: int | None, told: Told, retry_codes: Sequence[str]) -> Kind:
    if any(told.code == code or told.message.startswith(code) for code in retry_codes):
        return "rate_limit"
    words = f"{told.code} {told.type} {told.message[:4000]}"
    for kind, pattern, statuses in WORDS:
        if (status is None or status in statuses) and pattern.search(words):
            return _worded(kind, told)
    if status is None or status < 400 or status >= 499:
        return _BY_STATUS.get(status or 0, "upstream")
    return _BY_STATUS.get(status, "bad_request")


def _worded(kind: Kind, told: Told) -> Kind:
    """Google calls a rate limit a quota too; the delay it names tells them apart."""
    transient = (
        kind == "quota" and told.code != "insufficient_quota" and worded_delay(told.message) is not None
    )
    return "rate_limit" if transient else kind


def _status(kind: Kind, status: int) -> int | None:
    """The backend's own status where it is honest towards the client, else the kind's."""
    if kind == "quota":
        return 402 if status == 402 else None
    if kind in ("bad_request", "timeout") and 400 <= status < 499:
        return 400 if status == 422 else status
    if kind in ("upstream", "timeout", "overloaded") and status in (500, 501, 502, 503, 504):
        return status
    return None


def _error(kind: Kind, told: Told, hide: Sequence[str]) -> ProxyError:
    error = ProxyError(kind, redact(told.message, hide), param=_label(told.param, hide))
    if kind == "upstream_auth":
        error.message = f"The backend refused the gateway's own key: {error.message or 'no reason given'}"
        return error
    if told.type and _PLAIN_TYPE.fullmatch(told.type):
        error.type = told.type
    if kind == "not_found" and _MODEL_MISSING.search(f"{told.code} {told.message[:4000]}"):
        error.code = "model_not_found"
    elif kind not in ("context_length", "content_filter", "rate_limit", "quota"):
        error.code = _label(told.code, hide)
    return error


def conceal(error: ProxyError, private: Sequence[str]) -> ProxyError:
    """The error with nothing of `private` in its words."""
    if private:
        error.message = redact(error.message, private)
        error.code, error.param = _label(error.code, private), _label(error.param, private)
    return error


def _label(text: str | None, hide: Sequence[str]) -> str | None:
    """A backend's `code` or `param`: words like its message, only short."""
    return text and redact(text[:_LABEL_LENGTH], hide)


_LABEL_LENGTH = 200


_PLAIN_TYPE = re.compile(r"[a-z][a-z_]{2,40}")
"""Types in OpenAI's manner are relayed; a Python class name (vLLM) is not."""

_MODEL_MISSING = words(
    r"model_not_found",
    r"endpoint_not_found",
    r"resource_does_not_exist",
    r"\b(?:model|endpoint)\b.{0,80}(?:not found|does not exist|not exist)",
)


def _retry_after(
    error: ProxyError, body: bytes, headers: Mapping[str, str], profile: Profile, now: float | None
) -> float | None:
    """By header; for a 429 else by the words, else the backend's rate window, else a default."""
    rules = profile.errors.retry
    told = told_delay(headers, rules.after, now)
    if told is not None or error.http_status != 429:
        return told
    worded = worded_delay(body.decode("utf-8", "replace"))
    return worded if worded is not None else rules.window_s or RETRY_DEFAULT_S
