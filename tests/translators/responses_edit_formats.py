"""Edits of the format of the answer: profile, body, what is sent, what is lost."""

from __future__ import annotations

from tests.translators.responses_items import CALL, JSON, NUDGE, RESULT, F, system, user
from tests.translators.responses_profiles import formats
from translators.ir import Json
from translators.profile import Profile

FORMATS: dict[str, tuple[Profile, Json, Json, list[str]]] = {
    "a schema told in words": (
        formats(json_schema="prompt"),
        {
            "instructions": "Be brief.",
            "text": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        },
        {
            "instructions": "Be brief.\n\nAnswer with JSON that matches this JSON Schema, and with nothing "
            'else:\n{"type":"object"}'
        },
        [],
    ),
    "a schema told in words alone": (
        formats(json_schema="prompt"),
        {"text": {"format": {"type": "json_schema", "schema": {}}, "verbosity": "low"}},
        {
            "instructions": "Answer with JSON that matches this JSON Schema, and with nothing else:\n{}",
            "text": {"verbosity": "low"},
        },
        [],
    ),
    "a schema left out": (
        formats(json_schema="drop"),
        {"text": {"format": {"type": "json_schema"}}},
        {},
        ["/text/format"],
    ),
    "JSON left out": (
        formats(json_object="drop"),
        {"text": {"format": {"type": "json_object"}}},
        {},
        ["/text/format"],
    ),
    "a format not with tools": (
        formats(with_tools=False),
        {"text": {"format": {"type": "json_object"}}, "tools": [F]},
        {"tools": [F]},
        ["/text/format"],
    ),
    "a format not in a stream": (
        formats(with_stream=False),
        {"text": {"format": {"type": "json_object"}}, "stream": True},
        {"stream": True},
        ["/text/format"],
    ),
    "the word in a string": (
        formats(needs_json_word=True),
        {"input": "a list", "text": {"format": {"type": "json_object"}}},
        {"input": "a list Respond with a JSON object.", "text": {"format": {"type": "json_object"}}},
        [],
    ),
    "the word where nobody says it": (
        formats(needs_json_word=True),
        {
            "input": [system("json", "developer"), {**CALL, "arguments": "json"}, RESULT, "junk"],
            "text": {"format": {"type": "json_object"}},
        },
        {
            "input": [
                system("json", "developer"),
                {**CALL, "arguments": "json"},
                RESULT,
                "junk",
                user("Respond with a JSON object."),
            ],
            "text": {"format": {"type": "json_object"}},
        },
        [],
    ),
    "the word in the last user message": (
        formats(needs_json_word=True),
        {"input": [user("a"), {"role": "user", "content": "b"}, CALL, RESULT], "text": JSON},
        {
            "input": [
                user("a"),
                {"role": "user", "content": "b Respond with a JSON object."},
                CALL,
                RESULT,
            ],
            "text": JSON,
        },
        [],
    ),
    "the word in a list of parts": (
        formats(needs_json_word=True),
        {"input": [user("a")], "text": JSON},
        {"input": [{**user("a"), "content": [*user("a")["content"], NUDGE]}], "text": JSON},
        [],
    ),
    "the word that is there": (
        formats(needs_json_word=True),
        {"input": "some JSON", "text": {"format": {"type": "json_object"}}},
        {"input": "some JSON", "text": {"format": {"type": "json_object"}}},
        [],
    ),
    "the word in a message": (
        formats(needs_json_word=True),
        {"input": [user("some JSON")], "text": {"format": {"type": "json_object"}}},
        {"input": [user("some JSON")], "text": {"format": {"type": "json_object"}}},
        [],
    ),
    "the word without input": (
        formats(needs_json_word=True),
        {"text": {"format": {"type": "json_object"}}},
        {"input": [user("Respond with a JSON object.")], "text": {"format": {"type": "json_object"}}},
        [],
    ),
}
