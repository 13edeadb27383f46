"""Which row a model gets, in which order layers win, and the whole resolved matrix."""

from __future__ import annotations

import dataclasses
from typing import Any, get_type_hints

import pytest
from pydantic import ValidationError

from providers.profiles import BY_NAME, ROWS, choose, matches_any, resolve
from providers.rows import BASE, WIRES, Layer
from translators.profile import FREE_FORM, Profile

from .profile_matrix import DATABRICKS, SNAPSHOT, dump, matrix

CHOICES = [
    ("openai", "127.0.0.1", "m", "base"),
    ("openai", "api.openai.com", "anything", "openai"),
    ("openai", "API.OpenAI.com", "anything", "openai"),
    ("openai", "api.openai.com.evil.example", "anything", "base"),
    ("openai", DATABRICKS, "databricks-claude-opus-4-8", "databricks-claude"),
    ("openai", "x.cloud.databricks.com", "databricks-gpt-5-4", "databricks-gpt"),
    ("openai", "x.gcp.databricks.com", "databricks-meta-llama-3-3-70b-instruct", "databricks-oss"),
    ("databricks", "127.0.0.1", "databricks-claude-opus-4-8", "databricks-claude"),
    ("databricks", "127.0.0.1", "databricks-gpt-oss-120b", "databricks-oss"),
    ("databricks", "127.0.0.1", "databricks-meta-llama-3-3-70b-instruct", "databricks-oss"),
    ("databricks", "127.0.0.1", "system.ai.gpt-5-6-sol", "databricks-gateway-gpt"),
    ("databricks", "127.0.0.1", "system.ai.gpt-5-3-codex", "databricks-gateway-codex"),
    ("databricks", "127.0.0.1", "main.claude_team.my-llama", "databricks-gateway-oss"),
    ("databricks", "127.0.0.1", "gpt-5.4", "databricks-gpt"),
    ("databricks", "127.0.0.1", "DATABRICKS-GPT-5", "databricks-gpt"),
    ("databricks", "127.0.0.1", "databricks-o3", "databricks-gpt"),
    ("databricks", "127.0.0.1", "databricks-gemini-3-8-flash", "databricks-gemini"),
    ("databricks", "127.0.0.1", "rig-model", "databricks-oss"),
    ("databricks", "api.openai.com", "rig-model", "databricks-oss"),
    ("databricks", "127.0.0.1", "", "databricks-oss"),
    ("openai", "bedrock-runtime.us-east-1.amazonaws.com", "m", "bedrock-openai"),
    ("ollama", "127.0.0.1", "m", "ollama"),
]


@pytest.mark.parametrize(("kind", "host", "model", "row"), CHOICES)
def test_a_row_is_chosen_by_kind_then_host_then_model(kind: str, host: str, model: str, row: str) -> None:
    assert choose(kind, host, model).name == row
    assert resolve(kind=kind, host=host, model=model, surface="chat").name == row


RAISED = [
    "databricks-gpt-5-3-codex",
    "databricks-gpt-5-4",
    "gpt-5.5-pro",
    "system.ai.gpt-5-6-sol",
    "gpt-6-luna",
]
NOT_RAISED = ["databricks-gpt-5", "databricks-gpt-5-1", "databricks-gpt-5-mini", "databricks-o3"]


@pytest.mark.parametrize("model", RAISED + NOT_RAISED)
def test_newer_gpts_on_databricks_take_responses_only(model: str) -> None:
    profile = resolve(kind="databricks", host="h", model=model, surface="chat")
    assert matches_any(model, profile.wire.responses_only) is (model in RAISED)


def test_every_named_row_is_there() -> None:
    assert len(ROWS) == 35
    assert len(BY_NAME) == 36


def test_a_named_row_wins_over_the_chosen_one() -> None:
    profile = resolve(
        kind="databricks", host="h", model="databricks-claude-x", surface="chat", profile="vllm"
    )
    assert profile.name == "vllm"
    with pytest.raises(KeyError):
        resolve(kind="openai", host="h", model="m", surface="chat", profile="no-such-row")


def test_the_configuration_wins_and_lists_replace_while_tables_merge() -> None:
    overrides = {
        "request": {"drop": ["metadata"], "rename": {"a": "b"}},
        "reasoning": {"tags": None},
        "tools": {"choice": {"required": "auto"}},
    }
    profile = resolve(kind="databricks", host="h", model="claude", surface="chat", overrides=overrides)
    assert profile.request.drop == ("metadata",)
    assert profile.request.rename == {"max_completion_tokens": "max_tokens", "a": "b"}
    assert profile.reasoning.tags is None
    assert (profile.tools.choice.required, profile.tools.choice.with_thinking) == ("auto", "auto")


def test_equal_questions_share_one_profile() -> None:
    first = resolve(kind="databricks", host="h", model="claude-a", surface="chat", overrides={})
    assert first is resolve(kind="openai", host=DATABRICKS, model="claude-b", surface="chat")


def test_a_bad_override_does_not_pass() -> None:
    with pytest.raises(ValidationError):
        resolve(kind="openai", host="h", model="m", surface="chat", overrides={"messages": {"system": "x"}})


def _layers() -> list[Any]:
    rows = [pytest.param(row.layer, id=row.name) for row in ROWS]
    on = [
        pytest.param(layer, id=f"{row.name} {surface}")
        for row in ROWS
        for surface, layer in row.surfaces.items()
    ]
    wires = [pytest.param(layer, id=f"wire {surface}") for surface, layer in WIRES.items()]
    return [pytest.param(BASE, id="base"), *wires, *rows, *on]


@pytest.mark.parametrize("layer", _layers())
def test_rows_hold_only_known_keys(layer: Layer) -> None:
    """Unknown keys of a layer would be ignored by the merge, so a typing error would be silent."""
    assert list(_unknown(layer, Profile, "")) == []


def _unknown(table: Any, cls: Any, place: str) -> Any:
    hints = get_type_hints(cls)
    for key, value in table.items():
        if key not in hints:
            yield place + key
        elif dataclasses.is_dataclass(hints[key]) and f"{place}{key}" not in FREE_FORM:
            yield from _unknown(value, hints[key], f"{place}{key}.")


def test_the_resolved_matrix_is_pinned() -> None:
    """After a deliberate change: `python -m tests.providers.profile_matrix`, and read the diff."""
    assert dump(matrix()) == SNAPSHOT.read_text()
