"""Errors as HTTP answers."""

from __future__ import annotations

import orjson
import pytest

from app.errors import error_body, error_headers, relayed, unexpected
from translators.errors import ProxyError, bad_request


def test_the_body_has_openais_four_keys() -> None:
    body = orjson.loads(error_body(bad_request("no", "tools[0]", "missing")))
    assert body == {
        "error": {"message": "no", "type": "invalid_request_error", "param": "tools[0]", "code": "missing"}
    }


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (bad_request("no"), {}),
        (ProxyError("rate_limit", "slow"), {b"retry-after": b"5"}),
        (ProxyError("rate_limit", "slow", retry_after=0.2), {b"retry-after": b"1"}),
        (ProxyError("overloaded", "busy", retry_after=30), {b"retry-after": b"30"}),
        (ProxyError("quota", "paid up", headers={"retry-after": "9"}, retry_after=8), {b"retry-after": b"8"}),
        (ProxyError("bad_request", "no", headers={"allow": "POST"}), {b"allow": b"POST"}),
    ],
)
def test_headers(error: ProxyError, expected: dict[bytes, bytes]) -> None:
    assert dict(error_headers(error)) == expected


def test_only_listed_headers_of_a_backend_pass() -> None:
    given = {
        "set-cookie": "s=1",
        "x-goog-api-key": "KEY",
        "authorization": "Bearer x",
        "content-encoding": "gzip",
        "x-ratelimit-remaining-requests": "9",
        "x-ratelimit-note": "caf\u00e9 \u043a",
        "openai-processing-ms": "12",
        "retry-after": "3",
    }
    assert dict(relayed(given)) == {
        b"x-ratelimit-remaining-requests": b"9",
        b"x-ratelimit-note": b"caf\xe9 ?",
        b"openai-processing-ms": b"12",
        b"retry-after": b"3",
    }


def test_a_fault_of_ours_tells_nothing_of_it() -> None:
    assert (unexpected().http_status, unexpected().body()["type"]) == (500, "server_error")
