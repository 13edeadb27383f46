"""Tools and parameters of a call in a Responses request, and where a loss is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.responses_requests import SAID, SAY, SCHEMA, body, lost
from translators.errors import ProxyError
from translators.ir import Json, Message, Namespace, Text, Tool, ToolChoice, ToolRef
from translators.profile import MessageRules, Profile, ReasoningRules, RequestRules, ToolRules

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
    ({"max_tokens": 1}, {"max_output_tokens": 1}, []),
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
    least = Profile(request=RequestRules(min_output_tokens=16))
    said: Json = {"params": {"max_tokens": 5}, "places": {"max_tokens": "/max_tokens"}}
    assert lost(profile=least, **said) == [("/max_tokens", "tuning")]
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


def test_the_least_answer_is_told_by_the_clients_name() -> None:
    profile = Profile(request=RequestRules(min_output_tokens=16))
    assert body(profile=profile, params={"max_tokens": 1})["max_output_tokens"] == 16
    assert lost(profile=profile, params={"max_tokens": 1}) == [("/max_completion_tokens", "tuning")]


def test_what_we_wrote_ourselves_is_no_loss_of_the_clients() -> None:
    assert lost(tools=(Tool("ours", strict=True),), profile=Profile(tools=ToolRules(strict="drop"))) == []
    profile = Profile(request=RequestRules(clamp={"x": (0, 1)}, drop=("include",)))
    assert lost(profile=profile, params={"logprobs": True}) == [("/logprobs", "tuning")]
    assert lost(profile=Profile(request=RequestRules(drop=("instructions",)))) == []
    system = Message("system", (Text("s"),), at="/messages/0")
    assert lost(system, SAY, profile=Profile(request=RequestRules(drop=("instructions",)))) == []
