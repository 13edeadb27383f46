"""Keys that belong together, judged over every row of quirks that a provider's models can get."""

from __future__ import annotations

from typing import Any

import pytest

from config.conflicts import conflicts
from config.load import check
from providers.profiles import BY_NAME, ROWS, choose, reachable, resolve

AT = "providers[0].overrides"
RATIO = {"request": {"chars_per_token": 3.5}}
NEEDS = f"{AT}.request.chars_per_token: needs `request.context_window` beside it"


def problems(overrides: dict[str, Any], **provider: Any) -> list[str]:
    table = {"name": "p", "kind": "openai", "base_url": "http://h/v1", "overrides": overrides, **provider}
    return [str(problem) for problem in check({"providers": [table]}, {}, BY_NAME)[0]]


@pytest.mark.parametrize(
    ("overrides", "provider", "told"),
    [
        (RATIO, {}, [f"{NEEDS} (profile base)"]),
        (RATIO, {"profile": "vllm"}, [f"{NEEDS} (profile vllm)"]),
        (RATIO, {"kind": "databricks", "base_url": "h"}, [f"{NEEDS} (profile databricks-gateway-codex)"]),
        (RATIO, {"base_url": "https://api.deepseek.com"}, [f"{NEEDS} (profile deepseek)"]),
        ({"request": {"chars_per_token": 3.5, "context_window": 9}}, {}, []),
        ({"request": {"context_window": 9}}, {}, []),
        ({"request": {"chars_per_token": False}}, {}, []),
        ({"wire": {"chat": False}}, {}, [f"{AT}.wire.chat: is off, and there is no other way"]),
        ({"wire": {"chat": False}}, {"wire": "responses"}, []),
        ({"wire": {"chat": False, "responses": "/responses"}}, {}, []),
        ({"wire": {"chat": False, "open_responses": "/open"}}, {}, []),
        (
            {"wire": {"chat": False, "responses": "/responses"}},
            {"wire": "chat"},
            [f'{AT}.wire.chat: is off, and `wire = "chat"` of the provider'],
        ),
        ({"wire": {"chat": False}}, {"profile": "openai"}, []),
        # Without an address of its own, where a tool of the vendor's finds it.
        (
            RATIO,
            {"kind": "databricks", "base_url": None, "auth": "sdk"},
            [f"{NEEDS} (profile databricks-gateway-codex)"],
        ),
        ({"num_ctx": 16384, "keep_alive": "5m"}, {"kind": "ollama"}, []),
        ({"num_ctx": 16384, **RATIO}, {"kind": "ollama"}, [f"{NEEDS} (profile ollama)"]),
        # Two at once, each once.
        ({"wire": {"chat": False}, **RATIO}, {}, [NEEDS, f"{AT}.wire.chat: is off"]),
    ],
)
def test_every_conflict_is_named_once(
    overrides: dict[str, Any], provider: dict[str, Any], told: list[str]
) -> None:
    found = problems(overrides, **provider)
    assert len(found) == len(told), found
    assert all(line.startswith(start) for line, start in zip(found, told, strict=True)), found


@pytest.mark.parametrize(
    ("overrides", "provider", "told"),
    [
        (RATIO, {"base_url": "nowhere"}, ["providers[0].base_url: must begin"]),
        (RATIO, {"base_url": 3}, ["providers[0].base_url: should be a valid string"]),
        (RATIO, {"profile": "vlm"}, ["providers[0].profile: no profile is named 'vlm', did you mean"]),
        (
            {"request": {"chars_per_tokn": 3.5, "chars_per_token": 3.5}},
            {},
            [f'{AT}.request.chars_per_tokn: unknown key, did you mean "chars_per_token"?'],
        ),
        ({}, {"nam": "x"}, ["providers[0].nam: unknown key"]),
        (RATIO, {"nam": "x"}, [NEEDS, "providers[0].nam: unknown key"]),
    ],
)
def test_what_cannot_be_merged_is_told_of_by_its_own_fault(
    overrides: dict[str, Any], provider: dict[str, Any], told: list[str]
) -> None:
    found = problems(overrides, **provider)
    assert len(found) == len(told), found
    assert all(line.startswith(start) for line, start in zip(found, told, strict=True)), found


@pytest.mark.parametrize("row", BY_NAME)
def test_no_built_in_row_has_a_conflict(row: str) -> None:
    found = list(reachable("openai", "h", row, {}))
    assert {profile.name for _, profile in found} == {row}
    assert not [problem for _, profile in found for problem in conflicts(profile)]


@pytest.mark.parametrize(
    ("kind", "host"), [("openai", "h"), ("databricks", "h"), ("openai", "api.openai.com")]
)
def test_reachable_is_what_some_model_gets(kind: str, host: str) -> None:
    names = {profile.name for _, profile in reachable(kind, host, None, {})}
    models = [
        "m",
        "gpt-5.5",
        "databricks-claude-opus-4-8",
        "databricks-gpt-5-4",
        "databricks-gemini-4",
        "x-oss",
    ]
    models += [glob.replace("*", "x") for row in ROWS for glob in row.models]
    assert names == {choose(kind, host, model).name for model in models}


def test_reachable_holds_rows_of_models_and_the_overrides() -> None:
    found = list(reachable("openai", "api.openai.com", None, {"request": {"context_window": 9}}))
    assert all(profile.request.context_window == 9 for _, profile in found)
    resolved = resolve(
        kind="openai",
        host="api.openai.com",
        model="chatgpt-4o",
        surface="chat",
        overrides={"request": {"context_window": 9}},
    )
    assert resolved.reasoning in [profile.reasoning for surface, profile in found if surface == "chat"]
