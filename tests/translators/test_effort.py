"""The level a backend is asked for: who names it, on both wires and in both lanes."""

from __future__ import annotations

from typing import Any

import pytest

from app.ids import new_id
from tests.translators.chat_edits import profile
from translators.chat import ChatBackend, ChatClient
from translators.effort import default_effort, ignores_default, nearest_level
from translators.errors import ProxyError
from translators.ir import Json, Shape
from translators.profile import Profile, ReasoningRules
from translators.responses import ResponsesBackend, ResponsesClient

CLIENTS: Any = {"chat": ChatClient(), "responses": ResponsesClient()}
BACKENDS: Any = {"chat": ChatBackend(), "responses": ResponsesBackend()}
ALL = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
LANES: list[tuple[Shape, Shape]] = [
    ("chat", "chat"),
    ("responses", "responses"),
    ("chat", "responses"),
    ("responses", "chat"),
]


def sent(client: Shape, backend: Shape, said: Json, rules: Profile) -> tuple[str | None, list[str]]:
    """The level in the backend's body, and the pointers of what was lost."""
    asked = {"messages": [{"role": "user", "content": "x"}]} if client == "chat" else {"input": "x"}
    body = {"model": "m", **asked, **said}
    if client == backend:
        encoded = BACKENDS[backend].edit_request(body, rules)
    else:
        call = CLIENTS[client].decode_request(body, new_id)
        encoded = BACKENDS[backend].encode_request(call, rules)
    out = encoded.body
    level = out.get("reasoning_effort") if backend == "chat" else out.get("reasoning", {}).get("effort")
    return level, [loss.pointer for loss in encoded.losses]


def rules(efforts: Any = ALL, default: str | None = None, **more: Any) -> Profile:
    return profile(reasoning={"efforts": efforts, "default_effort": default, **more})


PRECEDENCE = [
    ("the object wins", {"reasoning": {"effort": "high"}, "reasoning_effort": "low"}, "medium", "high"),
    ("then Chat's key", {"reasoning_effort": "low"}, "medium", "low"),
    ("then the default", {}, "medium", "medium"),
    ("then nothing", {}, None, None),
    ("an unset default", {}, "none", None),
    ("an explicit none is sent", {"reasoning_effort": "none"}, "medium", "none"),
    ("an explicit none in the object", {"reasoning": {"effort": "none"}}, "medium", "none"),
    ("a null is nothing said", {"reasoning_effort": None}, "medium", "medium"),
]


@pytest.mark.parametrize(("client", "backend"), LANES)
@pytest.mark.parametrize(
    ("said", "default", "level"), [p[1:] for p in PRECEDENCE], ids=[p[0] for p in PRECEDENCE]
)
def test_who_names_the_level(
    client: Shape, backend: Shape, said: Json, default: str | None, level: str | None
) -> None:
    assert sent(client, backend, said, rules(default=default)) == (level, [])


@pytest.mark.parametrize(("client", "backend"), LANES)
@pytest.mark.parametrize(
    ("asked", "told"),
    [("low", "medium"), ("max", "xhigh"), ("ultra", "xhigh"), ("banana", None), ("none", None)],
)
def test_a_level_outside_the_set_is_the_nearest_and_reported(
    client: Shape, backend: Shape, asked: str, told: str | None
) -> None:
    pro = rules(["medium", "high", "xhigh"])
    said = {"reasoning_effort": asked} if client == "chat" else {"reasoning": {"effort": asked}}
    pointer = "/reasoning_effort" if client == "chat" else "/reasoning/effort"
    assert sent(client, backend, said, pro) == (told, [pointer])


@pytest.mark.parametrize(("client", "backend"), LANES)
def test_the_other_shapes_name_is_reported_as_it_was_written(client: Shape, backend: Shape) -> None:
    said = {"reasoning": {"effort": "max"}} if client == "chat" else {"reasoning_effort": "max"}
    pointer = "/reasoning/effort" if client == "chat" else "/reasoning_effort"
    assert sent(client, backend, said, rules(["low"])) == ("low", [pointer])


@pytest.mark.parametrize(("client", "backend"), LANES)
def test_a_default_outside_the_set_is_the_nearest_and_nobodys_loss(client: Shape, backend: Shape) -> None:
    assert sent(client, backend, {}, rules(["medium", "high"], "low")) == ("medium", [])


@pytest.mark.parametrize(("client", "backend"), LANES)
def test_a_model_that_does_not_reason_is_told_no_default(client: Shape, backend: Shape) -> None:
    assert sent(client, backend, {}, rules([], "high", ask="none")) == (None, [])


@pytest.mark.parametrize(
    ("ask", "body"),
    [
        ("thinking_adaptive", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
        ("thinking_toggle", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        ("enable_thinking", {"enable_thinking": True}),
        ("reasoning_object", {"reasoning": {"effort": "high"}}),
    ],
)
def test_a_default_is_said_in_the_backends_own_words(ask: str, body: Json) -> None:
    given = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    edited = ChatBackend().edit_request(given, rules(default="high", ask=ask))
    assert (edited.body, edited.losses) == ({**given, **body}, [])
    assert not ChatBackend().edit_request(edited.body, rules(default="high", ask=ask)).changed


@pytest.mark.parametrize(
    "own",
    [
        {"thinking": {"type": "disabled"}},
        {"enable_thinking": False},
        {"output_config": {"effort": "low"}},
        {"reasoning": {"enabled": False}},
    ],
)
def test_what_a_client_says_in_a_backends_words_is_no_place_for_a_default(own: Json) -> None:
    given = {"model": "m", "messages": [{"role": "user", "content": "x"}], **own}
    assert ChatBackend().edit_request(given, rules(default="high")).body == given


def test_a_default_keeps_what_else_the_object_says() -> None:
    given = {"model": "m", "input": "x", "reasoning": {"summary": "auto"}}
    edited = ResponsesBackend().edit_request(given, rules(default="high"))
    assert edited.body["reasoning"] == {"summary": "auto", "effort": "high"}
    assert given["reasoning"] == {"summary": "auto"}


@pytest.mark.parametrize("odd", ["high", {"effort": 5}, []])
def test_a_reasoning_that_is_none_is_no_place_for_a_default(odd: Any) -> None:
    given = {"model": "m", "input": "x", "reasoning": odd}
    assert ResponsesBackend().edit_request(given, rules(default="high")).body == given


@pytest.mark.parametrize(
    ("rule", "effort", "kept"),
    [
        (False, "high", True),
        (True, "high", False),
        (True, "none", True),
        (True, None, True),
        ("unless_none", None, False),
        ("unless_none", "high", False),
        ("unless_none", "none", True),
    ],
)
@pytest.mark.parametrize("shape", ["chat", "responses"])
def test_sampling_of_a_model_that_reasons(shape: Shape, rule: Any, effort: str | None, kept: bool) -> None:
    body = {
        "model": "m",
        "temperature": 0.5,
        **({"input": "x"} if shape == "responses" else {"messages": []}),
    }
    if effort:
        body |= {"reasoning_effort": effort} if shape == "chat" else {"reasoning": {"effort": effort}}
    edited = BACKENDS[shape].edit_request(body, rules(drop_sampling=rule))
    assert ("temperature" in edited.body) is kept
    assert ["/temperature"] * (not kept) == [loss.pointer for loss in edited.losses]


@pytest.mark.parametrize("shape", ["chat", "responses"])
@pytest.mark.parametrize(("value", "kept"), [("in_memory", False), ("24h", True)])
def test_a_value_that_a_model_refuses_is_left_out(shape: Shape, value: str, kept: bool) -> None:
    body = {"model": "m", "prompt_cache_retention": value}
    body |= {"input": "x"} if shape == "responses" else {"messages": [{"role": "user", "content": "x"}]}
    drop = profile(request={"drop_values": {"prompt_cache_retention": ["in_memory"]}})
    edited = BACKENDS[shape].edit_request(body, drop)
    assert ("prompt_cache_retention" in edited.body) is kept
    assert ["/prompt_cache_retention"] * (not kept) == [loss.pointer for loss in edited.losses]


def test_hosted_tools_unknown_to_the_model_are_left_out() -> None:
    body = {"model": "m", "input": "x", "tools": [{"type": "computer"}, {"type": "apply_patch"}]}
    tools = profile(tools={"builtin": "keep", "unknown": ["computer"]})
    edited = ResponsesBackend().edit_request(body, tools)
    assert edited.body["tools"] == [{"type": "apply_patch"}]
    assert [(loss.pointer, loss.kind) for loss in edited.losses] == [("/tools/0", "feature")]


@pytest.mark.parametrize("mode", ["standard", "pro", None])
def test_modes_of_reasoning(mode: str | None) -> None:
    ResponsesClient().check({"model": "m", "input": "x", "reasoning": {"mode": mode}})


def test_any_other_mode_is_refused() -> None:
    with pytest.raises(ProxyError) as caught:
        ResponsesClient().check({"model": "m", "input": "x", "reasoning": {"mode": "turbo"}})
    assert (caught.value.http_status, caught.value.param) == (400, "reasoning.mode")
    assert "'standard' or 'pro'" in caught.value.message


def test_small_parts() -> None:
    assert nearest_level("low", ()) is None
    assert default_effort(ReasoningRules(default_effort="max")) == "high"
    assert ignores_default(ReasoningRules(default_effort="max", ask="none"))
    assert not ignores_default(ReasoningRules(default_effort="none", ask="none"))
    assert not ignores_default(ReasoningRules(ask="none"))
