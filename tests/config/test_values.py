"""Addresses, environment references, override tables and lines, each by itself."""

from __future__ import annotations

from typing import Any

import pytest

from config.address import normalise
from config.environment import substitute
from config.lines import find_line
from config.overrides import find_problems, sections, without_false
from config.problems import Problem

ADDRESSES = [
    ("openai", "http://h:8000/v1", "http://h:8000/v1"),
    ("openai", "http://h/v1/", "http://h/v1"),
    ("openai", " https://h/v1// ", "https://h/v1"),
    ("openai", "http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ("openai", "https://h", "https://h"),
    ("databricks", "dbc-1.cloud.databricks.com", "https://dbc-1.cloud.databricks.com"),
    ("databricks", "https://dbc-1.cloud.databricks.com/", "https://dbc-1.cloud.databricks.com"),
    ("databricks", "https://adb-1.azuredatabricks.net/?o=123#x", "https://adb-1.azuredatabricks.net"),
    ("databricks", "https://h/serving-endpoints", "https://h"),
    ("databricks", "https://h/serving-endpoints/chat/completions", "https://h"),
    ("databricks", "https://h/dbx/ai-gateway/codex/v1", "https://h/dbx"),
    ("databricks", "http://127.0.0.1:9911", "http://127.0.0.1:9911"),
    ("ollama", "localhost:11434", "http://localhost:11434"),
]


@pytest.mark.parametrize(("kind", "given", "taken"), ADDRESSES)
def test_addresses_get_one_form(kind: str, given: str, taken: str) -> None:
    assert normalise(given, kind) == taken
    assert normalise(taken, kind) == taken


BAD_ADDRESSES = [
    ("openai", "localhost:8000/v1", "must begin with http"),
    ("openai", "ftp://h/v1", "must begin with http"),
    ("openai", "https://user:sk-secret@h/v1", "put the key into api_key"),
    ("openai", "http://", "no valid host"),
    ("openai", "http://h:port/v1", "no valid host and port"),
    ("openai", "http://h:0/v1", "no valid host and port"),
    ("openai", "https://h/v1?api-version=1", "must not hold a query"),
    ("openai", "https://h/v1#x", "must not hold a query"),
    ("openai", "https://h/v1/chat/completions", "must end before /chat/completions"),
    ("openai", "https://h/v1/responses/", "must end before /responses"),
]


@pytest.mark.parametrize(("kind", "given", "told"), BAD_ADDRESSES)
def test_bad_addresses_say_what_to_change(kind: str, given: str, told: str) -> None:
    with pytest.raises(ValueError, match=told) as caught:
        normalise(given, kind)
    assert "secret" not in str(caught.value)


REFERENCES: list[tuple[Any, Any, list[str]]] = [
    ("${A}", "one", []),
    ("x${A}y${B}", "xoneytwo", []),
    ("$A ${A}$", "$A one$", []),
    ("$${A}", "${A}", []),
    ({"k": ["${A}", 3, True]}, {"k": ["one", 3, True]}, []),
    ("${NONE}", "${NONE}", [": environment variable NONE is not set"]),
    ({"k": ["", "${NONE}-${NIL}"]}, {"k": ["", "${NONE}-${NIL}"]}, ["k[1]", "k[1]"]),
    ("${A", "${A", [": ${ is never closed"]),
    ("${}", "${}", [": ${} does not name"]),
    ("${A:-x}", "${A:-x}", [": ${A:-x} does not name"]),
    ("${NIL}", "${NIL}", [": environment variable NIL is empty"]),
]


@pytest.mark.parametrize(("raw", "filled", "faults"), REFERENCES, ids=lambda value: str(value)[:30])
def test_references_are_filled_in(raw: Any, filled: Any, faults: list[str]) -> None:
    problems: list[Problem] = []
    assert substitute(raw, {"A": "one", "B": "two", "NIL": ""}, problems) == filled
    assert len(problems) == len(faults)
    assert all(fault.lstrip(": ") in str(problem) for fault, problem in zip(faults, problems, strict=True))


def test_a_value_that_looks_like_a_reference_is_not_filled_again() -> None:
    assert substitute("${A}", {"A": "${B}", "B": "x"}, []) == "${B}"


OVERRIDES: list[tuple[dict[str, Any], str, list[str]]] = [
    ({}, "openai", []),
    ({"request": {"drop": ["metadata"], "rename": {"any": "key"}, "force": {"x": {"y": 1}}}}, "openai", []),
    ({"reasoning": {"tags": False, "map": {"a": "b"}}, "tools": {"max": False}}, "openai", []),
    ({"wire": {"responses": False, "models": {"path": False}}}, "openai", []),
    ({"num_ctx": 4096, "keep_alive": -1}, "ollama", []),
    ({"num_ctx": 4096}, "openai", ["num_ctx: is for providers of kind ollama and onnx only"]),
    ({"num_ctx": "many"}, "ollama", ["num_ctx: should be a number"]),
    ({"keep_alive": True}, "ollama", ["keep_alive: should be a duration or seconds"]),
    ({"name": "x"}, "openai", ["name: unknown key"]),
    ({"drop": ["x"]}, "openai", ['drop: unknown key, did you mean "request.drop"?']),
    ({"reqest": {}}, "openai", ['reqest: unknown key, did you mean "request"?']),
    (
        {"tools": {"choice": {"requird": "auto"}}},
        "openai",
        ['tools.choice.requird: unknown key, did you mean "required"?'],
    ),
    ({"messages": {"system": "one"}}, "openai", ["messages.system: should be 'many', 'merge_leading'"]),
    ({"messages": {"drop_empty_text": "often"}}, "openai", ["messages.drop_empty_text: should be a valid"]),
    ({"request": {"drop": "metadata"}}, "openai", ["request.drop: should be a list"]),
    (
        {"request": {"stream_options": False}},
        "openai",
        ["request.stream_options: should be 'keep' or 'drop'"],
    ),
    ({"reasoning": {"tags": ["<t>"]}}, "openai", ["reasoning.tags[1]: Field required"]),
    ({"reasoning": 3}, "openai", ["reasoning: should be"]),
]


@pytest.mark.parametrize(("table", "kind", "told"), OVERRIDES, ids=range(len(OVERRIDES)))
def test_override_tables_are_checked(table: dict[str, Any], kind: str, told: list[str]) -> None:
    found = [str(problem) for problem in find_problems(table, kind)]
    assert len(found) == len(told), found
    assert all(line.startswith(start) for line, start in zip(found, told, strict=True)), found


def test_false_turns_off_what_may_be_none_and_nothing_else() -> None:
    table = {
        "reasoning": {"tags": False, "drop_sampling": False},
        "request": {"force": {"x": False}},
        "answer": {"finish_map": {"stop": False}},
        "num_ctx": 3,
    }
    assert without_false(table) == {
        "reasoning": {"tags": None, "drop_sampling": False},
        "request": {"force": {"x": False}},
        "answer": {"finish_map": {"stop": None}},
        "num_ctx": 3,
    }


def test_sections_are_the_public_names() -> None:
    assert sections() == (
        "auth",
        "wire",
        "request",
        "messages",
        "tools",
        "output_format",
        "reasoning",
        "answer",
        "errors",
    )


TOML = """\
top = 1
[server]
host = "h"   # comment
api_keys = [
  "a",
]
[[providers]]
name = "a"
[providers.overrides]
request = {drop = []}
[providers.overrides.tools]
max = 3
[[providers]]
"name" = "b"
overrides.tools.max = 3
[ aliases ]
"a/b" = "c"
'q' = "c"
"""
LINES = [
    (("top",), 1),
    (("server",), 2),
    (("server", "host"), 3),
    (("server", "api_keys", 1), 4),
    (("server", "absent"), 2),
    (("providers",), 7),
    (("providers", 0), 7),
    (("providers", 0, "name"), 8),
    (("providers", 0, "overrides", "request", "drop"), 10),
    (("providers", 0, "overrides", "tools", "max"), 12),
    (("providers", 1, "name"), 14),
    (("providers", 1, "overrides", "tools", "max"), 15),
    (("providers", 1, "kind"), 13),
    (("aliases", "a/b"), 17),
    (("aliases", "q"), 18),
    (("nowhere",), None),
    ((), None),
]


@pytest.mark.parametrize(("place", "line"), LINES, ids=lambda value: str(value))
def test_places_have_lines(place: tuple[str | int, ...], line: int | None) -> None:
    assert find_line(TOML, place) == line
