"""The record of an exchange: headers and log fields."""

from __future__ import annotations

import pytest

from app.telemetry.trace import Trace, dropped, request_id
from translators.dialect import Loss, Repair
from translators.errors import ProxyError
from translators.ir import Usage


def losses(*pointers: str) -> list[Loss]:
    return [Loss(pointer, "no such field") for pointer in pointers]


@pytest.mark.parametrize("given", [b"r1", b"0190-abc_DEF:1.2/3", b"x" * 128])
def test_a_sane_request_id_is_kept(given: bytes) -> None:
    assert request_id({b"x-request-id": given}) == given


@pytest.mark.parametrize("given", [b"", b"x" * 129, b"a b", b"a\nb", b"\xff", b'"'])
def test_any_other_is_replaced_by_a_fresh_one(given: bytes) -> None:
    one, two = request_id({b"x-request-id": given}), request_id({b"x-request-id": given})
    assert one != two
    assert one.startswith(b"req_")


def test_headers_say_only_what_is_known() -> None:
    trace = Trace(b"r1", "POST /v1/responses")
    assert trace.headers() == [(b"x-request-id", b"r1")]
    trace.target, trace.losses, trace.repairs = (
        "p/m",
        losses("/metadata", "/tools/1"),
        [Repair("message_level", "missing_result", "a", "f")] * 2,
    )
    assert dict(trace.headers()) == {
        b"x-request-id": b"r1",
        b"x-dragoman-model": b"p/m",
        b"x-dragoman-dropped": b"/metadata,/tools/1",
        b"x-dragoman-repairs": b"2",
    }


def test_header_values_are_plain_ascii() -> None:
    trace = Trace(b"r1", "")
    trace.target, trace.losses = "p/modèle\n", losses("/metadata/ключ, zwei")
    values = [value for _, value in trace.headers()]
    assert values[1:] == [b"p/mod%C3%A8le%0A", b"/metadata/%D0%BA%D0%BB%D1%8E%D1%87%2C%20zwei"]


@pytest.mark.parametrize(
    ("pointers", "expected"),
    [
        ([], ""),
        (["/a", "/b", "/a"], "/a,/b"),
        ([f"/{n}" for n in range(50)], ",".join(f"/{n}" for n in range(50))),
        ([f"/{n}" for n in range(53)], ",".join(f"/{n}" for n in range(50)) + ",...+3"),
        (["/" + "x" * 1000] * 3 + ["/" + "y" * 1000, "/z"], "/" + "x" * 1000 + ",/" + "y" * 1000 + ",/z"),
        (["/" + "x" * 1500, "/" + "y" * 1500, "/z"], "/" + "x" * 1500 + ",...+2"),
        (["/" + "x" * 3000], "...+1"),
    ],
)
def test_dropped_keeps_to_its_limits(pointers: list[str], expected: str) -> None:
    assert dropped(losses(*pointers)) == expected
    assert len(dropped(losses(*pointers))) <= 2048 + len(",...+999")


def test_log_fields() -> None:
    trace = Trace(b"r1", "POST /v1/responses", model="m", target="p/m", lane="pass", surface="chat")
    trace.losses, trace.attempts, trace.status, trace.stream = losses("/metadata"), 2, 200, True
    trace.usage, trace.first_byte = Usage(10, 5, 4, 0, 3), trace.began + 0.25
    fields = trace.fields()
    assert fields["ttft_ms"] == 250.0
    assert fields["total_ms"] >= 0
    assert fields["tokens_per_s"] > 0
    wanted = {
        "request_id": "r1",
        "status": 200,
        "model": "m",
        "target": "p/m",
        "lane": "pass",
        "surface": "chat",
        "stream": True,
        "attempts": 2,
        "input_tokens": 10,
        "output_tokens": 5,
        "cached_tokens": 4,
        "reasoning_tokens": 3,
        "dropped": ["/metadata"],
        "repairs": 0,
        "error": None,
        "error_code": None,
        "upstream_id": None,
    }
    assert wanted.items() <= fields.items()


def test_log_fields_of_a_failure() -> None:
    trace = Trace(b"r1", "POST /v1/responses")
    trace.error = ProxyError("unavailable", "x" * 900)
    fields = trace.fields()
    assert (fields["error"], fields["error_code"]) == ("x" * 500, "provider_unavailable")
    assert (fields["ttft_ms"], fields["input_tokens"], fields["tokens_per_s"]) == (None, None, None)
