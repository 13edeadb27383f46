"""Requests for `/api/chat`, from either shape: what Ollama's words cannot say, and where it was said."""

from __future__ import annotations

from typing import Any

import pytest

from providers.profiles import resolve
from translators.chat import ChatClient
from translators.dialect import Encoded
from translators.errors import ProxyError
from translators.ir import Json
from translators.ollama import OllamaBackend
from translators.ollama.messages import add_system
from translators.ollama.schema import fit_schema
from translators.profile import Profile
from translators.responses import ResponsesClient
from translators.translate import translate_request

BACKEND = OllamaBackend()
SCHEMA: Json = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}
PIXEL = "iVBORw0KGgo="


def profile(**overrides: Any) -> Profile:
    return resolve(kind="ollama", host="", model="m", surface="ollama", overrides=overrides)


def new_id(prefix: str) -> str:
    return f"{prefix}1"


def encode(client: str, body: Json, rules: Profile | None = None) -> Encoded:
    speaks: Any = ChatClient() if client == "chat" else ResponsesClient()
    call = speaks.decode_request({"model": "m", **body}, new_id)
    return translate_request(call, speaks, BACKEND, rules or profile()).encoded


def said(text: Any = "hi") -> Json:
    return {"messages": [{"role": "user", "content": text}]}


# --- schemas ---------------------------------------------------------------------------

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "v": {"const": 1}}}
SCHEMAS: list[tuple[str, Any, Json, list[str]]] = [
    ("none", None, {"type": "object", "properties": {}}, []),
    ("no properties", {"type": "object"}, {"type": "object", "properties": {}}, []),
    (
        "constraints",
        {
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 1, "title": "A"}},
            "additionalProperties": False,
        },
        {"type": "object", "properties": {"a": {"type": "integer"}}},
        ["additionalProperties", "minimum"],
    ),
    (
        "const, oneOf, nullable, allOf of one",
        {
            "type": "object",
            "properties": {
                "a": {"const": "x"},
                "b": {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]},
                "c": {"type": "string", "nullable": True},
                "d": {"allOf": [{"type": "string", "enum": ["p"]}], "description": "d"},
                "e": {"type": "string", "nullable": False},
            },
        },
        {
            "type": "object",
            "properties": {
                "a": {"enum": ["x"]},
                "b": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "c": {"type": ["string", "null"]},
                "d": {"type": "string", "enum": ["p"], "description": "d"},
                "e": {"type": "string"},
            },
        },
        ["minimum"],
    ),
    (
        "references, one of them to itself",
        {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": NODE}},
        {
            "type": "object",
            "properties": {"n": {"type": "object", "properties": {"next": {}, "v": {"enum": [1]}}}},
        },
        [],
    ),
    (
        "a union at the top",
        {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        ["anyOf"],
    ),
    (
        "several allOf",
        {"type": "object", "properties": {"a": {"allOf": [{"type": "string"}, {"minLength": 1}]}}},
        {"type": "object", "properties": {"a": {}}},
        ["allOf"],
    ),
    (
        "what is no schema",
        {"type": "object", "properties": {"a": True, "b": {"type": {"odd": 1}}, "c": {"properties": 3}}},
        {"type": "object", "properties": {"a": {}, "b": {}, "c": {"properties": {}}}},
        ["type"],
    ),
    (
        "items as they are",
        {"type": "object", "properties": {"a": {"type": "array", "items": {"minimum": 1}}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"minimum": 1}}}},
        [],
    ),
]


@pytest.mark.parametrize(("name", "given", "wanted", "lost"), SCHEMAS, ids=[case[0] for case in SCHEMAS])
def test_a_schema_in_ollamas_words(name: str, given: Any, wanted: Json, lost: list[str]) -> None:
    fitted, told = fit_schema(given)
    assert (fitted, told) == (wanted, lost)
    assert fit_schema(fitted) == (wanted, [])


def test_a_schema_that_is_too_deep() -> None:
    deep: Json = {}
    for _ in range(3000):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(ProxyError, match="nested too deeply"):
        fit_schema(deep)


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_what_a_schema_loses_is_told_at_its_place(client: str) -> None:
    tools: list[Json] = [{"type": "function", "name": "f", "parameters": SCHEMA}]
    body: Json = {"input": "hi", "tools": tools}
    if client == "chat":
        body = {**said(), "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]}
    encoded = encode(client, body)
    inside = "function/parameters" if client == "chat" else "parameters"
    assert [(loss.pointer, loss.kind) for loss in encoded.losses] == [(f"/tools/0/{inside}", "tuning")]
    assert "pattern" in encoded.losses[0].reason


def test_a_reference_that_leads_nowhere_is_told_at_its_place() -> None:
    parameters = {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    with pytest.raises(ProxyError, match="leads nowhere") as caught:
        encode("chat", {**said(), "tools": tools})
    assert caught.value.param == "tools[0].function.parameters"


# --- the rest of the body --------------------------------------------------------------


def test_a_custom_tool_of_codex_is_a_function() -> None:
    tools = [{"type": "custom", "name": "apply_patch"}, {"type": "web_search"}]
    history = [
        {"role": "user", "content": "x"},
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
    ]
    encoded = encode("responses", {"input": history, "tools": tools})
    (tool,) = encoded.body["tools"]
    assert tool["function"]["parameters"]["properties"]
    call, result = encoded.body["messages"][1:]
    assert list(call["tool_calls"][0]["function"]["arguments"].values()) == ["*** Begin"]
    assert (result["tool_name"], result["content"]) == ("apply_patch", "done")
    assert [loss.pointer for loss in encoded.losses] == ["/tools/1"]


def test_tools_that_only_a_configuration_lets_through_are_not_sent() -> None:
    rules = profile(tools={"types": ["function", "custom"], "custom": "keep"})
    history = [
        {"role": "user", "content": "x"},
        {"type": "custom_tool_call", "call_id": "c1", "name": "p", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"},
    ]
    body = encode("responses", {"input": history, "tools": [{"type": "custom", "name": "p"}]}, rules).body
    assert "tools" not in body
    assert "tool_calls" not in body["messages"][1]
    assert "tool_name" not in body["messages"][2]


def test_a_result_keeps_the_name_that_a_client_gave() -> None:
    messages = [
        {"role": "user", "content": "x"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}],
        },
        {"role": "tool", "tool_call_id": "c", "name": "f", "content": "r"},
    ]
    body = encode("chat", {"messages": messages}).body
    assert body["messages"][1]["tool_calls"][0]["function"]["arguments"] == {}
    assert body["messages"][2] == {"role": "tool", "content": "r", "tool_call_id": "c", "tool_name": "f"}


PICTURES: list[tuple[str, str, Any]] = [
    ("inline", f"DATA:image/png;base64,{PIXEL}", PIXEL),
    ("inline", PIXEL, PIXEL),
    ("inline", "https://e.com/a.png", "https://e.com/a.png"),  # fetched before it is sent
    ("keep", "https://e.com/a.png", "base64 only"),
    ("reject", "https://e.com/a.png", "no image URLs"),
    ("inline", "data:image/svg+xml,<svg/>", "base64 only"),
    ("inline", "data:text/plain,a;base64,b", "base64 only"),
]


@pytest.mark.parametrize(("rule", "url", "wanted"), PICTURES)
def test_a_picture(rule: str, url: str, wanted: str) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": url}}]
    body = said([*parts, {"type": "text", "text": "b"}])
    rules = profile(messages={"remote_images": rule})
    if " " in wanted:
        with pytest.raises(ProxyError, match=wanted):
            encode("chat", body, rules)
    else:
        (message,) = encode("chat", body, rules).body["messages"]
        assert message == {"role": "user", "content": "ab", "images": [wanted]}


def test_a_document_has_no_form() -> None:
    rules = profile(messages={"media": {"file": "keep"}})
    with pytest.raises(ProxyError, match="takes no `file`"):
        encode("chat", said([{"type": "file", "file": {"file_data": "data:a;base64,aa"}}]), rules)


def test_sound_and_thoughts_have_places_of_their_own() -> None:
    rules = profile(messages={"media": {"audio": "keep"}})
    messages = [
        {
            "role": "user",
            "content": [{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}],
        },
        {"role": "assistant", "content": "a", "reasoning_content": "hm"},
        {"role": "user", "content": "x"},
    ]
    rules_all = profile(messages={"media": {"audio": "keep"}}, reasoning={"scope": "all"})
    first, second, _ = encode("chat", {"messages": messages}, rules_all).body["messages"]
    assert first == {"role": "user", "content": "", "images": ["aGk="]}
    assert second == {"role": "assistant", "content": "a", "thinking": "hm"}
    assert "thinking" not in encode("chat", {"messages": messages}, rules).body["messages"][1]


FORMATS: list[tuple[Json, Any]] = [
    ({"type": "text"}, None),
    ({"type": "json_object"}, "json"),
    ({"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}}, SCHEMA),
    ({"type": "json_schema", "json_schema": {"name": "r", "schema": {}}}, "json"),
]


@pytest.mark.parametrize(("given", "wanted"), FORMATS)
def test_a_format_is_a_word_or_the_bare_schema(given: Json, wanted: Any) -> None:
    assert encode("chat", {**said(), "response_format": given}).body.get("format") == wanted


def test_arguments_that_are_no_object_are_told() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}{"a":2}'}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    encoded = encode("chat", {"messages": messages})
    assert encoded.body["messages"][1]["tool_calls"][0]["function"]["arguments"] == {}
    assert [(loss.pointer, loss.kind) for loss in encoded.losses] == [("/messages/1/tool_calls/0", "content")]


@pytest.mark.parametrize(("given", "wanted"), [("END", ["END"]), (["a", "b"], ["a", "b"])])
def test_stops_are_a_list(given: Any, wanted: list[str]) -> None:
    assert encode("chat", {**said(), "stop": given}).body["options"]["stop"] == wanted


THINKS: list[tuple[Json, Json, Any]] = [
    ({}, {}, None),
    ({}, {"reasoning_effort": "none"}, False),
    ({}, {"reasoning_effort": "max"}, "max"),
    ({}, {"reasoning_effort": "xhigh"}, "max"),
    ({"efforts": ["low", "medium", "high"]}, {"reasoning_effort": "ultra"}, "high"),
    ({}, {"reasoning_effort": "low", "think": "medium"}, "medium"),
    ({}, {"think": True}, True),
    ({"ask": "enable_thinking"}, {"reasoning_effort": "low"}, True),
    ({"ask": "enable_thinking"}, {"reasoning_effort": "none"}, False),
    ({"ask": "none"}, {"reasoning_effort": "low"}, None),
    ({"default_effort": "low"}, {}, "low"),
]


@pytest.mark.parametrize(("rules", "asked", "think"), THINKS)
def test_thinking(rules: Json, asked: Json, think: Any) -> None:
    assert encode("chat", {**said(), **asked}, profile(reasoning=rules)).body.get("think") == think


def test_options_of_a_client_are_an_object() -> None:
    with pytest.raises(ProxyError, match="must be an object") as caught:
        encode("chat", {**said(), "options": 3})
    assert caught.value.param == "options"


def test_a_responses_client_may_use_ollamas_words() -> None:
    encoded = encode("responses", {"input": "hi", "top_k": 3, "keep_alive": 0, "odd": 1, "top_logprobs": 2})
    assert encoded.body["options"] == {"num_ctx": 32768, "top_k": 3}
    assert (encoded.body["keep_alive"], encoded.body["logprobs"], encoded.body["top_logprobs"]) == (
        0,
        True,
        2,
    )
    assert [loss.pointer for loss in encoded.losses] == ["/odd"]


@pytest.mark.parametrize(("client", "said_it"), [("chat", said()), ("responses", {"input": "hi"})])
def test_what_the_configuration_insists_on_stays(client: str, said_it: Json) -> None:
    rules = profile(request={"drop": ["keep_alive"], "force": {"num_ctx": 512}})
    encoded = encode(client, {**said_it, "keep_alive": 0, "num_ctx": 9, "top_k": 3}, rules)
    assert encoded.body["options"] == {"num_ctx": 512, "top_k": 3}
    assert "keep_alive" not in encoded.body
    assert "/keep_alive" in [loss.pointer for loss in encoded.losses]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stream_is_always_said(stream: bool) -> None:
    assert encode("chat", {**said(), "stream": stream}).body["stream"] is stream


CALLED = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


def test_one_that_must_call_is_told_so() -> None:
    body = {**said(), "tools": [CALLED], "tool_choice": "required"}
    encoded = encode("chat", body)
    assert [message["role"] for message in encoded.body["messages"]] == ["system", "user"]
    assert "tool `f`" in encoded.body["messages"][0]["content"]
    assert [(loss.pointer, loss.kind) for loss in encoded.losses] == [("/tool_choice", "feature")]
    body["messages"] = [{"role": "system", "content": "s"}, *body["messages"]]
    assert encode("chat", body).body["messages"][0]["content"].startswith("s\n\nYou must")


def test_words_for_nobody_yet() -> None:
    messages: list[Json] = []
    add_system(messages, "a")
    assert messages == [{"role": "system", "content": "a"}]
    add_system(messages[:0], "b")


def test_the_shape_is_no_clients() -> None:
    assert not BACKEND.passes({}, Profile())
    body: Json = {"model": "m"}
    assert BACKEND.edit_request(body, Profile()).body is body
