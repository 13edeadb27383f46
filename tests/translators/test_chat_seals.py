"""Which errors of a Chat backend speak of reasoning that it cannot use, and what is sent instead."""

from __future__ import annotations

import copy

import pytest

from translators.chat.seals import refused, sealed, without_seals
from translators.ir import Json

WORDS = [
    "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
    'messages.1.content.0: Invalid \\"data\\" in \\"redacted_thinking\\" block',
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "Invalid signature in thinking block",
    "INVALID 'SIGNATURE' IN 'THINKING' BLOCK",
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
    "cannot be modified. These blocks must remain as they were in the original response.",
    "a thinking block of this conversation cannot be modified",
    "messages.3.content.0.thinking.signature: Field required",
    "Function call is missing a thought_signature in functionCall parts.",
    "Unable to submit request because function call `f` is missing a `thought_signature`.",
    "Thought signature is not valid",
    "The thought_signature is invalid.",
]

OTHER = [
    "Invalid `data` in image block",
    "thinking: Extra inputs are not permitted",
    "`max_tokens` must be greater than `thinking.budget_tokens`",
    "the messages cannot be modified",
    "",
]


@pytest.mark.parametrize("words", WORDS)
def test_words_of_a_refusal(words: str) -> None:
    assert refused(400, None, words)
    assert refused(400, "invalid_request_error", f'{{"error": "{words.lower()}"}}')
    assert not refused(500, None, words)


@pytest.mark.parametrize("words", OTHER)
def test_other_words(words: str) -> None:
    assert not refused(400, "bad_request", words)


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SIGNED_CALL = {
    **CALL,
    "function": {**CALL["function"], "thought_signature": "G"},  # type: ignore[dict-item]
    "extra_content": {"google": {"thought_signature": "G"}},
}
TEXT = {"type": "text", "text": "so"}
THOUGHTS = [
    {"type": "thinking", "thinking": "hm", "signature": "S"},
    {"type": "redacted_thinking", "data": "E"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm", "signature": "S"}]},
]

MESSAGES: dict[str, tuple[Json, Json]] = {
    "parts": ({"content": [*THOUGHTS, TEXT]}, {"content": [TEXT]}),
    "nothing but parts": (
        {"content": THOUGHTS, "tool_calls": [CALL]},
        {"content": None, "tool_calls": [CALL]},
    ),
    "calls": ({"content": None, "tool_calls": [SIGNED_CALL]}, {"content": None, "tool_calls": [CALL]}),
    "databricks": (
        {"content": "", "tool_calls": [{**CALL, "thoughtSignature": "G"}]},
        {"content": "", "tool_calls": [CALL]},
    ),
    "details": ({"content": "so", "reasoning_details": [{"data": "E"}]}, {"content": "so"}),
    "a text's": ({"content": "so", "extra_content": {"google": {}}}, {"content": "so"}),
    "odd ones beside": (
        {"content": [*THOUGHTS, "x"], "tool_calls": ["x", {"function": 1}]},
        {"content": ["x"], "tool_calls": ["x", {"function": 1}]},
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_only_the_opaque_is_left_out(name: str) -> None:
    given, kept = MESSAGES[name]
    user = {"role": "user", "content": [TEXT], "extra_content": "the client's own"}
    body: Json = {"model": "m", "messages": [user, {"role": "assistant", **given}, user]}
    before = copy.deepcopy(body)
    assert without_seals(body) == {"model": "m", "messages": [user, {"role": "assistant", **kept}, user]}
    assert body == before
    assert [loss.pointer for loss in sealed(body)] == ["/messages/1"]


@pytest.mark.parametrize(
    "body", [{}, {"messages": [{"role": "user"}, "x", {"role": "assistant", "content": [TEXT]}]}]
)
def test_a_body_with_nothing_opaque(body: Json) -> None:
    assert without_seals(body) is None
    assert sealed(body) == []
