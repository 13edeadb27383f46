"""Top-level keys: `request.*` of the profile."""

from __future__ import annotations

from typing import get_type_hints

from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from tests.translators.chat_edits import OPENAI, Edit, Refusal, table
from translators.chat.edit_body import OFFICIAL

STRICT = {"request": {"extra_keys": ["top_k"]}}
STREAM = {"stream": True}
USAGE = {"stream": True, "stream_options": {"include_usage": True}}


def test_the_official_keys_are_those_of_the_sdk() -> None:
    sdk = {*get_type_hints(CompletionCreateParamsBase), "stream"}
    assert sdk == OFFICIAL


@table(
    Edit("nothing to do", {"temperature": 0.5, "odd": {"a": 1}}),
    Edit("nulls go", {"temperature": None, "stop": None, "top_p": 1}, {"top_p": 1}),
    Edit("nulls stay for the exact", {"temperature": None}, rules=OPENAI),
    Edit("empty texts go", {"prompt_cache_key": "", "user": "", "odd": ""}, {"odd": ""}),
    Edit("from the exact too", {"prompt_cache_key": ""}, {}, OPENAI),
    # renames
    Edit(
        "the Responses name of the limit",
        {"max_output_tokens": 5, "max_tokens": 9, "max_completion_tokens": 7},
        {"max_tokens": 5},
    ),
    Edit(
        "which is lost by that name",
        {"max_output_tokens": 5},
        {},
        {"request": {"drop": ["max_tokens"]}},
        ["/max_output_tokens"],
    ),
    Edit("the exact refuses it by itself", {"max_output_tokens": 5}, rules=OPENAI),
    Edit(
        "a key is renamed",
        {"max_completion_tokens": 5},
        {"max_tokens": 5},
        {"request": {"rename": {"max_completion_tokens": "max_tokens"}}},
    ),
    Edit(
        "the new name of the limit wins over the old one",
        {"max_completion_tokens": 5, "max_tokens": 9},
        {"max_tokens": 5},
        {"request": {"rename": {"max_completion_tokens": "max_tokens"}}},
    ),
    Edit(
        "also where the old one is renamed",
        {"max_completion_tokens": 5, "max_tokens": 9},
        {"max_completion_tokens": 5},
        OPENAI,
    ),
    # drops
    Edit(
        "a dropped key is reported by the client's name",
        {"max_completion_tokens": 5},
        {},
        {"request": {"rename": {"max_completion_tokens": "max_tokens"}, "drop": ["max_tokens"]}},
        ["/max_completion_tokens"],
    ),
    Edit(
        "what says nothing is no loss",
        {
            "store": False,
            "metadata": {},
            "n": 1,
            "service_tier": "auto",
            "modalities": ["text"],
            "response_format": {"type": "text"},
        },
        {},
        {
            "request": {
                "drop": ["store", "metadata", "n", "service_tier", "modalities", "response_format", "absent"]
            }
        },
    ),
    Edit(
        "hosted search is left out like a hosted tool",
        {"web_search_options": {}, "user": "u"},
        {},
        {"request": {"drop": ["web_search_options", "user"]}},
        ["/web_search_options", "/user"],
    ),
    Edit(
        "a list of the only keys taken",
        {"temperature": 1, "seed": 3, "thinking": {"type": "disabled"}, "forced": 1},
        {"temperature": 1, "thinking": {"type": "disabled"}, "forced": 2},
        {
            "request": {"allow": ["model", "messages", "temperature"], "force": {"forced": 2}},
            "reasoning": {"ask": "thinking_toggle"},
        },
        ["/seed"],
    ),
    Edit(
        "only official keys and the backend's own",
        {"top_k": 5, "context_management": {"edits": []}, "temperature": 0, "nothing": None},
        {"top_k": 5, "temperature": 0},
        STRICT,
        ["/context_management"],
    ),
    # numbers
    Edit(
        "numbers are moved into the range",
        {"temperature": 1.7, "top_p": 0.5, "n": 1, "seed": True, "own": -1},
        {"temperature": 1, "top_p": 0.5, "n": 1, "seed": True, "own": 0},
        {
            "request": {
                "clamp": {"temperature": [0, 1], "top_p": [0, 1], "n": [1, 1], "seed": [5, 6], "own": [0, 9]}
            }
        },
        ["/temperature", "/own"],
    ),
    # what the gateway asks for itself
    Edit("usage in every stream", STREAM, USAGE),
    Edit("usage in every stream, of the exact too", STREAM, USAGE, OPENAI),
    Edit("usage asked for already", USAGE),
    Edit(
        "other stream options stay",
        {"stream": True, "stream_options": {"include_usage": False, "include_obfuscation": False}},
        {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
    ),
    Edit(
        "but not where only known fields are taken",
        {"stream": True, "stream_options": {"include_usage": True, "include_obfuscation": False}},
        USAGE,
        STRICT,
    ),
    Edit("odd stream options", {"stream": True, "stream_options": "yes"}, USAGE),
    Edit("no stream options without a stream", {"stream_options": {"include_usage": True}}, {}),
    Edit("none where they break the backend", USAGE, STREAM, {"request": {"stream_options": "drop"}}),
    Edit(
        "none where the backend was seen to refuse them",
        STREAM,
        None,
        {"request": {"drop": ["stream_options"]}},
    ),
    Edit(
        "none where they are not on the list",
        STREAM,
        None,
        {"request": {"allow": ["model", "messages", "stream"]}},
    ),
    Edit("a forced key", {"a": 1}, {"a": 2}, {"request": {"force": {"a": 2}}}),
)
def test_edits(case: Edit) -> None:
    case.check()


@table(
    Refusal("two answers are not one", {"n": 2}, "n", {"request": {"drop": ["n"]}}),
    Refusal("two answers are not one, clamped", {"n": 2}, "n", {"request": {"clamp": {"n": [1, 1]}}}),
    Refusal(
        "a schema is not dropped in silence",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
        "response_format",
        {"request": {"drop": ["response_format"]}},
    ),
    Refusal(
        "sound cannot be had", {"modalities": ["audio"]}, "modalities", {"request": {"allow": ["model"]}}
    ),
)
def test_refusals(case: Refusal) -> None:
    case.check()
