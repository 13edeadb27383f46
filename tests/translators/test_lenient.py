"""JSON that is not quite JSON: what is kept of it, and what it costs nothing to read as it is."""

from __future__ import annotations

from typing import Any

import pytest

from translators.lenient import MAX_DEPTH, has_whole_characters, json_in, read_json, writable

MENDED: list[tuple[bytes, Any]] = [
    (b'{"a":"\xe2\x82"}', {"a": "\ufffd"}),
    (b'{"a":"\\ud83d"}', {"a": "\ufffd"}),
    (b'{"a":"\\ud83d\\ude42"}\x00'[:-1].replace(b"}", b',"b":NaN}'), {"a": "\U0001f642", "b": None}),
    (b'{"a":Infinity,"b":-Infinity}', {"a": None, "b": None}),
    (b'{"a":1e999,"b":NaN,"c":1.5}', {"a": None, "b": None, "c": 1.5}),
    (b'{"a":NaN,"b":12345678901234567890123,"c":7}', {"a": None, "b": 1.2345678901234568e22, "c": 7}),
    (b'{"a":"line\nline\\n"}', {"a": "line\nline\n"}),
    (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
]


@pytest.mark.parametrize(("data", "value"), MENDED, ids=lambda each: str(each)[:40])
def test_what_a_backend_meant(data: bytes, value: Any) -> None:
    assert read_json(data) == (value, False)


@pytest.mark.parametrize("data", [b"", b"{", b"data", b'{"a":}', b"[" * 100_000])
def test_no_json_at_all(data: bytes) -> None:
    assert read_json(data) == (None, False)


def test_good_json_is_read_as_it_stands() -> None:
    assert read_json(b'{"a":[1,"x"]}') == ({"a": [1, "x"]}, True)


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(("levels", "taken"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False), (1000, False)])
def test_only_what_can_be_written_again_is_read(levels: int, taken: bool) -> None:
    assert (read_json(nested(levels).encode())[0] is not None) is taken
    assert (json_in(nested(levels)) is not None) is taken


def test_many_brackets_need_not_be_deep() -> None:
    wide = "[" + ",".join(["[]"] * (MAX_DEPTH + 1)) + "]"
    assert len(read_json(wide.encode())[0]) == len(json_in(wide)) == MAX_DEPTH + 1


def test_text_of_a_model() -> None:
    assert json_in('{"a":1}') == {"a": 1}
    assert json_in("no") is None


def test_writable() -> None:
    assert writable({"a": [1]})


@pytest.mark.parametrize(("data", "good"), [(b"abc", True), ("äß🙂".encode(), True), (b"\xe2\x82", False)])
def test_is_utf8(data: bytes, good: bool) -> None:
    assert has_whole_characters(data) is good
