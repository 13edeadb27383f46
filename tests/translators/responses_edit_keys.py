"""Edits of top-level keys and of the wish to reason: profile, body, what is sent, what is lost."""

from __future__ import annotations

from tests.translators.responses_items import HARD, SAID, WEB, F, answer, user
from tests.translators.responses_profiles import reasoning, request
from translators.ir import Json
from translators.profile import Profile

KEYS: dict[str, tuple[Profile, Json, Json, list[str]]] = {
    # top level
    "dropped keys": (
        request(drop=("metadata", "store", "text.verbosity", "reasoning.effort", "input", "gone", "a.b.c")),
        {
            "metadata": {"a": "b"},
            "store": False,
            "text": {"verbosity": "low"},
            "reasoning": {"effort": "low", "summary": "auto"},
            "input": "x",
            "a": 1,
        },
        {"reasoning": {"summary": "auto"}, "input": "x", "a": 1},
        ["/metadata", "/text/verbosity", "/reasoning/effort"],
    ),
    "an allow-list": (
        request(allow=("model", "top_p")),
        {"input": "x", "top_p": 1, "user": "u"},
        {"input": "x", "top_p": 1},
        ["/user"],
    ),
    "known keys only": (
        request(extra_keys=("mine",)),
        {
            "input": [
                {**user("hi"), "made_up": 1},
                {**answer({**SAID, "made_up": 1}), "mine": 2},
                {"type": "local_shell_call", "made_up": 1},
            ],
            "tools": [{**F, "made_up": 1, "mine": 2}, {**WEB, "made_up": 1}],
            "mine": 1,
            "made_up": 1,
        },
        {
            "input": [user("hi"), {**answer(SAID), "mine": 2}, {"type": "local_shell_call", "made_up": 1}],
            "tools": [{**F, "mine": 2}, {**WEB, "made_up": 1}],
            "mine": 1,
        },
        ["/made_up"],
    ),
    "renamed keys": (
        request(rename={"max_tokens": "max_output_tokens", "user": "safety_identifier"}),
        {"max_tokens": 5, "user": "a", "safety_identifier": "b"},
        {"max_output_tokens": 5, "safety_identifier": "b"},
        [],
    ),
    "clamped numbers": (
        request(clamp={"temperature": (0, 1), "top_p": (0.5, 1), "n": (1, 1), "store": (0, 0), "x": (0, 1)}),
        {"temperature": 2, "top_p": 0.1, "n": 1, "store": True, "x": "5"},
        {"temperature": 1, "top_p": 0.5, "n": 1, "store": True, "x": "5"},
        ["/temperature", "/top_p"],
    ),
    "less than the least answer": (
        request(min_output_tokens=16),
        {"max_output_tokens": 1},
        {"max_output_tokens": 16},
        ["/max_output_tokens"],
    ),
    "the least answer": (
        request(min_output_tokens=16),
        {"max_output_tokens": 16},
        {"max_output_tokens": 16},
        [],
    ),
    "stream options": (
        request(stream_options="drop"),
        {"stream": True, "stream_options": {"include_obfuscation": False}},
        {"stream": True},
        [],
    ),
    "forced keys": (
        request(force={"store": True, "reasoning": {"summary": "auto"}}),
        {"store": False, "reasoning": HARD},
        {"store": True, "reasoning": {"effort": "high", "summary": "auto"}},
        [],
    ),
    # reasoning
    "the nearest effort": (
        reasoning(efforts=("low", "medium", "high")),
        {"reasoning": {"effort": "minimal", "summary": "auto"}},
        {"reasoning": {"summary": "auto", "effort": "low"}},
        ["/reasoning/effort"],
    ),
    "an effort that cannot be asked": (
        reasoning(efforts=("low",)),
        {"reasoning": {"effort": "none"}},
        {},
        ["/reasoning/effort"],
    ),
    "a backend without reasoning": (
        reasoning(ask="none"),
        {"reasoning": {"effort": "low", "summary": "auto"}},
        {},
        ["/reasoning/effort"],
    ),
    "a summary of no reasoning": (reasoning(ask="none"), {"reasoning": {"summary": "auto"}}, {}, []),
    "no sampling while it reasons": (
        reasoning(drop_sampling=True),
        {"reasoning": HARD, "temperature": 1, "top_p": 0.5, "top_logprobs": None},
        {"reasoning": HARD},
        ["/temperature", "/top_p"],
    ),
    "sampling without reasoning": (
        reasoning(drop_sampling=True, efforts=("none",)),
        {"reasoning": {"effort": "none"}, "temperature": 1},
        {"reasoning": {"effort": "none"}, "temperature": 1},
        [],
    ),
}
