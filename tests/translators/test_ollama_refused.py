"""What Ollama refuses, by its own words: what is left out for it, and what its client hears of that."""

from __future__ import annotations

from typing import Any

import pytest

from translators.ir import Json
from translators.ollama.refusals import NO_TOOLS, refused
from translators.rejection_reading import rejected
from translators.rejections import Rejection, allowed, losses, without

CALLED = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
THINKING = [Rejection(("think",))]
BY_LEVEL = [Rejection(("think",), value=level) for level in ("low", "medium", "high", "max")]
REFUSALS: list[tuple[Json, str, list[Rejection]]] = [
    ({"think": True}, '"m" does not support thinking', THINKING),
    ({"think": "low"}, "registry.ollama.ai/library/m does not support thinking", THINKING),
    ({}, '"m" does not support thinking', []),
    ({"tools": [1]}, '"m" does not support tools', [NO_TOOLS]),
    ({"think": "low"}, 'think value "low" is not supported for this model', BY_LEVEL),
    (
        {"think": "max"},
        'invalid think value: "max" (must be "high", "medium", "low", true, or false)',
        BY_LEVEL[3:],
    ),
    ({"think": "huge"}, 'invalid think value: "huge"', []),
    ({"think": True, "tools": [1]}, "model requires more system memory", []),
]


@pytest.mark.parametrize(("body", "message", "wanted"), REFUSALS)
def test_a_refusal_is_read(body: Json, message: str, wanted: list[Rejection]) -> None:
    assert list(refused(body, message)) == wanted
    found = rejected(body, "ollama", message)
    assert list(found) == [each for each in wanted if without(body, each) is not body]
    assert all(allowed(each, "ollama") for each in found)


@pytest.mark.parametrize("key", ["messages", "options"])
def test_nothing_else_is_left_out_of_a_body_for_ollama(key: str) -> None:
    assert not allowed(Rejection((key,)), "ollama")


LOST: list[tuple[Rejection, str, Json, list[tuple[str, str]]]] = [
    (NO_TOOLS, "chat", {"tools": [CALLED]}, [("/tools", "feature")]),
    (NO_TOOLS, "responses", {"tools": [CALLED]}, [("/tools", "feature")]),
    (NO_TOOLS, "chat", {}, []),
    (THINKING[0], "chat", {"reasoning_effort": "low"}, [("/reasoning_effort", "tuning")]),
    (THINKING[0], "chat", {"think": True}, [("/think", "bookkeeping")]),
    (THINKING[0], "responses", {"reasoning": {"effort": "low"}}, [("/reasoning/effort", "tuning")]),
]


@pytest.mark.parametrize(("rejection", "client", "body", "wanted"), LOST)
def test_what_a_client_loses_by_it(
    rejection: Rejection, client: Any, body: Json, wanted: list[tuple[str, str]]
) -> None:
    assert [(lost.pointer, lost.kind) for lost in losses(rejection, body, client, "ollama")] == wanted
