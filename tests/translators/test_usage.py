"""Usage as backends tell it, as `Usage`, and as clients get it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from openai.types import CompletionUsage
from openai.types.responses import ResponseUsage

from translators.ir import Usage
from translators.usage import read_chat_usage, read_responses_usage, write_chat_usage, write_responses_usage

CHAT: list[tuple[str, Any, Usage | None]] = [
    ("whole", {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}, Usage(3, 2)),
    (
        "details",
        {
            "prompt_tokens": 30,
            "completion_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5},
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
        Usage(30, 20, 10, 5, 7),
    ),
    (
        "details empty, partial, null",
        {
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "prompt_tokens_details": {},
            "completion_tokens_details": {"accepted_prediction_tokens": 0, "reasoning_tokens": None},
        },
        Usage(3, 2),
    ),
    (
        "details null",
        {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": None},
        Usage(3, 2),
    ),
    ("partial", {"prompt_tokens": 3}, Usage(3, 0)),
    ("only a total", {"total_tokens": 5}, Usage(0, 0)),
    ("nothing", {}, None),
    ("nulls", {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}, None),
    ("null", None, None),
    ("no object", "3", None),
    ("texts and floats", {"prompt_tokens": "3", "completion_tokens": 2.0}, Usage(3, 2)),
    ("not numbers", {"prompt_tokens": "many", "completion_tokens": True}, None),
    ("not finite", {"prompt_tokens": 3, "completion_tokens": float("nan")}, Usage(3, 0)),
    ("negative", {"prompt_tokens": -3, "completion_tokens": 2}, Usage(0, 2)),
    ("zeros are told", {"prompt_tokens": 0, "completion_tokens": 0}, Usage(0, 0)),
    (
        "Databricks Claude, cached inside",
        {"prompt_tokens": 30, "completion_tokens": 2, "total_tokens": 32, "cache_read_input_tokens": 10},
        Usage(30, 2, 10),
    ),
    (
        "Anthropic, cached outside by the total",
        {
            "prompt_tokens": 30,
            "completion_tokens": 2,
            "total_tokens": 47,
            "cache_read_input_tokens": 10,
            "cache_creation_input_tokens": 5,
        },
        Usage(45, 2, 10, 5),
    ),
    (
        "Anthropic, more cached than input",
        {"prompt_tokens": 3, "completion_tokens": 2, "cache_read_input_tokens": 10},
        Usage(13, 2, 10),
    ),
    (
        "DeepSeek",
        {"prompt_tokens": 30, "completion_tokens": 2, "prompt_cache_hit_tokens": 10},
        Usage(30, 2, 10),
    ),
    ("Moonshot", {"prompt_tokens": 30, "completion_tokens": 2, "cached_tokens": 10}, Usage(30, 2, 10)),
    (
        "told twice, once as 0",
        {
            "prompt_tokens": 30,
            "completion_tokens": 2,
            "cached_tokens": 0,
            "prompt_tokens_details": {"cached_tokens": 10},
        },
        Usage(30, 2, 10),
    ),
    ("Responses names", {"input_tokens": 3, "output_tokens": 2}, Usage(3, 2)),
    (
        "reasoning outside by the total",
        {
            "prompt_tokens": 3,
            "completion_tokens": 20,
            "total_tokens": 30,
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
        Usage(3, 27, reasoning=7),
    ),
    (
        "more reasoning than output",
        {"prompt_tokens": 3, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": 7}},
        Usage(3, 9, reasoning=7),
    ),
    (
        "cached and reasoning outside",
        {
            "prompt_tokens": 30,
            "completion_tokens": 20,
            "total_tokens": 67,
            "cached_tokens": 10,
            "completion_tokens_details": {"reasoning_tokens": 7},
        },
        Usage(40, 27, 10, reasoning=7),
    ),
]


@pytest.mark.parametrize(("told", "wanted"), [row[1:] for row in CHAT], ids=[row[0] for row in CHAT])
def test_chat_usage(told: Any, wanted: Usage | None) -> None:
    assert read_chat_usage(told) == wanted


@pytest.mark.parametrize(
    ("more", "output"), [({}, 9), ({"total_tokens": 12}, 9), ({"total_tokens": 5}, 2)], ids=str
)
def test_a_backend_that_counts_reasoning_apart(more: dict[str, int], output: int) -> None:
    """By profile where no total tells; by its total where there is one (here too little: inside)."""
    told = {"prompt_tokens": 3, "completion_tokens": 2, "reasoning_tokens": 2, **more}
    if output == 9:
        told["reasoning_tokens"] = 7
    usage = read_chat_usage(told, reasoning_in_completion=False)
    assert usage == Usage(3, output, reasoning=told["reasoning_tokens"])


def test_responses_usage() -> None:
    told = {
        "input_tokens": 30,
        "input_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 5},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 7},
        "total_tokens": 50,
    }
    assert read_responses_usage(told) == Usage(30, 20, 10, 5, 7)
    assert read_responses_usage({"input_tokens": 3, "output_tokens_details": None}) == Usage(3, 0)
    assert read_responses_usage(None) is None


@pytest.mark.parametrize("usage", [Usage(), Usage(30, 20, 10, 5, 7)], ids=str)
def test_written_usage_is_whole_and_reads_back(usage: Usage) -> None:
    chat, responses = write_chat_usage(usage), write_responses_usage(usage)
    CompletionUsage.model_validate(chat, strict=True)
    ResponseUsage.model_validate(responses, strict=True)
    assert chat["total_tokens"] == responses["total_tokens"] == usage.input + usage.output
    assert read_chat_usage(chat) == read_responses_usage(responses) == usage


@pytest.mark.parametrize("count", [1e300, "1e300", 2**63, 2**64 - 1])
def test_counts_nobody_can_write_are_cut(count: Any) -> None:
    usage = read_chat_usage({"prompt_tokens": count, "completion_tokens": count, "total_tokens": 3})
    assert usage is not None
    assert 2**32 < usage.input == usage.output < 2**53
    assert orjson.loads(orjson.dumps(write_chat_usage(usage)))["prompt_tokens"] == usage.input
