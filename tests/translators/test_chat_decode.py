"""A Chat client's messages: what each form of them becomes; and citations."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.chat_requests import items
from translators.chat.annotations import from_chat, to_chat
from translators.ir import Audio, File, Image, Message, Opaque, Reasoning, Refusal, Text, ToolCall, ToolResult

# --- messages --------------------------------------------------------------------------

CONTENT = {
    "string": ("hi", (Text("hi"),)),
    "empty string": ("", ()),
    "null": (None, ()),
    "list of strings": (["a", {"type": "text", "text": ""}], (Text("a"), Text(""))),
    "Responses names": (
        [{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}],
        (Text("a"), Text("b")),
    ),
    "refusal": ([{"type": "refusal", "refusal": "no"}], (Refusal("no"),)),
    "image": (
        [{"type": "image_url", "image_url": {"url": "data:x", "detail": "high"}}],
        (Image("data:x", detail="high"),),
    ),
    "image as a string": (
        [{"type": "image_url", "image_url": "http://x/y.png", "detail": "low"}],
        (Image("http://x/y.png", detail="low"),),
    ),
    "image by id": (
        [{"type": "input_image", "file_id": "file_1", "image_url": None}],
        (Image(file_id="file_1"),),
    ),
    "audio": (
        [{"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}],
        (Audio("AA", "wav"),),
    ),
    "file": (
        [{"type": "file", "file": {"file_data": "data:x", "filename": "a.pdf"}}],
        (File("data:x", filename="a.pdf"),),
    ),
    "file by id": ([{"type": "file", "file": {"file_id": "file_1"}}], (File(file_id="file_1"),)),
    "file, flat": ([{"type": "input_file", "file_url": "http://x"}], (File(url="http://x"),)),
    "unknown part": (
        [{"type": "video_url", "video_url": {"url": "x"}}],
        (Opaque("chat", {"type": "video_url", "video_url": {"url": "x"}}, "/messages/0/content/0"),),
    ),
}


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
@pytest.mark.parametrize("name", CONTENT)
def test_content(role: str, name: str) -> None:
    content, parts = CONTENT[name]
    assert items({"role": role, "content": content}) == (Message(role, parts, at="/messages/0"),)


def test_missing_content_is_none() -> None:
    assert items({"role": "user"}) == (Message("user", (), at="/messages/0"),)


def test_name_and_unknown_keys_stay_with_their_message() -> None:
    raw = {
        "role": "user",
        "content": "x",
        "name": "ann",
        "cache_control": {"type": "ephemeral"},
        "tool_calls": None,
    }
    assert items(raw) == (
        Message(
            "user", (Text("x"),), "ann", at="/messages/0", extra={"cache_control": {"type": "ephemeral"}}
        ),
    )


CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


def test_assistant_text_calls_and_their_results() -> None:
    found = items(
        {"role": "assistant", "content": "look", "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "two"}]},
        {"role": "tool", "tool_call_id": "call_1", "name": "f", "content": "one", "extra": 1},
    )
    assert found == (
        Message("assistant", (Text("look"),), at="/messages/0"),
        ToolCall("call_1", "f", '{"a":1}', at="/messages/0/tool_calls/0"),
        ToolCall("call_2", "f", '{"a":1}', at="/messages/0/tool_calls/1"),
        ToolResult("call_2", (Text("two"),), at="/messages/1"),
        ToolResult("call_1", (Text("one"),), name="f", at="/messages/2", extra={"extra": 1}),
    )


CALLS = {
    "object arguments": (
        {"id": "c", "function": {"name": "f", "arguments": {"a": [1]}}},
        ToolCall("c", "f", '{"a":[1]}'),
    ),
    "no arguments": ({"id": "c", "type": "function", "function": {"name": "f"}}, ToolCall("c", "f", "")),
    "no id": ({"type": "function", "function": {"name": "f", "arguments": ""}}, ToolCall("call_0", "f", "")),
    "empty id": ({"id": "", "function": {"name": "f", "arguments": ""}}, ToolCall("call_0", "f", "")),
    "flat": (
        {"id": "c", "type": "function", "name": "f", "arguments": "{}", "index": 0},
        ToolCall("c", "f", "{}"),
    ),
    "custom": (
        {"id": "c", "type": "custom", "custom": {"name": "p", "input": "*** Begin"}},
        ToolCall("c", "p", "*** Begin", kind="custom"),
    ),
    "Gemini's signature": (
        {**CALL, "extra_content": {"google": {"thought_signature": "s"}}},
        ToolCall("call_1", "f", '{"a":1}', extra={"extra_content": {"google": {"thought_signature": "s"}}}),
    ),
}


@pytest.mark.parametrize("content", [None, "", "missing"])
@pytest.mark.parametrize("name", CALLS)
def test_call_without_text_has_no_message(name: str, content: str | None) -> None:
    raw, call = CALLS[name]
    message = {
        "role": "assistant",
        "tool_calls": [raw],
        **({} if content == "missing" else {"content": content}),
    }
    (found,) = items(message)
    assert found.at == "/messages/0/tool_calls/0"
    assert (found.call_id, found.name, found.arguments, found.kind, found.extra) == (
        *(call.call_id, call.name, call.arguments, call.kind, call.extra),
    )


def test_result_of_a_custom_call_is_custom() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "p", "input": "x"}}
    found = items(
        {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "ok"}
    )
    assert found[1] == ToolResult("c", (Text("ok"),), "custom", at="/messages/1")


@pytest.mark.parametrize("call_id", [None, 7, ""])
def test_result_without_a_usable_id_is_an_orphan(call_id: Any) -> None:
    assert items({"role": "tool", "tool_call_id": call_id, "content": "x"})[0].call_id == ""


def test_old_function_calls_are_paired_by_name() -> None:
    found = items(
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "one"},
        {"role": "function", "name": "g", "content": "orphan"},
        {"role": "function", "content": "nameless"},
    )
    assert found == (
        ToolCall("call_0", "f", "{}", at="/messages/0/function_call"),
        ToolResult("call_0", (Text("one"),), name="f", at="/messages/1"),
        ToolResult("", (Text("orphan"),), name="g", at="/messages/2"),
        ToolResult("", (Text("nameless"),), at="/messages/3"),
    )


def test_bare_assistant_message_stays() -> None:
    raw = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [], "function_call": None}
    assert items(raw) == (Message("assistant", (), at="/messages/0"),)


def test_unknown_keys_keep_the_message_of_a_call() -> None:
    found = items({"role": "assistant", "content": None, "tool_calls": [CALL], "audio": {"id": "a"}})
    assert found[0] == Message("assistant", (), at="/messages/0", extra={"audio": {"id": "a"}})
    assert isinstance(found[1], ToolCall)


def test_refusal_and_citations_of_an_assistant_message() -> None:
    cited = {
        "type": "url_citation",
        "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 2},
    }
    found = items(
        {
            "role": "assistant",
            "content": [{"type": "refusal", "refusal": "a"}, "bc"],
            "annotations": [cited, 3],
        },
        {"role": "assistant", "content": "x", "refusal": "no", "annotations": []},
        {"role": "assistant", "refusal": "no", "annotations": [cited]},
    )
    flat = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 2}
    assert [message.parts for message in found] == [
        (Refusal("a"), Text("bc", (flat,))),
        (Text("x"), Refusal("no")),
        (Refusal("no"),),
    ]


REASONING = {
    "reasoning_content": ({"reasoning_content": "r"}, [(("r",), None)]),
    "reasoning": ({"reasoning": "r"}, [(("r",), None)]),
    "reasoning_text": ({"reasoning_text": "r"}, [(("r",), None)]),
    "the same twice": ({"reasoning": "r", "reasoning_content": "r"}, [(("r",), None)]),
    "two different": ({"reasoning": "b", "reasoning_content": "a"}, [(("a",), None), (("b",), None)]),
    "blank": ({"reasoning_content": " \n", "reasoning": None}, []),
    "Databricks part": (
        {
            "content": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "r", "signature": "s"}]}
            ]
        },
        [(("r",), "s")],
    ),
    "Mistral part": (
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}]},
        [(("r",), None)],
    ),
    "Anthropic part": (
        {"content": [{"type": "thinking", "thinking": "r", "signature": "s"}]},
        [(("r",), "s")],
    ),
    "redacted part": ({"content": [{"type": "redacted_thinking", "data": "zz"}]}, [((), "zz")]),
    "odd part": (
        {
            "content": [
                {"type": "thinking", "thinking": 3},
                {"type": "reasoning", "summary": [3, {"text": 4}]},
            ]
        },
        [((), None), ((), None)],
    ),
}


@pytest.mark.parametrize("name", REASONING)
def test_reasoning_goes_before_its_message(name: str) -> None:
    keys, wanted = REASONING[name]
    content = [*keys.get("content", []), "answer"]
    *thoughts, message = items({"role": "assistant", **keys, "content": content})
    assert [(thought.summary, thought.sealed) for thought in thoughts] == wanted
    assert message == Message("assistant", (Text("answer"),), at="/messages/0")


def test_reasoning_details_are_kept_whole() -> None:
    details = [{"type": "reasoning.encrypted", "data": "zz"}]
    first, second = items(
        {"role": "assistant", "reasoning": "r", "reasoning_details": details, "tool_calls": [CALL]}
    )
    assert first == Reasoning(("r",), at="/messages/0/reasoning", extra={"reasoning_details": details})
    assert isinstance(second, ToolCall)
    alone = items({"role": "assistant", "content": "x", "reasoning_details": details})[0]
    assert alone == Reasoning(at="/messages/0/reasoning_details", extra={"reasoning_details": details})


# --- citations -------------------------------------------------------------------------

FLAT_URL = {"type": "url_citation", "url": "u", "title": "t", "start_index": 1, "end_index": 3}
FILE_CITED = {"type": "file_citation", "file_id": "file_1", "filename": "a", "index": 2}


@pytest.mark.parametrize("flat", [FLAT_URL, FILE_CITED])
def test_citations_there_and_back(flat: dict[str, Any]) -> None:
    nested = to_chat(flat)
    assert nested == {"type": flat["type"], flat["type"]: {k: v for k, v in flat.items() if k != "type"}}
    assert from_chat(nested) == flat
    assert from_chat(flat) == flat


def test_citation_offsets_and_missing_keys() -> None:
    moved = to_chat(FLAT_URL, 10)["url_citation"]
    assert (moved["start_index"], moved["end_index"]) == (11, 13)
    bare = to_chat({"type": "url_citation", "url": "u", "title": None})["url_citation"]
    assert bare == {"url": "u", "title": "", "start_index": 0, "end_index": 0}
    assert from_chat("x") is None
    assert from_chat({"type": None}) is None
