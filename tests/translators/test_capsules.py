"""What a Chat backend wants back travels through a Responses client and returns word for word."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
import pytest

from tests.translators.chat_edits import profile
from translators.capsule import Seals, Unusable, is_capsule, merge_details, seal, unseal
from translators.chat import ChatBackend, ChatClient
from translators.dialect import ReplyContext
from translators.ir import Json
from translators.profile import Profile
from translators.responses import ResponsesBackend, ResponsesClient
from translators.translate import Translation, translate_request
from translators.turns import begins_turn

SEALS = Seals(lambda: b"k" * 32, "p/m")
OTHER = Seals(lambda: b"k" * 32, "p/other")
USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}

CLAUDE = {"reasoning": {"replay": "never", "signature": "content[].summary[].signature"}}
GEMINI = {"reasoning": {"replay": "never", "scope": "all", "signature": "tool_calls[].thoughtSignature"}}
DETAILS = {"reasoning": {"replay": "details", "replay_field": "reasoning_details", "scope": "all"}}

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
THOUGHT = {
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "I look.", "signature": "SIG=="}],
}
REDACTED = {"type": "redacted_thinking", "data": "ENC"}
THINKING = {"type": "thinking", "thinking": "I look.", "signature": "SIG=="}
ENTRIES = [
    {"type": "reasoning.text", "text": "I look.", "signature": "S", "format": "a-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "E", "id": "r1", "format": "a-v1", "index": 1},
]
GOOGLE = {"extra_content": {"google": {"thought_signature": "G"}}}

SHAPES: dict[str, tuple[Json, Json]] = {
    "claude summary": (CLAUDE, {"content": [THOUGHT, {"type": "text", "text": "hm"}], "tool_calls": [CALL]}),
    "claude thinking": (CLAUDE, {"content": [THINKING], "tool_calls": [CALL]}),
    "claude redacted": (CLAUDE, {"content": [THOUGHT, REDACTED], "tool_calls": [CALL]}),
    "gemini databricks": (GEMINI, {"content": None, "tool_calls": [{**CALL, "thoughtSignature": "G"}]}),
    "gemini google": (GEMINI, {"content": None, "tool_calls": [{**CALL, **GOOGLE}]}),
    "gemini parallel": (
        GEMINI,
        {"content": None, "tool_calls": [{**CALL, **GOOGLE}, {**CALL, "id": "c2"}]},
    ),
    "openrouter": (DETAILS, {"content": None, "reasoning_details": ENTRIES, "tool_calls": [CALL]}),
}


def translation(items: list[Json], rules: Json, seals: Seals | None = SEALS) -> Translation:
    client = ResponsesClient()
    call = client.decode_request({"model": "m", "input": items}, _ids())
    return translate_request(call, client, ChatBackend(), profile(**rules), seals)


def _ids() -> Any:
    numbers = itertools.count()
    return lambda prefix: f"{prefix}{next(numbers)}"


def context(stream: bool = False, seals: Seals | None = SEALS) -> ReplyContext:
    return ReplyContext(created=1, model="m", new_id=_ids(), stream=stream, seals=seals)


def answered(message: Json, rules: Json, seals: Seals = SEALS) -> list[Json]:
    """The output items of one whole reply."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    body, _ = translation([USER], rules).reply({"id": "x", "choices": [choice]}, context(seals=seals))
    output: list[Json] = body["output"]
    return output


def streamed(deltas: list[Json], rules: Json) -> list[Json]:
    """The same of a stream, fed byte by byte."""
    machine = translation([USER], rules).stream(context(stream=True))
    out = b""
    for delta in deltas:
        chunk = {"id": "x", "choices": [{"index": 0, "delta": delta}]}
        for byte in b"data: " + orjson.dumps(chunk) + b"\n\n":
            out += machine.feed(bytes([byte]))
    end = {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    out += machine.feed(b"data: " + orjson.dumps(end) + b"\n\ndata: [DONE]\n\n") + machine.close()
    last = next(line for line in reversed(out.split(b"\n")) if line.startswith(b"data: {"))
    output: list[Json] = orjson.loads(last[6:])["response"]["output"]
    return output


def second(output: list[Json], rules: Json, seals: Seals | None = SEALS) -> tuple[Json, list[Any]]:
    """The assistant's message as the backend gets it in the next turn, and what was lost."""
    calls = [item["call_id"] for item in output if item["type"] == "function_call"]
    results = [{"type": "function_call_output", "call_id": call, "output": "r"} for call in calls]
    encoded = translation([USER, *output, *results], rules, seals).encoded
    return encoded.body["messages"][1], encoded.losses


@pytest.mark.parametrize("name", SHAPES)
def test_it_returns_word_for_word(name: str) -> None:
    rules, message = SHAPES[name]
    sent, losses = second(answered(message, rules), rules)
    for key in ("reasoning_details", "tool_calls"):
        assert sent.get(key) == message.get(key)
    assert sent["content"] == message["content"]
    assert losses == []


@pytest.mark.parametrize("name", SHAPES)
def test_another_model_gets_none_of_it(name: str) -> None:
    rules, message = SHAPES[name]
    sent, losses = second(answered(message, rules), rules, OTHER)
    assert not any(secret in orjson.dumps(sent) for secret in (b"SIG", b"ENC", b'"G"', b'"E"', b"dgm1"))
    assert any("another model" in loss.reason for loss in losses)


def test_a_stream_in_pieces() -> None:
    def piece(text: str, signature: str = "") -> Json:
        entry = {"type": "summary_text", "text": text, "signature": signature}
        return {"content": [{"type": "reasoning", "summary": [entry]}]}

    call = {"tool_calls": [{"index": 0, **CALL}]}
    output = streamed([piece("I "), piece("look."), piece("", "SIG=="), call], CLAUDE)
    assert [item["type"] for item in output] == ["reasoning", "function_call"]
    assert output[0]["summary"] == [{"type": "summary_text", "text": "I look."}]
    sent, losses = second(output, CLAUDE)
    assert (sent["content"], losses) == ([THOUGHT], [])


def test_a_signature_that_comes_late() -> None:
    call = {"tool_calls": [{"index": 0, **CALL}]}
    late = {"tool_calls": [{"index": 0, **GOOGLE}]}
    output = streamed([call, late], GEMINI)
    assert [item["type"] for item in output] == ["function_call", "reasoning"]
    assert output[1]["summary"] == []
    sent, losses = second(output, GEMINI)
    assert (sent["tool_calls"], losses) == ([{**CALL, **GOOGLE}], [])


def test_details_in_pieces() -> None:
    pieces = [
        {"type": "reasoning.text", "text": "I ", "format": "a-v1", "index": 0},
        {"type": "reasoning.text", "text": "look.", "index": 0, "signature": "S"},
        ENTRIES[1],
    ]
    assert merge_details([*pieces, "odd"]) == ENTRIES
    deltas = [{"reasoning_details": [piece]} for piece in pieces]
    output = streamed([*deltas, {"tool_calls": [{"index": 0, **CALL}]}], DETAILS)
    sent, _ = second(output, DETAILS)
    assert sent["reasoning_details"] == ENTRIES


def test_an_unsigned_thought_of_claude_is_not_given_back() -> None:
    part = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I look."}]}
    output = answered({"content": [part], "tool_calls": [CALL]}, CLAUDE)
    assert "encrypted_content" not in output[0]
    sent, losses = second(output, CLAUDE)
    assert sent["content"] is None
    assert len(losses) == 1


def test_every_changed_byte_is_found() -> None:
    for native in ({"calls": {"c": {"s": "x"}}}, {"parts": [{"text": "a" * 2000}]}):
        text = seal(SEALS, native)
        assert unseal(SEALS, text) == native
        for place, letter in enumerate(text):
            for other in ("A" if letter != "A" else "B", "é", ""):
                with pytest.raises(Unusable):
                    unseal(SEALS, text[:place] + other + text[place + 1 :])


def test_only_its_own_key_and_target_open_it() -> None:
    text = seal(SEALS, {"calls": {}})
    for seals in (OTHER, Seals(lambda: b"x", "p/m")):
        with pytest.raises(Unusable):
            unseal(seals, text)
    assert is_capsule(text)
    assert not is_capsule(None)


def test_a_huge_one_is_not_unpacked() -> None:
    text = seal(SEALS, {"parts": [{"text": "a" * (17 * 2**20)}]})
    assert len(text) < 100_000
    with pytest.raises(Unusable, match="too large"):
        unseal(SEALS, text)


def test_a_capsule_sent_twice_is_given_back_once() -> None:
    rules, message = SHAPES["claude summary"]
    output = answered(message, rules)
    sent, _ = second([output[0], *output], rules)
    assert sent["content"] == message["content"]


@pytest.mark.parametrize("name", SHAPES)
def test_a_chat_client_keeps_it_too(name: str) -> None:
    rules, message = SHAPES[name]
    client, backend = ChatClient(), ChatBackend()
    asked = {"role": "user", "content": "go"}
    call = client.decode_request({"model": "m", "messages": [asked]}, _ids())
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "tool_calls"}
    first = translate_request(call, client, backend, profile(**rules), SEALS)
    body, _ = first.reply({"id": "x", "choices": [choice]}, context())
    held = body["choices"][0]["message"]
    results = [{"role": "tool", "tool_call_id": each["id"], "content": "r"} for each in held["tool_calls"]]
    again = client.decode_request({"model": "m", "messages": [asked, held, *results]}, _ids())
    sent = translate_request(again, client, backend, profile(**rules), SEALS).encoded.body["messages"][1]
    assert sent.get("reasoning_details") == message.get("reasoning_details")
    assert (sent["content"], sent["tool_calls"]) == (message["content"], message["tool_calls"])


THREE: list[Json] = [
    {"type": "message", "role": "user", "content": "a"},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "old"}],
        "encrypted_content": "E1",
    },
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": "x"}],
    },
    {"type": "message", "role": "user", "content": "b"},
    {
        "type": "reasoning",
        "id": "rs_2",
        "summary": [{"type": "summary_text", "text": "new"}],
        "encrypted_content": "E2",
    },
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "message", "role": "user", "content": "<system-reminder>x</system-reminder>"},
    {"type": "function_call_output", "call_id": "c", "output": "r"},
]


@pytest.mark.parametrize(
    ("rules", "ids"),
    [
        ({"scope": "all"}, ["E1", "E2"]),
        ({"scope": "turn"}, ["E2"]),
        ({"scope": "none"}, []),
        ({"scope": "all", "mode": "off"}, []),
        ({"scope": "all", "mode": "summary-only"}, [None, None]),
        ({"scope": "turn", "mode": "summary-only"}, [None]),
        ({"scope": "all", "mode": "encrypted"}, ["E1", "E2"]),
    ],
)
def test_mode_and_scope_on_the_responses_wire(rules: Json, ids: list[Any]) -> None:
    body = {"model": "m", "store": False, "input": THREE}
    edited = ResponsesBackend().edit_request(body, profile(reasoning=rules))
    sent = [item for item in edited.body["input"] if item["type"] == "reasoning"]
    assert [item.get("encrypted_content") for item in sent] == ids
    assert ("include" in edited.body) == (rules.get("mode") == "encrypted")
    if rules.get("mode") == "summary-only":
        assert all(item.keys() == {"type", "summary"} for item in sent)


@pytest.mark.parametrize(("scope", "words"), [("all", ["old", "new"]), ("turn", ["new"]), ("none", [])])
def test_scope_on_the_chat_wire(scope: str, words: list[str]) -> None:
    rules = {"reasoning": {"replay": "field", "scope": scope}}
    sent = translation(THREE, rules).encoded.body["messages"]
    assert [each["reasoning_content"] for each in sent if "reasoning_content" in each] == words


@pytest.mark.parametrize(
    ("mode", "scope", "kept"),
    [
        ("encrypted", "all", True),
        ("encrypted", "turn", True),
        ("encrypted", "none", False),
        ("off", "all", False),
        ("off", "turn", False),
        ("off", "none", False),
        (None, "all", True),
        (None, "turn", True),
        (None, "none", False),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_mode_and_scope_of_what_a_capsule_held(mode: str | None, scope: str, kept: bool, later: bool) -> None:
    """`later`: a user has spoken since, so that only the scope `all` reaches it."""
    rules = {"reasoning": {**DETAILS["reasoning"], "mode": mode, "scope": scope}}
    output = answered(SHAPES["openrouter"][1], DETAILS)
    result = {"type": "function_call_output", "call_id": "c1", "output": "r"}
    more: list[Json] = [{"role": "assistant", "content": "done"}, USER] if later else []
    sent = translation([USER, *output, result, *more], rules).encoded.body["messages"][1]
    assert ("reasoning_details" in sent) == (kept and (scope == "all" or not later))
    assert sent["tool_calls"] == [CALL]


def test_parts_survive_when_turns_are_merged() -> None:
    """Clients record a call, then a text, then the result: one turn for the backend."""
    output = answered(SHAPES["claude summary"][1], CLAUDE)
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "more"}]}
    result = {"type": "function_call_output", "call_id": "c1", "output": "r"}
    sent = translation([USER, *output, said, result], CLAUDE).encoded.body["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[1]["content"][0] == THOUGHT
    assert "more" in repr(sent[1]["content"])
    assert sent[1]["tool_calls"] == [CALL]


def test_an_orphan_is_swept() -> None:
    lone = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "E"}
    body = {"model": "m", "store": False, "input": [lone, USER]}
    edited = ResponsesBackend().edit_request(body, profile(reasoning={"scope": "all"}))
    assert [item["type"] for item in edited.body["input"]] == ["message"]
    assert len(edited.losses) == 1
    kept = ResponsesBackend().edit_request(body, profile(reasoning={"scope": "all", "sweep": False}))
    assert kept.body["input"][0] == lone


def test_what_begins_a_turn() -> None:
    assert begins_turn({"role": "user", "content": [{"type": "text", "text": "go"}]})
    assert not begins_turn({"role": "user", "content": " <system-reminder>x"})
    assert begins_turn({"role": "user", "content": None})
    assert not begins_turn({"role": "tool", "content": "x"})
    assert Profile().reasoning.scope == "turn"
