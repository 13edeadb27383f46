"""Calls as Responses request bodies."""

from __future__ import annotations

from typing import Any

import pytest

from translators.chat.decode import decode_request as decode_chat
from translators.errors import ProxyError
from translators.ir import (
    AdditionalTools,
    Audio,
    Call,
    File,
    Image,
    Item,
    Json,
    Message,
    Namespace,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Shape,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolRef,
    ToolResult,
)
from translators.profile import ChoiceRules, MessageRules, Profile, ReasoningRules, RequestRules, ToolRules
from translators.responses.decode import decode_request
from translators.responses.encode import encode_request

KEEP = Profile(
    messages=MessageRules(developer="keep", system="many"),
    tools=ToolRules(
        types=("function", "custom", "namespace", "tool_search"),
        custom="keep",
        builtin="keep",
        strict="keep",
        choice=ChoiceRules(allowed_tools="keep"),
    ),
    reasoning=ReasoningRules(
        scope="all", efforts=("none", "minimal", "low", "medium", "high", "xhigh", "max")
    ),
)
SAY = Message("user", (Text("hi"),), at="/messages/9")
SAID = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}


def new_id(prefix: str) -> str:
    return f"{prefix}new"


def body(*items: Item, shape: Shape = "chat", profile: Profile = KEEP, **fields: Any) -> Json:
    return encode_request(Call(shape, "m", items or (SAY,), **fields), profile).body


def inputs(*items: Item, shape: Shape = "chat") -> list[Json]:
    written = body(*items, shape=shape)["input"]
    assert isinstance(written, list)
    return written


def lost(
    *items: Item, shape: Shape = "chat", profile: Profile = KEEP, **fields: Any
) -> list[tuple[str, str]]:
    encoded = encode_request(Call(shape, "m", items or (SAY,), **fields), profile)
    return [(loss.pointer, loss.kind) for loss in encoded.losses]


def from_chat(*messages: Json, **fields: Any) -> Json:
    asked = {"model": "m", "messages": list(messages), **fields}
    return encode_request(decode_chat(asked, new_id), KEEP).body


# --- a Chat client's conversation ----------------------------------------------------------


def test_a_whole_chat_conversation() -> None:
    written = from_chat(
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
    )
    answer = written["input"][1]
    assert answer.pop("id").startswith("msg_")
    assert written == {
        "model": "m",
        "instructions": "A\n\nB",
        "store": False,
        "input": [
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
        ],
    }


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


# --- tools ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "want"),
    [
        (
            Tool("f"),
            {
                "type": "function",
                "name": "f",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            },
        ),
        (
            Tool("f", "F.", SCHEMA, True, extra={"cache_control": {}}),
            {"type": "function", "name": "f", "description": "F.", "parameters": SCHEMA, "strict": True},
        ),
        (Tool("p", kind="custom"), {"type": "custom", "name": "p"}),
        (Tool("tool_search", kind="tool_search"), {"type": "tool_search", "execution": "client"}),
        (Namespace("ns", ()), {"type": "namespace", "name": "ns", "description": "", "tools": []}),
    ],
)
def test_tools_of_a_chat_client(tool: Any, want: Json) -> None:
    assert body(tools=(tool,))["tools"] == [want]


def test_the_choice_and_the_flag_go_with_the_tools() -> None:
    named = ToolChoice(
        "required", (ToolRef("function", "f", raw={"type": "function", "function": {}}),), named=True
    )
    written = body(tools=(Tool("f"),), tool_choice=named, params={"parallel_tool_calls": False})
    assert written["tool_choice"] == {"type": "function", "name": "f"}
    assert written["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body(params={"parallel_tool_calls": False})
    assert "parallel_tool_calls" not in body(tools=(Tool("f"),), params={"parallel_tool_calls": True})


# --- parameters ----------------------------------------------------------------------------

PARAMS: list[tuple[Json, Json, list[tuple[str, str]]]] = [
    ({"max_tokens": 100}, {"max_output_tokens": 100}, []),
    ({"max_tokens": 1}, {"max_output_tokens": 16}, [("/max_completion_tokens", "tuning")]),
    ({"max_tokens": 0}, {"max_output_tokens": 0}, []),
    ({"max_tokens": 4.0}, {"max_output_tokens": 4.0}, []),
    ({"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}, []),
    (
        {"effort": "high", "verbosity": "low"},
        {"reasoning": {"effort": "high"}, "text": {"verbosity": "low"}},
        [],
    ),
    (
        {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}}},
        [],
    ),
    (
        {"logprobs": True, "top_logprobs": 2},
        {"include": ["message.output_text.logprobs"], "top_logprobs": 2},
        [],
    ),
    ({"logprobs": False}, {}, []),
    ({"store": True}, {"store": True}, []),
    (
        {"metadata": {"a": "b"}, "user": "u", "service_tier": "flex"},
        {"metadata": {"a": "b"}, "user": "u", "service_tier": "flex"},
        [],
    ),
    (
        {"prompt_cache_key": "k", "safety_identifier": "s"},
        {"prompt_cache_key": "k", "safety_identifier": "s"},
        [],
    ),
    ({"n": 1, "logit_bias": {}, "presence_penalty": 0}, {}, []),
    (
        {
            "stop": "x",
            "seed": 1,
            "logit_bias": {"1": 1},
            "presence_penalty": 1,
            "frequency_penalty": 1,
            "prediction": {},
        },
        {},
        [
            ("/stop", "tuning"),
            ("/seed", "tuning"),
            ("/logit_bias", "tuning"),
            ("/presence_penalty", "tuning"),
            ("/frequency_penalty", "tuning"),
            ("/prediction", "tuning"),
        ],
    ),
]


@pytest.mark.parametrize(("params", "want", "losses"), PARAMS)
def test_parameters_of_a_chat_client(params: Json, want: Json, losses: list[tuple[str, str]]) -> None:
    assert body(params=params) == {"model": "m", "input": [SAID], "store": False, **want}
    assert lost(params=params) == losses


@pytest.mark.parametrize(
    ("params", "param"),
    [({"n": 2}, "n"), ({"audio": {}}, "audio"), ({"modalities": ["audio"]}, "modalities")],
)
def test_features_without_a_place_are_refused(params: Json, param: str) -> None:
    with pytest.raises(ProxyError) as caught:
        body(params=params)
    assert (caught.value.http_status, caught.value.param) == (400, param)


def test_parameters_a_translation_does_not_carry() -> None:
    profile = Profile(request=RequestRules(drop_translated=("metadata", "text", "store", "reasoning.effort")))
    params = {"metadata": {"a": "b"}, "verbosity": "low", "store": False, "effort": "low", "user": "u"}
    written = body(params=params, profile=profile)
    assert written == {"model": "m", "input": [SAID], "user": "u", "store": False}
    assert lost(params=params, profile=profile) == [
        ("/metadata", "bookkeeping"),
        ("/verbosity", "tuning"),
        ("/reasoning_effort", "tuning"),
    ]


def test_keys_of_another_shape_are_left_out_and_reported() -> None:
    assert "top_k" not in body(extra={"top_k": 5})
    assert lost(extra={"top_k": 5}) == [("/top_k", "tuning")]


def test_logprobs_are_asked_for_beside_other_wishes() -> None:
    wish = "reasoning.encrypted_content"
    for params in ({"include": [wish], "logprobs": True}, {"logprobs": True, "include": [wish]}):
        written = body(shape="responses", params=params)
        assert written["include"] == [wish, "message.output_text.logprobs"]


def test_nothing_is_said_of_storing_for_a_responses_client() -> None:
    assert "store" not in body(shape="responses")


def test_a_stream_is_asked_for() -> None:
    assert body(stream=True)["stream"] is True


# --- losses told at the client's place -------------------------------------------------------


def test_a_loss_is_told_by_the_name_the_client_used() -> None:
    assert lost(params={"max_tokens": 5}, places={"max_tokens": "/max_tokens"}) == [("/max_tokens", "tuning")]
    assert lost(params={"max_tokens": 5}) == [("/max_completion_tokens", "tuning")]
    clamped = Profile(reasoning=ReasoningRules(efforts=("low",)))
    said = {"params": {"effort": "high"}, "places": {"effort": "/reasoning/effort"}}
    assert lost(profile=clamped, **said) == [("/reasoning/effort", "tuning")]


def test_what_the_profile_takes_away_is_told_where_the_client_sent_it() -> None:
    profile = Profile(
        request=RequestRules(drop=("user", "store", "unheard_of")),
        messages=MessageRules(system="many", trailing_assistant="drop"),
        tools=ToolRules(strict="drop"),
        reasoning=ReasoningRules(efforts=("low",)),
    )
    items = (
        Message("system", (Text("s"),), at="/messages/0"),
        Message("user", (Text("u"),), at="/messages/1"),
        Message("assistant", (Text("a"),), at="/messages/2"),
    )
    fields: dict[str, Any] = {
        "tools": (Tool("f", strict=True, at="/functions/0"),),
        "params": {"user": "u", "effort": "high"},
    }
    assert lost(*items, profile=profile, **fields) == [
        ("/user", "tuning"),
        ("/reasoning_effort", "tuning"),
        ("/functions/0", "tuning"),
        ("/messages/2", "content"),
    ]
    extra = {"unheard_of": 1}
    assert lost(shape="responses", profile=profile, extra=extra, **fields) == [
        ("/user", "tuning"),
        ("/unheard_of", "tuning"),
        ("/reasoning/effort", "tuning"),
        ("/functions/0/strict", "tuning"),
    ]


def test_what_we_wrote_ourselves_is_no_loss_of_the_clients() -> None:
    assert lost(tools=(Tool("ours", strict=True),), profile=Profile(tools=ToolRules(strict="drop"))) == []
    profile = Profile(request=RequestRules(clamp={"x": (0, 1)}, drop=("include",)))
    assert lost(profile=profile, params={"logprobs": True}) == [("/logprobs", "tuning")]
    assert lost(profile=Profile(request=RequestRules(drop=("instructions",)))) == []
    system = Message("system", (Text("s"),), at="/messages/0")
    assert lost(system, SAY, profile=Profile(request=RequestRules(drop=("instructions",)))) == []
