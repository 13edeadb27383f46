"""Errors of every shape, as the client is told of them: status, kind, code, words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from openai.types.responses import ResponseError

from tests.translators.error_replies import decode, openai
from translators.error_bodies import read_body
from translators.errors import (
    CODE,
    STATUS,
    TYPE,
    ProxyError,
    bad_request,
    error_in,
    param_at,
    pointer_at,
    responses_code,
    responses_error,
)
from translators.profile import ErrorRules, Profile, RetryRules

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


def test_an_error_with_half_a_character_is_read() -> None:
    assert decode(400, b'{"error":{"message":"a \\ud83d b"}}').message == "a \ufffd b"
    assert decode(400, b'{"error":{"message":"a \xff b"}}').message == "a \ufffd b"


def test_code_and_param_are_words_of_the_backend_too() -> None:
    error = decode(400, openai("no", code="key hunter2", param="x hunter2"), hide=("hunter2",))
    assert (error.code, error.param) == ("key [redacted]", "x [redacted]")
    assert len(str(decode(400, openai("no", code="c" * 9000)).code)) <= 200
    assert decode(400, openai("no", code="sk-abcdef123456")).code == "[redacted]"
