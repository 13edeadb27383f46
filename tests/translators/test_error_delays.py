"""When to try again: headers, words and profiles, as the client is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.error_replies import DATABRICKS, PLAIN, decode, openai
from translators.profile import Profile
from translators.retry_after import MAX_DELAY_S, told_delay, worded_delay

# --- delays ----------------------------------------------------------------------------

NOW = 1_792_567_670.0  # 2026-10-21T07:27:50Z
DELAYS: list[tuple[str, dict[str, str], Any, Profile, float | None, float | None]] = [
    ("seconds", {"retry-after": "30"}, b"", PLAIN, NOW, 30),
    ("parts of a second", {"retry-after": "0.5"}, b"", PLAIN, None, 0.5),
    ("a date", {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"", PLAIN, NOW, 10),
    ("a date gone by", {"retry-after": "Wed, 21 Oct 2020 07:28:00 GMT"}, b"", PLAIN, NOW, 0),
    ("a date, no clock", {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"", PLAIN, None, 2),
    ("no date at all", {"retry-after": "soon"}, b"", PLAIN, NOW, 2),
    ("not finite", {"retry-after": "inf"}, b"", PLAIN, NOW, 2),
    ("another header", {"x-retry-after": "7"}, b"", PLAIN, NOW, 7),
    ("words", {}, openai("Please try again in 20s."), PLAIN, NOW, 20),
    ("words before the window", {}, openai("Please try again in 1m20.5s."), DATABRICKS, NOW, 80.5),
    ("Google's retryDelay", {}, [{"error": {"details": [{"retryDelay": "12s"}]}}], PLAIN, NOW, 12),
    ("the backend's window", {}, b"", DATABRICKS, NOW, 60),
    ("nothing", {}, b"", PLAIN, NOW, 2),
]


@pytest.mark.parametrize("row", DELAYS, ids=[row[0] for row in DELAYS])
def test_a_429_always_says_when(
    row: tuple[str, dict[str, str], Any, Profile, float | None, float | None],
) -> None:
    _, headers, body, profile, now, wanted = row
    assert decode(429, body, headers, profile, now=now).retry_after == wanted


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 6m0s.", 360),
        ("please try again in 1h2m3s", 3723),
        ("Try again in 1500ms", 1.5),
        ("retry after 30 seconds", 30),
        ("Please retry in 12.5s.", 12.5),
        ("try again in about 2 minutes", 120),
        ("try again in 250 milliseconds", 0.25),
        ("retry your request after 1 hour", 3600),
        ("try again later", None),
        ("wait 5 s", None),
    ],
)
def test_worded_delays(words: str, seconds: float | None) -> None:
    assert worded_delay(words) == seconds


def test_milliseconds_by_name() -> None:
    assert told_delay({"retry-after-ms": "1500"}, ("retry-after-ms",), None) == 1.5
    assert told_delay({}, ("retry-after",), NOW) is None


def test_a_503_relays_its_delay() -> None:
    assert decode(503, b"", {"retry-after": "5"}).retry_after == 5
    assert decode(503, b"").retry_after is None


def test_rate_limit_headers_travel() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "ratelimit-reset": "5",
        "set-cookie": "s",
        "x-request-id": "r",
    }
    assert decode(429, b"", headers).headers == {
        "x-ratelimit-remaining-requests": "0",
        "ratelimit-reset": "5",
    }


# --- what no backend should send -------------------------------------------------------


@pytest.mark.parametrize("delay", ["9" * 400 + "s", "99999999h"])
def test_no_delay_is_longer_than_clients_can_count(delay: str) -> None:
    error = decode(429, openai(f"Please try again in {delay}."))
    assert error.retry_after == MAX_DELAY_S
    assert MAX_DELAY_S * 1000 < 2**31


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("1e300", MAX_DELAY_S), ("1e400", None), ("-5", 0.0), ("nan", None), ("99999999999", MAX_DELAY_S)),
        ("Fri, 31 Dec 9999 23:59:59 -2359", MAX_DELAY_S),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0.0),
        ("Sat, 1 Jan 2000 99:99:99 +999999999999999", None),
    ],
)
def test_odd_delays(value: str, seconds: float | None) -> None:
    assert told_delay({"retry-after": value}, ("retry-after",), 1_700_000_000.0) == seconds
