"""Errors of every shape, as the client is told of them: status, kind, code, words, delay."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from openai.types.responses import ResponseError

from translators.error_bodies import read_body
from translators.errors import (
    CODE,
    STATUS,
    TYPE,
    ProxyError,
    bad_request,
    decode_error,
    error_in,
    param_at,
    pointer_at,
    responses_code,
    responses_error,
)
from translators.profile import ErrorRules, Profile, RetryRules
from translators.redaction import MAX_LENGTH, redact
from translators.retry_after import MAX_DELAY_S, told_delay, worded_delay

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


TABLE = json.loads((Path(__file__).parent.parent / "cases" / "error_bodies.json").read_text())
"""A backend's `status` and `body` (JSON) or `text`, and what the client is told."""


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case["id"])
def test_what_the_client_is_told(case: dict[str, Any]) -> None:
    wanted = case["client"]
    error = decode(case["status"], case["text"].encode() if "text" in case else case["body"])
    told = error.body()
    assert (error.http_status, error.kind, told["code"]) == (wanted["status"], wanted["kind"], wanted["code"])
    assert wanted["words"] in str(told["message"])
    assert isinstance(told["type"], str)
    assert set(told) == {"message", "type", "param", "code"}
    assert (error.retry_after is not None) == (wanted["status"] == 429)
    for secret in ("sk-abcdef", "10.1.2.3", "Traceback", "/srv/a.py"):
        assert secret not in str(told)


def test_fastapi_faults_name_their_place() -> None:
    fault = {
        "loc": ["body", "messages", 0, "x"],
        "msg": "Extra inputs are not permitted",
        "type": "extra_forbidden",
    }
    error = decode(422, {"detail": [fault, {"loc": ["body"], "msg": "too short"}, {"loc": []}]})
    assert error.message == "messages.0.x: Extra inputs are not permitted; body: too short; : invalid"
    assert error.param == "messages.0.x"


def test_types_are_relayed_when_they_are_of_openais_manner() -> None:
    assert decode(400, openai("x", "invalid_request_error")).body()["type"] == "invalid_request_error"
    assert decode(400, openai("x", "BadRequestError")).body()["type"] == "invalid_request_error"
    assert decode(401, openai("x", "authentication_error")).body()["type"] == "upstream_error"


def test_openrouter_tells_the_providers_words() -> None:
    inner = '{"error":{"message":"bad schema"}}'
    error = decode(
        400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": inner}}}
    )
    assert error.message == "Provider returned error: bad schema"
    same = {"error": {"message": "bad schema", "metadata": {"raw": inner, "x": 1}}}
    assert decode(400, same).message == "bad schema"
    assert decode(400, {"error": {"message": "m", "metadata": "raw"}}).message == "m"


def test_words_nested_twice() -> None:
    inner = orjson.dumps({"error": {"message": "deep", "param": "p", "code": "c"}}).decode()
    told = read_body(orjson.dumps({"message": inner}))
    assert (told.message, told.param, told.code) == ("deep", "p", "c")


def test_codes_that_a_profile_calls_rate_limits() -> None:
    profile = Profile(errors=ErrorRules(retry=RetryRules(codes=("TOO_FAST",))))
    for body in ({"error_code": "TOO_FAST", "message": "x"}, {"message": "TOO_FAST: x"}):
        assert decode(400, body, profile=profile).http_status == 429
        assert decode(400, body).http_status == 400


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


# --- inside a 200 ----------------------------------------------------------------------

INSIDE: list[tuple[Any, int, str, str]] = [
    ({"error": {"message": "quota", "code": 429}}, 502, "rate_limit", "quota"),
    ({"choices": [], "error": {"code": 502, "message": "limit reached"}}, 502, "upstream", "limit reached"),
    (
        {"error": {"type": "server_error", "code": None, "message": "Sorry", "param": None}},
        502,
        "upstream",
        "Sorry",
    ),
    ({"error": "boom"}, 502, "upstream", "boom"),
    ({"error": {}}, 502, "upstream", "without a message"),
    ({"error": {"type": "invalid_request_error", "message": "bad"}}, 400, "bad_request", "bad"),
    ({"error": {"message": "bad", "code": "400"}}, 400, "bad_request", "bad"),
    ({"error": {"message": "maximum context length is 5 tokens"}}, 400, "context_length", "5 tokens"),
    ({"error": {"message": "x", "code": "content_filter"}}, 400, "content_filter", "x"),
    ({"error": {"message": "invalid api key"}}, 502, "upstream_auth", "invalid api key"),
    ({"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "slow"}, 502, "rate_limit", "slow"),
    ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, 502, "upstream", "login fail"),
    ({"detail": [{"loc": ["body", "x"], "msg": "bad"}]}, 502, "upstream", "x: bad"),
    (
        {"object": "error", "message": "bad", "type": "BadRequestError", "code": 400},
        400,
        "bad_request",
        "bad",
    ),
    ({"code": "InvalidParameter", "message": "bad", "request_id": "r"}, 502, "upstream", "bad"),
    ({"type": "error", "message": "over capacity"}, 502, "overloaded", "over capacity"),
]


@pytest.mark.parametrize(("obj", "status", "kind", "words"), INSIDE, ids=str)
def test_errors_inside_a_200(obj: Any, status: int, kind: str, words: str) -> None:
    error = error_in(obj)
    assert error is not None
    assert (error.http_status, error.kind, words in error.message) == (status, kind, True)


def test_a_delay_inside_a_200() -> None:
    error = error_in(
        {"error": {"message": "Rate limit reached. Try again in 3s.", "code": "rate_limit_exceeded"}}
    )
    assert error is not None
    assert error.retry_after == 3


@pytest.mark.parametrize(
    "obj",
    [
        {"choices": []},
        {"id": "x", "choices": None},
        {"choices": [{"delta": {}}], "error": None},
        {"choices": [{"delta": {}}], "error": {}},
        {"base_resp": {"status_code": 0, "status_msg": ""}, "choices": [{}]},
        {"id": "x", "object": "response", "output": [{}], "error": None},
        {"id": "x", "message": "hi"},
        {"usage": {}},
        {},
    ],
    ids=str,
)
def test_what_is_no_error(obj: Any) -> None:
    assert error_in(obj) is None


# --- the failed event of a Responses stream --------------------------------------------

CODES: list[tuple[ProxyError, str]] = [
    (ProxyError("context_length", "x"), "context_length_exceeded"),
    (ProxyError("quota", "x"), "insufficient_quota"),
    (ProxyError("rate_limit", "x"), "rate_limit_exceeded"),
    (ProxyError("bad_request", "x", code="BAD_REQUEST"), "invalid_prompt"),
    (ProxyError("content_filter", "x"), "invalid_prompt"),
    (ProxyError("not_found", "x", code="model_not_found"), "invalid_prompt"),
    (ProxyError("overloaded", "x"), "server_error"),
    (ProxyError("overloaded", "x", code="server_is_overloaded"), "server_is_overloaded"),
    (ProxyError("upstream", "x", code="INTERNAL_ERROR"), "server_error"),
    (ProxyError("upstream", "x", code="image_too_large"), "image_too_large"),
    (ProxyError("timeout", "x"), "server_error"),
]
OUTSIDE_THE_SDK = {"context_length_exceeded", "insufficient_quota", "server_is_overloaded"}


@pytest.mark.parametrize(("error", "code"), CODES, ids=str)
def test_responses_codes(error: ProxyError, code: str) -> None:
    assert responses_code(error) == code
    made = responses_error(error)
    assert made == {"code": code, "message": "x"}
    if code not in OUTSIDE_THE_SDK:
        ResponseError.model_validate(made, strict=True)


def test_codex_reads_the_delay_from_the_words() -> None:
    error = ProxyError("rate_limit", "Slow down.", retry_after=1.5)
    message = responses_error(error)["message"]
    assert message == "Slow down. Please try again in 1.5s."
    assert re.search(r"try again in\s*(\d+(?:\.\d+)?)\s*(s|ms|seconds?)", message)  # as Codex reads it
    error.message = "Please try again in 3s"
    assert responses_error(error)["message"] == "Please try again in 3s"


# --- secrets ---------------------------------------------------------------------------

PRIVATE: list[tuple[str, str]] = [
    ("key sk-proj-abc123*********wxyz!", "key [redacted]!"),
    ("token dapi0123456789abcdef0123456789abcdef-2.", "token [redacted]."),
    ("Authorization: Bearer abc.def-ghi", "Authorization: [redacted]"),
    ("AIzaSyA1234567890abcdef", "[redacted]"),
    ("AKIAIOSFODNN7EXAMPLE used", "[redacted] used"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "[redacted]"),
    ("in organization org-AbCdEf123456 on", "in organization [redacted] on"),
    ("hash 0123456789abcdef0123456789abcdef", "hash [redacted]"),
    ("secret xK9vT2mQ8wR4yL6nB1cD3fG5hJ7kP0sA2dF4gH6j=", "secret [redacted]"),
    ("Incorrect API key provided: up-key-7.", "Incorrect API key provided: [redacted]"),
    ('"api_key": x, api_key="abcdefghijklmnopqrst"', '"api_key": x, api_key="[redacted]"'),
    ("at http://10.1.2.3:8000/v1/chat", "at [redacted]"),
    ("at https://vllm:8000/v1.", "at [redacted]"),
    ("at http://localhost/v1", "at [redacted]"),
    ("at https://models.internal/v1", "at [redacted]"),
    ("at https://user:pw@[::1]/x", "at [redacted]"),
    ("connect to 10.0.0.7:11434 failed", "connect to [redacted] failed"),
    ("host model.ns.svc.cluster.local:80 down", "host [redacted] down"),
]

PUBLIC = [
    "See https://platform.openai.com/account/api-keys.",
    "maximum context length is 40960 tokens",
    "messages.1.content.0.tool_use_id is not valid",
    "invalid response_format.json_schema.schema: additionalProperties_must_be_false_for_all_Objects_2",
    "key_name_of_a_parameter and key-value stores",
    "call_01ABCabc not found",
    "api_key: Extra inputs are not permitted",
    "max_tokens: 100000 is too large",
    "",
]


@pytest.mark.parametrize(("text", "wanted"), PRIVATE)
def test_secrets_and_inner_addresses_are_masked(text: str, wanted: str) -> None:
    assert redact(text) == wanted


@pytest.mark.parametrize("text", PUBLIC)
def test_useful_words_stay(text: str) -> None:
    assert redact(text) == text


def test_what_the_caller_hides() -> None:
    assert (
        redact("at https://w.example.com/x with k3y", ("w.example.com", "k3y", ""))
        == "at [redacted] with [redacted]"
    )
    assert decode(500, openai("host h.example down"), hide=("h.example",)).message == "host [redacted] down"


def test_messages_have_a_limit() -> None:
    assert len(redact("x " * 9000)) == MAX_LENGTH
    assert redact("x " * 9000).endswith("…")


def test_every_kind_has_a_status_and_a_type() -> None:
    assert set(STATUS) == set(TYPE) > set(CODE)
    for kind in STATUS:
        error = ProxyError(kind, "words")
        assert (str(error), error.http_status, error.body()["type"]) == ("words", STATUS[kind], TYPE[kind])


def test_request_faults_name_their_place() -> None:
    error = bad_request("no", param_at("/input/0/content/1"), code="c")
    assert error.body() == {
        "message": "no",
        "type": "invalid_request_error",
        "param": "input[0].content[1]",
        "code": "c",
    }
    assert error.http_status == 400


@pytest.mark.parametrize(
    ("pointer", "param"),
    [("/input/0/content/12", "input[0].content[12]"), ("/text/format", "text.format"), ("/model", "model")],
)
def test_a_place_has_two_spellings(pointer: str, param: str) -> None:
    assert (param_at(pointer), pointer_at(param)) == (param, pointer)


# --- what no backend should send -------------------------------------------------------


@pytest.mark.parametrize("levels", [100, 190, 600, 2000])
@pytest.mark.parametrize(("left", "right"), [(b'{"error":', b"}"), (b"[", b"]")])
def test_an_error_inside_an_error_inside_an_error(levels: int, left: bytes, right: bytes) -> None:
    error = decode(400, left * levels + b'{"message":"deep"}' + right * levels)
    assert (error.http_status, bool(error.message)) == (400, True)
    assert (error.message == "deep") == (levels < 200)


def test_the_title_of_a_page_is_at_its_beginning() -> None:
    page = b"<html>%b<title>Bad gateway</title>"
    assert decode(502, page % b"").message == "Bad gateway"
    assert "no explanation" in decode(502, page % (b" " * 5000)).message


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


def test_an_error_with_half_a_character_is_read() -> None:
    assert decode(400, b'{"error":{"message":"a \\ud83d b"}}').message == "a \ufffd b"
    assert decode(400, b'{"error":{"message":"a \xff b"}}').message == "a \ufffd b"


def test_code_and_param_are_words_of_the_backend_too() -> None:
    error = decode(400, openai("no", code="key hunter2", param="x hunter2"), hide=("hunter2",))
    assert (error.code, error.param) == ("key [redacted]", "x [redacted]")
    assert len(str(decode(400, openai("no", code="c" * 9000)).code)) <= 200
    assert decode(400, openai("no", code="sk-abcdef123456")).code == "[redacted]"
