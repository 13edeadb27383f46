"""The outputs that canitoolcall has collected from templates, engines' tests and bug reports."""

from __future__ import annotations

from functools import cache

import pytest
from canitoolcall.checks import compare, expected_as_result
from canitoolcall.fixtures import Family, Fixture, load_families, load_fixtures
from canitoolcall.results import ParsedToolCall, ParseResult, Status
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.translators.local_outputs import cut_at, read
from translators.local.families import BY_NAME

FAMILIES = {
    "qwen3-hermes": "hermes",
    "qwen3-xml": "qwen3_coder",
    "gemma4": "gemma4",
    "glm": "glm45",
    "gpt-oss": "harmony",
    "mistral": "mistral",
}
VARIANTS = {
    "x-kimi-k2": "kimi_k2",
    "x-kimi-k3": "kimi_k3",
    "x-llama-json": "llama3_json",
    "x-llama-pythonic": "llama4_pythonic",
    "x-deepseek-v3": "deepseek_v3",
    "x-deepseek-v31": "deepseek_v31",
    "x-deepseek-v32": "deepseek_dsml",
    "x-deepseek-v4": "deepseek_dsml",
    "x-deepseek-v41": "deepseek_dsml",
}


@cache
def families() -> dict[str, Family]:
    return load_families()


def name_of(fixture: Fixture) -> str:
    """Our family for a fixture's."""
    variant = [VARIANTS[tag] for tag in fixture.tags if tag in VARIANTS]
    return variant[0] if variant else FAMILIES[fixture.family]


FIXTURES = load_fixtures()


def prompt_of(fixture: Fixture) -> str:
    reference = families()[fixture.family].reference_for(fixture.models[0])
    default = reference.default_generation_prompt if reference else None
    return (default or "") if fixture.generation_prompt is None else fixture.generation_prompt


def parsed(fixture: Fixture, places: list[int]) -> ParseResult:
    name = name_of(fixture)
    thinking = BY_NAME[name].thinking_open(prompt_of(fixture))
    chunks = cut_at(fixture.raw_output, places)
    out = read(name, chunks, fixture.tools, cut=fixture.truncated, thinking=thinking)
    calls = tuple(ParsedToolCall(call, arguments) for call, arguments, _ in out.calls)
    return ParseResult(content=out.text or None, reasoning_content=out.thought or None, tool_calls=calls)


def is_right(fixture: Fixture, got: ParseResult) -> bool:
    """Blanks at the ends of texts aside, as canitoolcall's own comparison has it."""
    if fixture.expected is None:
        return not got.tool_calls
    return compare(got, expected_as_result(fixture.expected)) is not Status.FAIL


def test_there_are_as_many_as_there_were() -> None:
    assert len(FIXTURES) >= 469


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda fixture: fixture.id)
def test_fixture(fixture: Fixture) -> None:
    """Whole, and character by character."""
    whole = parsed(fixture, [])
    assert is_right(fixture, whole)
    assert parsed(fixture, list(range(len(fixture.raw_output)))) == whole


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FIXTURES), st.lists(st.integers(0, 10_000), max_size=30))
def test_cuts_change_nothing(fixture: Fixture, places: list[int]) -> None:
    assert parsed(fixture, places) == parsed(fixture, [])


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FIXTURES), st.integers(0, 10_000))
def test_token_limit_makes_no_new_call(fixture: Fixture, place: int) -> None:
    """An output cut anywhere has the calls that were whole by then, or fewer."""
    name = name_of(fixture)
    thinking = BY_NAME[name].thinking_open(prompt_of(fixture))
    text = fixture.raw_output
    whole = read(name, [text], fixture.tools, thinking=thinking).calls
    part = read(name, [text[: place % (len(text) + 1)]], fixture.tools, cut=True, thinking=thinking).calls
    assert part == whole[: len(part)]
