"""Whole conversations as Responses request bodies."""

from __future__ import annotations

from tests.translators.responses_profiles import KEEP
from tests.translators.responses_requests import SAID, SAY, SCHEMA, body, from_chat, inputs, new_id
from translators.ir import Image, Json, Message, Text, ToolCall, ToolResult
from translators.responses.decode import decode_request
from translators.responses.encode import encode_request

# --- a Chat client's conversation ----------------------------------------------------------


ASKED: list[Json] = [
    {"role": "system", "content": "A"},
    {"role": "developer", "content": "B"},
    {
        "role": "user",
        "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}],
    },
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}},
            {"id": "call_2", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "4"}]},
    {"role": "tool", "tool_call_id": "call_2", "content": "5"},
    {"role": "system", "content": "later"},
    {"role": "user", "content": "and?"},
]
SENT: list[Json] = [
    {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "u", "detail": "auto"},
        ],
    },
    {
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
    },
    {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
    {"type": "function_call", "call_id": "call_2", "name": "f", "arguments": '{"a":1}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "4"},
    {"type": "function_call_output", "call_id": "call_2", "output": "5"},
    {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "later"}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and?"}]},
]


def test_a_whole_chat_conversation() -> None:
    written = from_chat(*ASKED)
    answer = written["input"][1]
    assert answer.pop("id").startswith("msg_")
    assert written == {"model": "m", "instructions": "A\n\nB", "store": False, "input": SENT}


def test_ids_of_old_answers_are_the_same_on_every_turn() -> None:
    first, again, other = (
        body(SAY, Message("assistant", (Text(text),)))["input"][1]["id"] for text in ("a", "a", "b")
    )
    assert first == again != other
    twice = inputs(SAY, *(Message("assistant", (Text("a"),)) for _ in range(2)))
    assert twice[1]["id"] != twice[2]["id"]


def test_long_call_ids_stay_apart_and_with_their_results() -> None:
    ids = ["call_" + "a" * 80 + end for end in "ab"]
    made = [ToolCall(id, "f", "{}") for id in ids]
    answered = [ToolResult(id, (Text(id[-1]),)) for id in ids]
    first, second, one, two = inputs(*made, *answered)
    assert len({first["call_id"], second["call_id"]}) == 2
    assert all(len(item["call_id"]) <= 64 for item in (first, second))
    assert (one["call_id"], one["output"]) == (first["call_id"], "a")
    assert (two["call_id"], two["output"]) == (second["call_id"], "b")


def test_system_messages_that_are_not_only_words_stay_where_they_are() -> None:
    written = body(Message("system", (Text("a"),)), Message("system", (Image("u"),)), SAY)
    assert written["instructions"] == "a"
    assert written["input"][0]["role"] == "system"


def test_a_system_message_that_is_all_there_is_is_the_input() -> None:
    written = body(Message("system", (Text("a"),)))
    assert "instructions" not in written
    assert written["input"] == [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "a"}]}
    ]


# --- a Responses client's ------------------------------------------------------------------

ROUND: list[Json] = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
    {
        "type": "message",
        "role": "user",
        "id": "msg_0",
        "status": "completed",
        "content": [
            {"type": "input_image", "file_id": "f", "detail": "original"},
            {"type": "input_file", "file_url": "u"},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            {"type": "unheard_of", "x": 1},
        ],
    },
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "s"}],
        "content": [{"type": "reasoning_text", "text": "r"}],
        "encrypted_content": "zz",
        "status": "completed",
    },
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "status": "incomplete",
        "phase": "commentary",
        "content": [
            {"type": "output_text", "text": "a", "annotations": [{"type": "url_citation"}]},
            {"type": "refusal", "refusal": "no"},
            {"type": "unheard_of", "x": 2},
        ],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c1",
        "name": "f",
        "namespace": "ns",
        "arguments": "{}",
        "status": "completed",
    },
    {
        "type": "function_call_output",
        "call_id": "c1",
        "name": "f",
        "output": [{"type": "input_text", "text": "1"}, {"type": "input_image", "image_url": "u"}],
    },
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "p", "input": "raw"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "2"},
    {
        "type": "tool_search_call",
        "id": "tsc_1",
        "call_id": "c3",
        "execution": "client",
        "status": "completed",
        "arguments": {"q": "x"},
    },
    {
        "type": "tool_search_output",
        "call_id": "c3",
        "execution": "client",
        "status": "completed",
        "tools": [{"type": "function", "name": "g", "parameters": SCHEMA, "defer_loading": True}],
    },
    {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [{"type": "web_search"}]},
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
]
TOOLS: list[Json] = [
    {
        "type": "function",
        "name": "f",
        "description": "F.",
        "parameters": SCHEMA,
        "strict": True,
        "output_schema": {},
    },
    {"type": "custom", "name": "p", "description": "P.", "format": {"type": "text"}},
    {"type": "custom", "name": "q"},
    {
        "type": "namespace",
        "name": "ns",
        "description": "N.",
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
    },
    {"type": "tool_search", "execution": "client", "description": "S.", "parameters": SCHEMA},
    {"type": "web_search", "filters": {}},
]


def test_what_this_wire_knows_comes_back_as_it_was() -> None:
    asked = {
        "model": "m",
        "instructions": "be brief",
        "input": ROUND,
        "tools": TOOLS,
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]},
        "parallel_tool_calls": False,
        "max_output_tokens": 100,
        "max_tool_calls": 3,
        "reasoning": {"effort": "low", "summary": "auto", "context": "all_turns", "odd": 1},
        "text": {"verbosity": "low", "format": {"type": "json_object"}, "odd": 2},
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "top_logprobs": 2,
        "metadata": {"a": "b"},
        "store": True,
        "stream": True,
        "unheard_of": {"x": 1},
    }
    encoded = encode_request(decode_request(asked, new_id), KEEP)
    assert encoded.body == asked
    assert (encoded.losses, encoded.repairs, encoded.changed) == ([], [], True)


def test_what_is_left_open_stays_open() -> None:
    asked = {
        "model": "m",
        "input": [SAID],
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
    }
    assert encode_request(decode_request(asked, new_id), KEEP).body == asked
