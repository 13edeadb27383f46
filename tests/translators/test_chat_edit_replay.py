"""Reasoning in the history of a Chat body: kept, moved, spelled out or left out."""

from __future__ import annotations

from typing import Any

from tests.translators.chat_edit_messages import (
    DATABRICKS,
    IMAGE,
    MISTRAL,
    STRICT,
    Json,
    one,
    said,
    text,
    turn,
)
from tests.translators.chat_edits import OPENAI, Edit, table


def replay(how: str, **more: Any) -> Json:
    return {"reasoning": {"replay": how, "scope": "all", **more}}


VLLM = replay("field", replay_field="reasoning")
DEEPSEEK = replay("field", replay_on="tool_turns", placeholder=" ")


@table(
    # never
    one("a field goes", said("y", reasoning_content="why"), said("y"), lost="/reasoning_content"),
    one(
        "every field goes, reported once",
        said("y", reasoning="", thinking_blocks=[{"thinking": "w"}], reasoning_details=[1]),
        said("y"),
        lost="/thinking_blocks",
    ),
    one("also for the exact", said("y", reasoning="why"), said("y"), OPENAI, "/reasoning"),
    one("an empty field is no loss", said("y", reasoning_content=None), said("y")),
    one("a part goes", said([DATABRICKS, text("y")]), said([text("y")]), lost="/content"),
    one("nothing else was said", said("", reasoning_content="why"), None, lost="/reasoning_content"),
    one("nothing but a part", said([{"type": "redacted_thinking", "data": "x"}]), None, lost="/content"),
    one("a picture is something", said([MISTRAL, IMAGE]), said([IMAGE]), lost="/content"),
    one("a message of reasoning", {"role": "reasoning", "content": "why"}, None, lost=""),
    # field
    one("in the field it came in", said("y", reasoning="why"), said("y", reasoning="why"), VLLM),
    one("in the other field", said("y", reasoning_content="why"), said("y", reasoning="why"), VLLM),
    one(
        "the first with words in it",
        said("y", reasoning_content=" ", thinking_blocks=[{"type": "thinking", "thinking": "why"}]),
        said("y", reasoning="why"),
        VLLM,
    ),
    one("out of a part", said([DATABRICKS, text("y")]), said([text("y")], reasoning="why"), VLLM),
    one(
        "details have words too",
        said("y", reasoning_details=[{"text": "a"}, 3, {"summary": "b"}]),
        said("y", reasoning="a\n\nb"),
        VLLM,
    ),
    one("no words, no field", said("y", reasoning_content=" "), said("y"), VLLM),
    one("reasoning alone is sent back", said(None, reasoning_content="why"), said("", reasoning="why"), VLLM),
    one(
        "known to a closed schema", said("y", reasoning="why"), said("y", reasoning="why"), {**VLLM, **STRICT}
    ),
    # on turns with calls only
    one("not on this turn", said("y", reasoning_content="why"), said("y"), DEEPSEEK, "/reasoning_content"),
    turn("on this turn", said(None, reasoning_content="why"), said(None, reasoning_content="why"), DEEPSEEK),
    turn("something on this turn", said(None), said(None, reasoning_content=" "), DEEPSEEK),
    turn("something for nothing", said(None, reasoning="  "), said(None, reasoning_content=" "), DEEPSEEK),
    # parts
    one(
        "as a part",
        said("y", reasoning_content="why"),
        said([MISTRAL, text("y")]),
        replay("parts", parts=["thinking"]),
    ),
    one(
        "as a part of the other form",
        said("", reasoning="why"),
        said([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "why"}]}]),
        replay("parts"),
    ),
    one(
        "a part as it came",
        said([MISTRAL, text("y")], reasoning="x"),
        said([MISTRAL, text("y")]),
        replay("parts"),
    ),
    # details
    one(
        "details as they came",
        said("y", reasoning_details=[{"data": "x"}], reasoning="why"),
        said("y", reasoning_details=[{"data": "x"}]),
        replay("details", replay_field="reasoning_details"),
    ),
    one(
        "details of words",
        said("y", reasoning="why"),
        said("y", reasoning_details=[{"type": "reasoning.text", "text": "why"}]),
        replay("details", replay_field="reasoning_details"),
    ),
    # tags
    one(
        "between tags",
        said("y", reasoning="why"),
        said("<r>why</r>\ny"),
        replay("tags", tags=["<r>", "</r>"]),
    ),
    one(
        "between the usual tags",
        said([IMAGE], reasoning="why"),
        said([text("<think>why</think>"), IMAGE]),
        replay("tags", tags=None),
    ),
)
def test_reasoning_in_the_history(case: Edit) -> None:
    case.check()
