"""What a request needs, told from its body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from app.routing.needs import Needs, needs_of

PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
NEW_PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}


@dataclass
class Able:
    tools: bool | None = None
    vision: bool | None = None
    json_schema: bool | None = None


def needs(body: Any) -> Needs:
    return needs_of(body, orjson.dumps(body))


CASES: list[tuple[dict[str, Any], set[str]]] = [
    ({"messages": [{"role": "user", "content": "an image, image_url, input_image"}]}, set()),
    ({"input": "image"}, set()),
    ({"tools": [], "functions": None}, set()),
    ({"tools": [{"type": "function"}]}, {"tools"}),
    ({"functions": [{"name": "f"}]}, {"tools"}),
    ({"messages": [{"role": "user", "content": [PICTURE]}]}, {"vision"}),
    ({"input": [{"role": "user", "content": [NEW_PICTURE]}]}, {"vision"}),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": [NEW_PICTURE]}]}, {"vision"}),
    ({"response_format": {"type": "json_schema"}}, {"json_schema"}),
    ({"response_format": {"type": "json_object"}}, set()),
    ({"text": {"format": {"type": "json_schema"}}}, {"json_schema"}),
    ({"text": "image", "response_format": "json_schema", "messages": "image"}, set()),
    ({"messages": ["image", None, 5, {"content": ["image", None]}, {"content": {"a": 1}}]}, set()),
    ({"input": [{"content": [{"type": ["input_image"]}]}]}, set()),
]


@pytest.mark.parametrize(("body", "wanted"), CASES)
def test_needs(body: dict[str, Any], wanted: set[str]) -> None:
    found = needs(body)
    assert {name for name in ("tools", "vision", "json_schema") if getattr(found, name)} == wanted
    assert found.missing(Able(), None) is None
    assert found.missing(Able(True, True, True), None) is None
    assert (found.missing(Able(False, False, False), None) is not None) is bool(wanted)
    assert found.missing(None, 10**6) is None


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        ({"input": "word " * 800}, True),  # 4,000 characters are 1,000 tokens at least
        ({"input": "word " * 900}, False),
        ({"messages": [{"role": "user", "content": "word " * 900}]}, False),
        ({"input": "hi", "instructions": "word " * 900}, False),
        ({"input": "hi", "tools": [{"type": "function", "description": "word " * 900}]}, False),
        ({"input": [{"type": "reasoning", "encrypted_content": "x" * 9000, "summary": []}]}, True),
        ({"messages": [{"content": [{"type": "input_audio", "input_audio": {"data": "A" * 9000}}]}]}, True),
        ({"input": "hi", "metadata": {"note": "word " * 900}}, True),
    ],
)
def test_length_is_estimated_low(body: dict[str, Any], fits: bool) -> None:
    assert (needs(body).missing(None, 1000) is None) is fits
