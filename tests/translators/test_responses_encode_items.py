"""Parts and items of a call as Responses input."""

from __future__ import annotations

import pytest

from tests.translators.responses_requests import SAID, SAY, SCHEMA, body, inputs, lost
from translators.errors import ProxyError
from translators.ir import (
    AdditionalTools,
    Audio,
    File,
    Image,
    Item,
    Json,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Shape,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from translators.profile import MessageRules, Profile, ToolRules

# --- parts ---------------------------------------------------------------------------------

PARTS: list[tuple[Part, Json]] = [
    (Text("a"), {"type": "input_text", "text": "a"}),
    (Refusal("no"), {"type": "input_text", "text": "no"}),
    (Image("u", None, "high"), {"type": "input_image", "image_url": "u", "detail": "high"}),
    (Image(None, "f"), {"type": "input_image", "file_id": "f", "detail": "auto"}),
    (
        File(data="data:text/plain;base64,AA"),
        {"type": "input_file", "file_data": "data:text/plain;base64,AA"},
    ),
    (
        File(data="AA", filename="a.CSV"),
        {"type": "input_file", "filename": "a.CSV", "file_data": "data:text/csv;base64,AA"},
    ),
    (File(data="AA"), {"type": "input_file", "file_data": "data:application/pdf;base64,AA"}),
    (File(file_id="f", detail="low"), {"type": "input_file", "file_id": "f", "detail": "low"}),
    (File(url="u"), {"type": "input_file", "file_url": "u"}),
    (Opaque("responses", {"type": "x"}), {"type": "x"}),
]


@pytest.mark.parametrize(("part", "want"), PARTS)
def test_parts_of_what_is_asked(part: Part, want: Json) -> None:
    assert inputs(Message("user", (part,)))[0]["content"] == [want]
    call = ToolCall("c", "f", "{}")
    output = inputs(call, ToolResult("c", (part, Text("b"))))[1]["output"]
    assert output == [want, {"type": "input_text", "text": "b"}]


def test_a_result_of_nothing_is_an_empty_string() -> None:
    assert inputs(ToolCall("c", "f", "{}"), ToolResult("c", ()))[1]["output"] == ""


NO_PLACE: list[tuple[Item, str]] = [
    (
        Message("user", (Text("a"), Opaque("chat", {"type": "video_url"})), at="/messages/2"),
        "messages[2].content[1]",
    ),
    (
        Message("user", (Opaque("chat", {"type": "video_url"}, "/messages/0/content/3"),), at="/messages/0"),
        "messages[0].content[3]",
    ),
    (Message("assistant", (Image("u"),), at="/messages/1"), "messages[1].content[0]"),
    (Message("assistant", (Audio("AA", "wav"),), at="/messages/1"), "messages[1].content[0]"),
    (Message("user", (Audio("AA", "wav"),), at="/messages/1"), "messages[1].content[0]"),
]


@pytest.mark.parametrize(("item", "param"), NO_PLACE)
def test_content_without_a_place_is_refused(item: Item, param: str) -> None:
    with pytest.raises(ProxyError) as caught:
        body(item)
    assert (caught.value.http_status, caught.value.param) == (400, param)


NO_URLS = Profile(messages=MessageRules(remote_images="reject"), tools=ToolRules(max=1))


@pytest.mark.parametrize(
    ("shape", "at", "param"),
    [("chat", "/messages/7", "messages[7]"), ("responses", "/input/7", "input[7].content[1]")],
)
def test_what_the_profile_refuses_is_named_as_the_client_knows_it(shape: Shape, at: str, param: str) -> None:
    picture = Message("user", (Text("see"), Image("https://x/y.png")), at=at)
    with pytest.raises(ProxyError) as caught:
        body(SAY, picture, shape=shape, profile=NO_URLS)
    assert (caught.value.http_status, caught.value.param) == (400, param)


def test_a_parameter_has_the_same_name_where_none_other_is_known() -> None:
    tools = tuple(Tool(name, schema=SCHEMA, at=f"/tools/{i}") for i, name in enumerate("ab"))
    with pytest.raises(ProxyError) as caught:
        body(tools=tools, profile=NO_URLS)
    assert (caught.value.http_status, caught.value.param) == (400, "tools")


# --- items ---------------------------------------------------------------------------------


def test_what_says_nothing_is_not_sent() -> None:
    blank = Message("system", (), at="/messages/0")
    assert "instructions" not in body(blank, SAY)
    assert body(blank, Message("system", (Text("s"),)), SAY)["instructions"] == "s"
    nothing = [{"type": "input_text", "text": ""}]
    assert inputs(Message("user", ())) == [{"type": "message", "role": "user", "content": nothing}]


ITEMS: list[tuple[Item, Json]] = [
    (
        ToolCall("c", "f", "{}", id="call_1"),
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ),
    (
        ToolCall("c", "f", " ", id="fc_1"),
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"},
    ),
    (
        ToolCall("c", "f", "{}", namespace="ns", extra={"status": "completed"}),
        {"type": "function_call", "call_id": "c", "name": "f", "namespace": "ns", "arguments": "{}"},
    ),
    (
        ToolCall("c", "p", "raw", "custom"),
        {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": "raw"},
    ),
    (
        ToolCall("c", "tool_search", "no json", "tool_search"),
        {
            "type": "tool_search_call",
            "call_id": "c",
            "execution": "client",
            "status": "completed",
            "arguments": "no json",
        },
    ),
    (
        AdditionalTools((Tool("f"),)),
        {
            "type": "additional_tools",
            "role": "developer",
            "tools": [
                {
                    "type": "function",
                    "name": "f",
                    "parameters": {"type": "object", "properties": {}},
                    "strict": False,
                }
            ],
        },
    ),
]


@pytest.mark.parametrize(("item", "want"), ITEMS)
def test_items(item: Item, want: Json) -> None:
    assert inputs(item)[0] == want


def test_what_a_chat_client_thought_is_not_given_back() -> None:
    thought = Reasoning(content=("hm",), at="/messages/1")
    assert inputs(thought, SAY) == [SAID]
    assert lost(thought, SAY) == [("/messages/1", "bookkeeping")]


@pytest.mark.parametrize(
    ("thought", "want"),
    [
        (Reasoning(("s",), id="rs_1"), {"id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}]}),
        (Reasoning(content=("r",)), {"summary": [], "content": [{"type": "reasoning_text", "text": "r"}]}),
        (Reasoning(sealed="zz"), {"summary": [], "encrypted_content": "zz"}),
    ],
)
def test_what_a_responses_client_was_told_is(thought: Reasoning, want: Json) -> None:
    assert inputs(thought, SAY, shape="responses")[0] == {"type": "reasoning", **want}


def test_instructions_may_be_all_there_is() -> None:
    told = Message("system", (Text("be brief"),), at="/instructions")
    assert body(told, shape="responses") == {"model": "m", "instructions": "be brief", "input": []}


def test_an_item_of_another_shape_is_left_out_and_reported() -> None:
    item = Opaque("chat", {"type": "odd"}, "/messages/3")
    assert inputs(item, SAY) == [SAID]
    assert lost(item, SAY) == [("/messages/3", "content")]


def test_a_name_has_no_place() -> None:
    named = Message("user", (Text("hi"),), name="ann", at="/messages/0")
    assert inputs(named) == [SAID]
    assert lost(named) == [("/messages/0/name", "tuning")]


def test_old_sound_has_no_place() -> None:
    spoken = Message("assistant", (), extra={"audio": {"id": "audio_1"}}, at="/messages/1")
    assert lost(spoken, SAY) == [("/messages/1/audio", "content")]
    assert lost(spoken, SAY, shape="responses") == []
