"""What else the pure functions promise: estimates, images within a body, half characters, joined ids."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from translators.budget import CHARS_PER_TOKEN, prompt_tokens
from translators.images import data_images
from translators.ir import Item, ToolCall, ToolResult
from translators.lenient import with_whole_characters
from translators.responses.decode import decode_request

TEXT = "a" * 4000
PROMPTS: list[tuple[dict[str, Any], int]] = [
    ({"messages": [{"role": "user", "content": TEXT}]}, 4000),
    ({"instructions": TEXT, "input": TEXT}, 8000),
    ({"input": [{"role": "developer", "content": TEXT}], "tools": [{"name": TEXT}]}, 8000),
    ({}, 0),
]


@pytest.mark.parametrize(("body", "characters"), PROMPTS, ids=range(len(PROMPTS)))
def test_the_prompt_is_estimated_by_its_characters(body: dict[str, Any], characters: int) -> None:
    assert prompt_tokens(body) == int(characters / CHARS_PER_TOKEN)


PNG, JPEG = "data:image/png;base64,AAAA", "DATA:IMAGE/jpeg;base64,BBBB"
HELD: list[tuple[dict[str, Any], dict[str, list[str]]]] = [
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}] * 2}]},
        {PNG: ["/messages/0/content/0", "/messages/0/content/1"]},
    ),
    (
        {"input": [{"output": {"type": "computer_screenshot", "image_url": JPEG}}]},
        {JPEG: ["/input/0/output"]},
    ),
    ({"input": [{"content": [{"image_url": "https://x.test/a.png"}, {"image_url": None}]}]}, {}),
    ({"input": [{"content": [{"type": "input_file", "file_data": PNG}]}]}, {}),
]


@pytest.mark.parametrize(("body", "held"), HELD, ids=range(len(HELD)))
def test_images_in_the_body_itself(body: dict[str, Any], held: dict[str, list[str]]) -> None:
    assert data_images(body) == held


WHOLE = [
    (b'{"a":"\\ud83d"}', b'{"a":"\\ufffd"}'),
    (b'{"a":"\\ud83d\\ude42"}', b'{"a":"\\ud83d\\ude42"}'),
    (b'{"a":"\\\\ud83d"}', b'{"a":"\\\\ud83d"}'),
    (b'{"a":"\xe2\x82"}', '{"a":"\ufffd"}'.encode()),
    ('{"a":"\U0001f642\\n"}'.encode(), '{"a":"\U0001f642\\n"}'.encode()),
]


@pytest.mark.parametrize(("data", "whole"), WHOLE, ids=range(len(WHOLE)))
def test_half_of_a_pair_becomes_one_character(data: bytes, whole: bytes) -> None:
    assert with_whole_characters(data) == whole


def items(*raw: dict[str, Any]) -> list[Item]:
    count = itertools.count(1)
    return list(decode_request({"model": "m", "input": list(raw)}, lambda kind: f"{kind}{next(count)}").items)


def asked(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **more}


def test_both_ids_in_one_are_told_apart() -> None:
    """A result that names the item, or both, belongs to the call."""
    for named in ("call_1|fc_1", "call_1", "fc_1"):
        call, result = items(
            asked("call_1|fc_1"), {"type": "function_call_output", "call_id": named, "output": "1"}
        )
        assert isinstance(call, ToolCall)
        assert isinstance(result, ToolResult)
        assert (call.call_id, call.id, result.call_id) == ("call_1", "fc_1", "call_1")


def test_a_result_of_a_tool_of_the_backends_own_answers_a_function_call() -> None:
    result = {"type": "x_search_call_output", "call_id": "call_1", "output": "found"}
    assert isinstance(items(asked("call_1"), result)[1], ToolResult)
    assert not isinstance(items(result)[0], ToolResult)
