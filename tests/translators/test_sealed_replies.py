"""What a Responses backend sealed: where it tells that, and how it comes to either client and back.

Also whether a stream's last event holds what the same reply says in one body.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.translators.chat_edits import profile
from tests.translators.test_capsules import SEALS, USER, context
from tests.translators.test_capsules import _ids as ids
from translators.chat import ChatClient
from translators.dialect import ClientDialect
from translators.ir import Json, Shape
from translators.responses import ResponsesBackend, ResponsesClient
from translators.translate import Translation, translate_request

CLIENTS: dict[Shape, tuple[ClientDialect, Json]] = {
    "chat": (ChatClient(), {"model": "m", "messages": [{"role": "user", "content": "go"}]}),
    "responses": (ResponsesClient(), {"model": "m", "input": [USER]}),
}
SUMMARY = [{"type": "summary_text", "text": "why"}]
BARE: Json = {"id": "rs_1", "type": "reasoning", "summary": SUMMARY}
SAID: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "so", "annotations": []}],
}
CALLED: Json = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "c1",
    "name": "f",
    "arguments": "{}",
    "status": "completed",
}


def sealed(text: str | None) -> Json:
    return BARE if text is None else {**BARE, "encrypted_content": text}


def way(shape: Shape) -> Translation:
    client, body = CLIENTS[shape]
    call = client.decode_request(body, ids())
    return translate_request(call, client, ResponsesBackend(), profile(), SEALS)


def events(done: str | None, end: str | None, answer: Json, ended: bool = True) -> list[Json]:
    """A stream whose reasoning is sealed with `done` in its own last event, and with `end` in the reply's."""
    where = {"output_index": 0, "item_id": "rs_1", "summary_index": 0}
    told: list[Json] = [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**sealed("EARLY"), "summary": []}},
        {"type": "response.reasoning_summary_text.delta", **where, "delta": "why"},
    ]
    if ended:
        told.append({"type": "response.output_item.done", "output_index": 0, "item": sealed(done)})
        told += [{"type": "response.output_item.done", "output_index": 1, "item": answer}]
    output = [sealed(end), answer]
    return [*told, {"type": "response.completed", "response": {"status": "completed", "output": output}}]


def streamed(shape: Shape, told: list[Json]) -> list[Json]:
    """The frames that the client gets, the backend's fed byte by byte."""
    machine, out = way(shape).stream(context(stream=True)), b""
    for event in told:
        for byte in b"data: " + orjson.dumps(event) + b"\n\n":
            out += machine.feed(bytes([byte]))
    out += machine.close()
    assert machine.violations == {}
    return [orjson.loads(line[6:]) for line in out.split(b"\n") if line.startswith(b"data: {")]


def plain(shape: Shape, end: str | None, answer: Json) -> Json:
    body = {"id": "resp_1", "status": "completed", "output": [sealed(end), answer]}
    return way(shape).reply(body, context())[0]


SEALINGS = {
    "in its item": ("DONE", "DONE", True, "DONE"),
    "in its item alone": ("DONE", None, True, "DONE"),
    "in the last event alone": (None, "LATE", True, "LATE"),
    "another in the last event": ("DONE", "LATE", True, "DONE"),
    "never": (None, None, True, None),
    "its item never ended": (None, "LATE", False, "LATE"),
}


@pytest.mark.parametrize("answer", [SAID, CALLED], ids=["text", "call"])
@pytest.mark.parametrize("name", SEALINGS)
def test_a_responses_client(name: str, answer: Json) -> None:
    done, end, ended, kept = SEALINGS[name]
    frames = streamed("responses", events(done, end, answer, ended))
    output = frames[-1]["response"]["output"]
    assert output[0] == {**BARE, "status": "completed", **({"encrypted_content": kept} if kept else {})}
    assert not any("EARLY" in orjson.dumps(frame).decode() for frame in frames)
    assert output == plain_output(kept, answer)
    if kept != "LATE":
        done_items = [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"]
        assert done_items == output


def plain_output(end: str | None, answer: Json) -> list[Json]:
    """Of the same content in one body, but for ids that are made anew."""
    output: list[Json] = plain("responses", end, answer)["output"]
    return output


@pytest.mark.parametrize("answer", [SAID, CALLED], ids=["text", "call"])
@pytest.mark.parametrize("name", SEALINGS)
def test_a_chat_client(name: str, answer: Json) -> None:
    done, end, ended, kept = SEALINGS[name]
    frames = streamed("chat", events(done, end, answer, ended))
    details = [
        entry
        for frame in frames
        for choice in frame["choices"]
        for entry in choice["delta"].get("reasoning_details", ())
    ]
    assert [(entry["id"], entry["data"]) for entry in details] == ([("rs_1", kept)] if kept else [])
    message = plain("chat", kept, answer)["choices"][0]["message"]
    assert message.get("reasoning_details", []) == details
    assert message["reasoning_content"] == "why"


def test_several_seals_come_late() -> None:
    second = {**BARE, "id": "rs_2"}
    told: list[Json] = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in enumerate((BARE, second, SAID))
    ]
    output = [{**BARE, "encrypted_content": "A"}, {**second, "encrypted_content": "B"}, SAID]
    end = {"type": "response.completed", "response": {"status": "completed", "output": output}}
    items = streamed("responses", [*told, end])[-1]["response"]["output"]
    assert [item.get("encrypted_content") for item in items] == ["A", "B", None]


def test_a_seal_that_comes_late_for_the_last_item() -> None:
    done = {"type": "response.output_item.done", "output_index": 0, "item": BARE}
    output = [{**BARE, "encrypted_content": "A"}]
    end = {"type": "response.completed", "response": {"status": "completed", "output": output}}
    frames = streamed("responses", [done, end])
    items = [frame["item"] for frame in frames if frame["type"] == "response.output_item.done"]
    assert items == frames[-1]["response"]["output"] == [{**output[0], "status": "completed"}]


def test_a_seal_of_an_item_without_an_id_is_bound_to_nothing() -> None:
    nameless = {key: value for key, value in BARE.items() if key != "id"}
    told: list[Json] = [
        {"type": "response.output_item.done", "output_index": 0, "item": nameless},
        {
            "type": "response.completed",
            "response": {"status": "completed", "output": [{**nameless, "encrypted_content": "A"}]},
        },
    ]
    for shape in CLIENTS:
        assert '"A"' not in repr(streamed(shape, told))


# --- and back --------------------------------------------------------------------------


def returned(messages: list[Json]) -> tuple[list[Json], list[Any]]:
    client = ChatClient()
    asked = {"role": "user", "content": "go"}
    call = client.decode_request({"model": "m", "messages": [asked, *messages]}, ids())
    rules = profile(reasoning={"scope": "all"})
    encoded = translate_request(call, client, ResponsesBackend(), rules, SEALS).encoded
    return encoded.body["input"], encoded.losses


def test_a_chat_client_gives_it_back() -> None:
    held = plain("chat", "E", CALLED)["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": "c1", "content": "r"}
    items, losses = returned([held, result])
    assert [item["type"] for item in items] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    assert items[1] == {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
    assert "id" not in items[2]
    assert losses == []


def test_words_without_a_seal_stay_a_loss() -> None:
    sealed_one = plain("chat", "E", SAID)["choices"][0]["message"]
    unsealed = {"role": "assistant", "content": "so", "reasoning_content": "hm"}
    user = {"role": "user", "content": "on"}
    items, losses = returned([sealed_one, user, unsealed, user])
    assert [item["type"] for item in items] == ["message", "reasoning", *["message"] * 4]
    assert [loss.pointer for loss in losses] == ["/messages/3/reasoning_content"]
