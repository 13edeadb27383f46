"""API keys of the gateway."""

from __future__ import annotations

import hmac

import pytest

from app.access.auth import Keys
from translators.errors import ProxyError

TWO = Keys(["first-key", "second-key"])


@pytest.mark.parametrize(
    "headers",
    [
        {b"authorization": b"Bearer first-key"},
        {b"authorization": b"bearer second-key"},
        {b"authorization": b"Bearer  first-key "},
        {b"x-api-key": b"second-key"},
        {b"authorization": b"Basic dXNlcjpwYXNz", b"x-api-key": b"first-key"},
    ],
)
def test_admits(headers: dict[bytes, bytes]) -> None:
    TWO.admit(headers)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {b"authorization": b"Bearer"},
        {b"authorization": b"Bearer sk-wrong-1234567890"},
        {b"authorization": b"Bearer first-ke"},
        {b"authorization": b"Basic first-key"},
        {b"authorization": b"first-key"},
        {b"x-api-key": b""},
        {b"authorization": b"Bearer \xff\xfe"},
    ],
)
def test_refuses_without_repeating_what_was_sent(headers: dict[bytes, bytes]) -> None:
    with pytest.raises(ProxyError) as caught:
        TWO.admit(headers)
    error = caught.value
    assert (error.http_status, error.body()["code"]) == (401, "invalid_api_key")
    assert "wrong" not in error.message


def test_without_keys_everyone_is_admitted() -> None:
    Keys([]).admit({})
    Keys([]).admit({b"authorization": b"Bearer whatever"})


def test_every_key_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []

    def watch(given: bytes, known: bytes) -> bool:
        compared.append(known)
        return given == known

    monkeypatch.setattr(hmac, "compare_digest", watch)
    TWO.admit({b"x-api-key": b"first-key"})
    assert len(compared) == 2
