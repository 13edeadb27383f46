"""Oracles for a Responses event stream: the SDK's types and accumulator, Open Responses, the grammar.

`read` parses the bytes of a stream the hard way (every rule of the SSE framing we promise);
`check` runs all oracles over it and gives the events.
"""

from __future__ import annotations

import json
import typing
from typing import Any

import openresponses_types.types as ors
from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseOutputItem, Tool
from openai.types.responses.response_stream_event import ResponseStreamEvent
from pydantic import BaseModel

Json = dict[str, Any]

TERMINAL = {"response.completed", "response.incomplete", "response.failed"}


def read(data: bytes) -> list[Json]:
    """The events of a whole stream."""
    *frames, end, rest = data.decode().split("\n\n")
    assert (end, rest) == ("data: [DONE]", ""), "the stream ends with [DONE] and nothing after it"
    return events("\n\n".join(frames) + "\n\n") if frames else []


def events(data: str | bytes) -> list[Json]:
    """The events of a part of a stream."""
    text = data if isinstance(data, str) else data.decode()
    found = []
    for block in text.split("\n\n")[:-1]:
        event, body = block.split("\n")
        parsed = json.loads(body.removeprefix("data: "))
        assert event == f"event: {parsed['type']}"
        found.append(parsed)
    return found


def check(data: bytes, arguments: bool = True) -> list[Json]:
    """All oracles; AssertionError or the oracle's own error tells what is wrong.

    `arguments` False: what the model wrote as arguments need not be JSON.
    """
    found = read(data)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    kinds = [event["type"] for event in found]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert [kind for kind in kinds if kind in TERMINAL] == kinds[-1:]
    for event in found:
        of_sdk(event)
        of_open_responses(event)
    accumulate(found)
    Walk(arguments).run(found)
    return found


# --- the SDK -----------------------------------------------------------------------------


def _classes(union: Any) -> list[type[BaseModel]]:
    if isinstance(union, type):
        return [union] if issubclass(union, BaseModel) else []
    return [each for member in typing.get_args(union) for each in _classes(member)]


def _by_type(classes: list[type[BaseModel]]) -> dict[str, type[BaseModel]]:
    return {
        name: each
        for each in reversed(classes)
        if "type" in each.model_fields
        for name in typing.get_args(each.model_fields["type"].annotation)
    }


SDK_EVENTS = _by_type(_classes(ResponseStreamEvent))
SDK_ITEMS = _by_type(_classes(ResponseOutputItem))
SDK_TOOLS = _by_type(_classes(Tool))


def of_sdk(event: Json) -> None:
    """The event is exactly what the SDK's class for its type wants, without coercion."""
    _strict(SDK_EVENTS[event["type"]], event)
    for item in [event["item"]] if "item" in event else event.get("response", {}).get("output", []):
        _strict(SDK_ITEMS[item["type"]], item)
    for tool in event.get("response", {}).get("tools", []):
        _strict(SDK_TOOLS[tool["type"]], tool)


def _strict(model: type[BaseModel], value: Json) -> None:
    model.model_validate_json(json.dumps(value), strict=True)


def accumulate(found: list[Json]) -> Any:
    """The SDK's accumulator takes the stream and ends with the response of its last event."""
    state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in found:
        state.handle_event(SDK_EVENTS[event["type"]].model_validate(event))
    if found[-1]["type"] == "response.completed":
        final = state._completed_response
        assert [item.type for item in final.output] == [
            item["type"] for item in found[-1]["response"]["output"]
        ]
    return state


# --- Open Responses ----------------------------------------------------------------------

ORS_EVENTS = {
    next(iter(each.model_fields["type"].annotation)).value: each
    for name, each in vars(ors).items()
    if name.endswith("StreamingEvent")
}
ORS_ITEMS = {
    "message": ors.Message,
    "function_call": ors.FunctionCall,
    "reasoning": ors.ReasoningBody,
}


def of_open_responses(event: Json) -> None:
    """Every event, item and response that Open Responses knows is valid there too."""
    model = ORS_EVENTS.get(event["type"])
    if model is None or event.get("annotation", {}).get("type") not in (None, "url_citation"):
        return
    event = _known(event)
    for item in [event["item"]] if "item" in event else event.get("response", {}).get("output", []):
        if item["type"] in ORS_ITEMS:
            _strict(ORS_ITEMS[item["type"]], item)
    if "response" in event:
        _response(event["response"])
    elif "item" not in event:
        _strict(model, event)


def _response(response: Json) -> None:
    hollow = {**response, "output": [], "tools": []}
    if hollow["text"]["format"]["type"] == "json_schema":
        # The generated model has only null for the schema's echo.
        hollow["text"] = {"format": {**hollow["text"]["format"], "schema": None}}
    _strict(ors.ResponseResource, hollow)
    for tool in response["tools"]:
        if tool["type"] == "function":
            _strict(ors.FunctionTool, tool)


def _known(value: Any) -> Any:
    """`value` without the kinds of citation that only OpenAI has."""
    if isinstance(value, list):
        return [_known(each) for each in value]
    if not isinstance(value, dict):
        return value
    known = {key: _known(each) for key, each in value.items()}
    if "annotations" in known:
        known["annotations"] = [note for note in known["annotations"] if note["type"] == "url_citation"]
    return known


# --- the grammar -------------------------------------------------------------------------


class Walk:
    """Items one after another, parts inside items, deltas that add up, one final output."""

    def __init__(self, arguments: bool = True) -> None:
        self.arguments = arguments
        self.done: list[Json] = []
        self.open: Json | None = None
        self.parts: dict[tuple[str, int], Json] = {}
        self.texts: dict[tuple[str, int], str] = {}
        self.finals: dict[tuple[str, int], str] = {}
        self.ids: set[str] = set()

    def run(self, found: list[Json]) -> None:
        snapshots = [event["response"] for event in found if "response" in event]
        for key in ("id", "created_at", "model", "object"):
            assert len({snapshot[key] for snapshot in snapshots}) == 1
        for event in found:
            getattr(self, "_" + event["type"].removeprefix("response.").replace(".", "_"), self._inside)(
                event
            )
        self._end(found[-1]["response"])

    def _created(self, event: Json) -> None:
        assert event["response"]["output"] == []
        assert event["response"]["status"] == "in_progress"

    _in_progress = _created

    def _output_item_added(self, event: Json) -> None:
        item = event["item"]
        assert self.open is None, "an item is added while another is open"
        assert event["output_index"] == len(self.done)
        assert item["id"] not in self.ids
        assert item.get("status") in ("in_progress", None)
        for key in ("content", "summary", "arguments", "input"):
            assert not item.get(key), f"{key} is there before its events"
        self.ids.add(item["id"])
        self.open, self.parts, self.texts, self.finals = item, {}, {}, {}

    def _inside(self, event: Json) -> None:
        if event["type"] in TERMINAL:
            return
        assert self.open is not None
        assert (event["item_id"], event["output_index"]) == (self.open["id"], len(self.done))
        stem, _, leaf = event["type"].rpartition(".")
        family = "summary_index" if "summary_index" in event else "content_index"
        key = (family, event.get(family, -1))
        if stem.endswith("_part"):
            self._edge(event, leaf, key)
        elif leaf == "delta":
            assert event["delta"], "an empty delta"
            assert key not in self.finals
            assert key[1] == -1 or self.parts[key]["state"] == "open"
            self.texts[key] = self.texts.get(key, "") + event["delta"]
        elif stem.endswith("annotation"):
            part = self.parts[key]
            assert part["state"] == "open"
            assert event["annotation_index"] == len(part["annotations"])
            part["annotations"].append(event["annotation"])
        elif leaf == "done":
            assert key not in self.finals
            self.finals[key] = next(
                event[name] for name in ("text", "refusal", "arguments", "input") if name in event
            )
            assert self.finals[key] == self.texts.get(key, ""), "deltas do not add up"

    def _edge(self, event: Json, leaf: str, key: tuple[str, int]) -> None:
        part = event["part"]
        if leaf == "added":
            assert key[1] == sum(family == key[0] for family, _ in self.parts)
            assert all(each["state"] == "done" for each in self.parts.values())
            assert not part.get("text", part.get("refusal"))
            self.parts[key] = {"state": "open", "annotations": [], "part": part}
        else:
            assert self.parts[key]["state"] == "open"
            assert part.get("text", part.get("refusal")) == self.finals[key]
            assert part.get("annotations", []) == self.parts[key]["annotations"]
            self.parts[key] = {"state": "done", "annotations": [], "part": part}

    def _output_item_done(self, event: Json) -> None:
        item = event["item"]
        assert self.open is not None
        for key in ("id", "type", "name", "call_id", "role", "namespace"):
            assert item.get(key) == self.open.get(key)
        assert all(part["state"] == "done" for part in self.parts.values())
        assert set(self.texts) <= set(self.finals)
        for family, key in (("content_index", "content"), ("summary_index", "summary")):
            known = [part["part"] for place, part in self.parts.items() if place[0] == family]
            assert list(item.get(key) or []) == known
        written = {"function_call": "arguments", "custom_tool_call": "input"}.get(item["type"])
        if written is not None:
            assert list(self.finals.values()) == [item[written]]
            if self.arguments and written == "arguments" and item["status"] == "completed":
                json.loads(item["arguments"])
        self.done.append(item)
        self.open = None

    def _end(self, response: Json) -> None:
        assert response["output"] == self.done
        assert self.open is None or response["status"] == "failed"
        cut = [place for place, item in enumerate(self.done) if item.get("status") == "incomplete"]
        assert cut in ([], [len(self.done) - 1])
        assert not cut or response["status"] != "completed"
        assert (response["status"] == "incomplete") == bool(response["incomplete_details"])
        assert (response["status"] == "failed") == bool(response["error"])
        assert (response["status"] == "completed") == (response["completed_at"] is not None)
