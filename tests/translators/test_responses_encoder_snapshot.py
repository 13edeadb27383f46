"""What a Responses reply says about its own request."""

from __future__ import annotations

import pytest

from tests.translators.responses_oracle import check
from tests.translators.responses_player import START, STOP, play
from translators.ir import (
    Json,
    Started,
)


def snapshot_of(echo: Json) -> Json:
    found = check(play([START, STOP], echo=echo))
    assert found[0]["response"] == found[1]["response"]
    return found[0]["response"]


def test_the_snapshot_has_every_field_when_the_request_has_none() -> None:
    assert snapshot_of({}) == {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "status": "in_progress",
        "background": False,
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "metadata": {},
        "model": "m",
        "output": [],
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
    }


FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True}
SCHEMA = {"type": "json_schema", "name": "a", "schema": {"type": "object"}}

ECHOES: list[tuple[Json, Json]] = [
    ({"temperature": 0, "top_p": 0.5}, {"temperature": 0, "top_p": 0.5}),
    (
        {"instructions": "Be brief.", "metadata": {"a": "b"}},
        {"instructions": "Be brief.", "metadata": {"a": "b"}},
    ),
    (
        {"truncation": None, "metadata": None, "tools": None},
        {"truncation": "disabled", "metadata": {}, "tools": []},
    ),
    (
        {"max_output_tokens": 64, "parallel_tool_calls": False},
        {"max_output_tokens": 64, "parallel_tool_calls": False},
    ),
    ({"presence_penalty": 0.5, "truncation": "auto"}, {"presence_penalty": 0.5, "truncation": "auto"}),
    ({"user": "u", "prompt_cache_retention": "24h"}, {"user": "u", "prompt_cache_retention": "24h"}),
    ({"store": True}, {"store": False}),
    (
        {"reasoning": {"effort": "low", "generate_summary": "auto"}},
        {"reasoning": {"effort": "low", "summary": "auto"}},
    ),
    ({"text": {"format": {"type": "json_object"}}}, {"text": {"format": {"type": "json_object"}}}),
    ({"text": {"verbosity": "low"}}, {"text": {"format": {"type": "text"}, "verbosity": "low"}}),
    ({"text": {"format": SCHEMA}}, {"text": {"format": {**SCHEMA, "description": None, "strict": False}}}),
    ({"tools": [FUNCTION]}, {"tools": [{**FUNCTION, "description": None}]}),
    (
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {
            "tools": [
                {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None}
            ]
        },
    ),
    (
        {"tools": [{"type": "namespace", "name": "n", "tools": [FUNCTION]}]},
        {
            "tools": [
                {
                    "type": "namespace",
                    "name": "n",
                    "description": "",
                    "tools": [{**FUNCTION, "description": None}],
                }
            ]
        },
    ),
    (
        {
            "tools": [
                {"type": "mcp", "server_label": "s", "authorization": "secret", "headers": {"x": "secret"}}
            ]
        },
        {"tools": [{"type": "mcp", "server_label": "s"}]},
    ),
    (
        {"tools": [{"type": "web_search"}], "tool_choice": "none"},
        {"tools": [{"type": "web_search"}], "tool_choice": "none"},
    ),
    (
        {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"tool_choice": {"type": "function", "name": "f"}},
    ),
    (
        {
            "tools": [FUNCTION],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
        },
        {
            "tool_choice": {
                "type": "allowed_tools",
                "mode": "auto",
                "tools": [{"type": "function", "name": "f"}],
            }
        },
    ),
]


@pytest.mark.parametrize(("echo", "said"), ECHOES)
def test_the_snapshot_repeats_the_request(echo: Json, said: Json) -> None:
    snapshot = snapshot_of(echo)
    assert {key: snapshot[key] for key in said} == said


def test_unknown_service_tiers_stay_unsaid() -> None:
    found = check(play([Started(service_tier="standard"), STOP]))
    assert found[-1]["response"]["service_tier"] == "default"
    assert check(play([Started(service_tier="flex"), STOP]))[0]["response"]["service_tier"] == "flex"
