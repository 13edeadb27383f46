"""What every lane reads of a request."""

from __future__ import annotations

import orjson
import pytest

from app.request import parse_request
from app.telemetry.trace import Trace
from translators.errors import ProxyError
from translators.ir import Shape
from translators.lenient import MAX_DEPTH


def parse(body: object, shape: Shape | None = "responses", **headers: str):
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    named = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    return parse_request(shape, raw, named, Trace(b"r1", ""))


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        (b"{bad", None, "invalid_json"),
        (b"", None, "invalid_json"),
        (b'{"model": NaN}', None, "invalid_json"),
        (b"[1]", None, "invalid_json"),
        (b'"text"', None, "invalid_json"),
        ({}, "model", None),
        ({"model": None}, "model", None),
        ({"model": 7}, "model", None),
        ({"model": " "}, "model", None),
        ({"model": "m", "stream": "yes"}, "stream", None),
        ({"model": "m", "stream": 1}, "stream", None),
    ],
)
def test_faults_are_400_naming_the_parameter(body: object, param: str | None, code: str | None) -> None:
    with pytest.raises(ProxyError) as caught:
        parse(body)
    error = caught.value
    assert (error.http_status, error.param, error.code) == (400, param, code)


def test_the_body_is_not_quoted_in_an_error() -> None:
    with pytest.raises(ProxyError) as caught:
        parse(b'{"key": "sk-secret-123456" oops}')
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(("stream", "expected"), [(True, True), (False, False), (None, False)])
def test_stream(stream: bool | None, expected: bool) -> None:
    request = parse({"model": "m", "stream": stream})
    assert (request.stream, request.trace.stream) == (expected, expected)


def test_embeddings_know_no_stream() -> None:
    assert parse({"model": "m", "stream": "whatever"}, None).stream is False


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        ("responses", None, True),
        ("chat", None, False),
        ("chat", {"include_usage": False}, False),
        ("chat", {"include_usage": True}, True),
        ("chat", "odd", False),
    ],
)
def test_include_usage(shape: Shape, options: object, expected: bool) -> None:
    body = {"model": "m", "stream": True, "stream_options": options}
    assert parse(body, shape).context.include_usage is expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, False),
        ({"originator": "codex_exec"}, True),
        ({"user_agent": "codex_cli_rs/0.171.0 (Linux)"}, True),
        ({"user_agent": "Codex Desktop"}, True),
        ({"user_agent": "OpenAI/Python via codex"}, False),
        ({"originator": "my-codex"}, False),
    ],
)
def test_codex_reads_refusals_as_text(headers: dict[str, str], expected: bool) -> None:
    assert parse({"model": "m"}, **headers).context.refusal_as_text is expected


@pytest.mark.parametrize(
    ("value", "expected"), [("true", True), (" TRUE ", True), ("1", True), ("false", False)]
)
def test_strict(value: str, expected: bool) -> None:
    assert parse({"model": "m"}, x_dragoman_strict=value).strict is expected


def test_what_an_encoder_needs() -> None:
    body = {"model": "m", "input": "hi"}
    request = parse(body)
    assert (request.model, request.trace.model, request.context.echo) == ("m", "m", body)
    assert request.context.now is not None
    assert abs(request.context.now() - request.context.created) <= 1


def test_a_byte_order_mark_is_passed_over() -> None:
    request = parse(b'\xef\xbb\xbf{"model": "m"}')
    assert (request.model, request.raw) == ("m", b'{"model": "m"}')


@pytest.mark.parametrize("levels", [199, 200, 250, 1000, 100_000])
def test_what_is_nested_too_deep_is_400(levels: int) -> None:
    raw = b'{"model": "m", "x": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"
    if levels <= MAX_DEPTH:
        assert parse(raw).model == "m"
        return
    with pytest.raises(ProxyError) as caught:
        parse(raw)
    assert (caught.value.http_status, caught.value.code) == (400, "invalid_json")


def test_many_brackets_need_not_be_deep() -> None:
    assert parse(b'{"model": "m", "x": [' + b"[]," * 1000 + b"[]]}").model == "m"
