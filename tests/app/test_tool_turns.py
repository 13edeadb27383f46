"""Calls, results and their arguments over HTTP, both ways: what the backend gets and what the client gets."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.app.conftest import Serve, Served
from tests.app.test_pipeline import provider
from tests.backends.loopback import Reply
from tests.backends.replies import (
    Framing,
    ToolUse,
    chat_completion,
    chat_stream,
    json_reply,
    response_items,
    response_object,
    response_stream,
    sse_reply,
)
from tests.backends.scripted import ScriptedBackend

HI = {"role": "user", "content": "hi"}
PICTURE = "data:image/png;base64,iVBORw0KGgo="


def call(call_id: str, arguments: Any = "{}", name: str = "f") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def result(call_id: str, output: Any = "r") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def written(call_id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def sent(serve: Serve, scripted: ScriptedBackend, items: list[Any], **more: Any) -> list[Any]:
    """The messages a Chat backend gets for these items."""
    served = serve(providers=[provider(scripted, **more)])
    with served.client() as client:
        assert client.post("/v1/responses", json={"model": "p/m", "input": items}).status_code == 200
    messages = scripted.bodies()[-1]["messages"]
    assert isinstance(messages, list)
    return messages


# --- requests --------------------------------------------------------------------------

TOOL = {"role": "tool", "tool_call_id": "c1", "content": "r"}
REQUESTS: dict[str, tuple[list[Any], list[Any]]] = {
    "an object is written as JSON": (
        [HI, call("c1", {"a": 1}), result("c1")],
        [HI, {"role": "assistant", "content": None, "tool_calls": [written("c1", '{"a":1}')]}, TOOL],
    ),
    "no arguments are an empty object": (
        [HI, call("c1", ""), result("c1")],
        [HI, {"role": "assistant", "content": None, "tool_calls": [written("c1")]}, TOOL],
    ),
    "a call that has only its item's id": (
        [
            HI,
            {"type": "function_call", "id": "fc_1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "id": "fc_1", "output": "r"},
        ],
        [
            HI,
            {"role": "assistant", "content": None, "tool_calls": [written("fc_1")]},
            {**TOOL, "tool_call_id": "fc_1"},
        ],
    ),
    "parallel calls are one message": (
        [HI, call("c1"), call("c2"), result("c1"), result("c2")],
        [
            HI,
            {"role": "assistant", "content": None, "tool_calls": [written("c1"), written("c2")]},
            TOOL,
            {**TOOL, "tool_call_id": "c2"},
        ],
    ),
    "the answer's text before them is in it": (
        [HI, {"role": "assistant", "content": "well"}, call("c1"), call("c2"), result("c1"), result("c2")],
        [
            HI,
            {"role": "assistant", "content": "well", "tool_calls": [written("c1"), written("c2")]},
            TOOL,
            {**TOOL, "tool_call_id": "c2"},
        ],
    ),
    "parts of a result are its text": (
        [HI, call("c1"), result("c1", [{"type": "input_text", "text": "r"}])],
        [HI, {"role": "assistant", "content": None, "tool_calls": [written("c1")]}, TOOL],
    ),
    "what is no message makes none": (
        [
            HI,
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "t", "arguments": "{}"},
            {"type": "computer_call", "call_id": "cc", "action": {"type": "wait"}},
        ],
        [HI],
    ),
    "a custom call is a function with one text": (
        [
            HI,
            {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": "go"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "r"},
        ],
        [
            HI,
            {"role": "assistant", "content": None, "tool_calls": [written("c1", '{"input":"go"}')]},
            TOOL,
        ],
    ),
}


@pytest.mark.parametrize(("items", "wanted"), REQUESTS.values(), ids=REQUESTS)
def test_items_become_messages(
    serve: Serve, scripted: ScriptedBackend, items: list[Any], wanted: list[Any]
) -> None:
    assert sent(serve, scripted, items) == wanted


def test_a_picture_in_a_result_follows_the_results(serve: Serve, scripted: ScriptedBackend) -> None:
    parts = [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": PICTURE}]
    *_, first, second, shown = sent(
        serve, scripted, [HI, call("c1"), call("c2"), result("c1", parts), result("c2")]
    )
    assert first["content"].startswith("seen")
    assert second["content"] == "r"
    assert shown["role"] == "user"
    assert shown["content"][-1]["image_url"]["url"] == PICTURE


PREFILL = {"messages": {"trailing_assistant": "drop"}}


def test_text_after_the_results_goes_before_the_calls(serve: Serve, scripted: ScriptedBackend) -> None:
    history = [HI, {"role": "assistant", "content": None, "tool_calls": [written("c1")]}, TOOL]
    body = {"model": "p/m", "messages": [*history, {"role": "assistant", "content": "so"}]}
    served = serve(providers=[provider(scripted, overrides=PREFILL)])
    with served.client() as client:
        reply = client.post("/v1/chat/completions", json=body)
        assert "x-dragoman-dropped" not in reply.headers
        alone = {"model": "p/m", "messages": [HI, {"role": "assistant", "content": "so"}]}
        assert client.post("/v1/chat/completions", json=alone).headers["x-dragoman-dropped"] == "/messages/1"
    folded, cut = scripted.bodies()
    assert folded["messages"] == [
        HI,
        {"role": "assistant", "content": "so", "tool_calls": [written("c1")]},
        TOOL,
    ]
    assert cut["messages"] == [HI]


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("route", ["chat/completions", "responses"])
def test_limits_and_choices_of_calls_are_the_clients(
    serve: Serve, scripted: ScriptedBackend, route: str, wire: str
) -> None:
    """Nothing is filled in where the client says nothing, and what it says arrives."""
    tool: dict[str, Any] = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    chat = route == "chat/completions"
    tools = [{"type": "function", "function": tool}] if chat else [{"type": "function", **tool}]
    said: dict[str, Any] = {"messages": [HI]} if chat else {"input": [HI]}
    served = serve(providers=[provider(scripted, wire=wire)])
    with served.client() as client:
        for more in ({}, {"tools": tools}, {"tools": tools, "parallel_tool_calls": False}):
            assert client.post(f"/v1/{route}", json={"model": "p/m", **said, **more}).status_code == 200
    bare, plain, one = scripted.bodies()
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & bare.keys()
    assert plain.get("parallel_tool_calls", True) is True
    assert plain.get("tool_choice", "auto") == "auto"
    assert one["parallel_tool_calls"] is False


# --- replies ---------------------------------------------------------------------------

BAD = {"an array": "[1, 2]", "null": "null", "no JSON": '{"a": ', "a word": "go", "a text": '"x"'}


def reply_of(arguments: str, stream: bool, wire: str = "chat") -> Reply:
    uses = [ToolUse("c1", "f", arguments)]
    if wire == "chat":
        return sse_reply(chat_stream("", uses)) if stream else json_reply(chat_completion(None, uses))
    if stream:
        return sse_reply(response_stream("", uses), Framing(event_lines=True))
    return json_reply(response_object(response_items("", uses)))


def heard(served: Served, route: str, stream: bool) -> str:
    """The arguments that the client is told, of the one call."""
    tool: dict[str, Any] = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    if route == "chat/completions":
        body: dict[str, Any] = {"messages": [HI], "tools": [{"type": "function", "function": tool}]}
    else:
        body = {"input": [HI], "tools": [{"type": "function", **tool}]}
    with served.client() as client:
        reply = client.post(f"/v1/{route}", json={"model": "p/m", "stream": stream, **body})
    assert reply.status_code == 200
    if not stream:
        return arguments_in(reply.json())
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: {")]
    events = [orjson.loads(line) for line in lines]
    if route == "responses":
        (done,) = [each for each in events if each["type"] == "response.function_call_arguments.done"]
        deltas = [each for each in events if each["type"] == "response.function_call_arguments.delta"]
        assert "".join(each["delta"] for each in deltas) == done["arguments"]
        assert arguments_in(events[-1]["response"]) == done["arguments"]
        return str(done["arguments"])
    found = [part for each in events for choice in each["choices"] for part in calls_in(choice["delta"])]
    return "".join(part["function"].get("arguments") or "" for part in found)


def calls_in(message: Any) -> list[Any]:
    return message.get("tool_calls") or []


def arguments_in(body: Any) -> str:
    if "output" in body:
        (item,) = [each for each in body["output"] if each["type"] == "function_call"]
        return str(item["arguments"])
    (found,) = calls_in(body["choices"][0]["message"])
    return str(found["function"]["arguments"])


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("route", ["chat/completions", "responses"])
@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD)
def test_bad_arguments_reach_the_client_as_they_are(
    serve: Serve, scripted: ScriptedBackend, arguments: str, wire: str, route: str, stream: bool
) -> None:
    scripted.play(reply_of(arguments, stream, wire))
    assert heard(serve(providers=[provider(scripted, wire=wire)]), route, stream) == arguments


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("route", "told"), [("chat/completions", ""), ("responses", "{}")])
def test_no_arguments_are_an_empty_object_where_a_call_is_written_anew(
    serve: Serve, scripted: ScriptedBackend, route: str, told: str, stream: bool
) -> None:
    """A client of the backend's own shape gets what the backend wrote."""
    scripted.play(reply_of("", stream))
    assert heard(serve(providers=[provider(scripted)]), route, stream) == told


# --- what is told of repairs -----------------------------------------------------------


def test_the_event_tells_of_a_responses_input(serve: Serve, scripted: ScriptedBackend) -> None:
    items = [
        HI,
        {**call("call_1"), "id": "fc_1"},
        {**call("call_2"), "id": "fc_2"},
        result("fc_1"),
        {"role": "user", "content": "and?"},
        result("fc_9"),
    ]
    served = serve(fresh=True, providers=[provider(scripted, wire="responses")])
    with served.client() as client:
        reply = client.post("/v1/responses", json={"model": "p/m", "input": items})
    assert reply.headers["x-dragoman-repairs"] == "3"
    (event,) = served.log("provider:tool_sequence_repaired")
    wanted = {
        "provider": "p",
        "target": "p/m",
        "repair_site": "chain_pairing",
        "repair_count": 3,
        "repairs": [
            {"tool_call_id": "fc_1", "tool_name": "f"},
            {"tool_call_id": "call_2", "tool_name": "f"},
            {"tool_call_id": "fc_9", "tool_name": ""},
        ],
        "dropped_count": 1,
        "dropped_item_id_outputs": ["fc_9"],
        "kept_count": 1,
        "kept_item_id_outputs": ["fc_1"],
        "synthesized_for": ["call_2"],
        "expected_call_ids": ["call_1", "call_2"],
    }
    assert wanted.items() <= event.items()
    assert len(event["repairs"]) == event["repair_count"]


def test_a_long_event_is_cut_and_says_how_much_there_was(serve: Serve, scripted: ScriptedBackend) -> None:
    items = [each for at in range(60) for each in (call(f"c{at}"), HI)]
    served = serve(fresh=True, providers=[provider(scripted)])
    with served.client() as client:
        reply = client.post("/v1/responses", json={"model": "p/m", "input": items})
    (event,) = served.log("provider:tool_sequence_repaired")
    assert (event["repair_count"], len(event["repairs"])) == (60, 50)
    assert event["synthetic_assistant_count"] == 60
    assert reply.headers["x-dragoman-repairs"] == "60"


def test_a_sound_history_is_told_of_nothing(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)])
    with served.client() as client:
        reply = client.post("/v1/responses", json={"model": "p/m", "input": [HI, call("c1"), result("c1")]})
    assert "x-dragoman-repairs" not in reply.headers
    assert served.log("provider:tool_sequence_repaired") == []
