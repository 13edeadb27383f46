"""Secrets and inner addresses never reach the client in an error."""

from __future__ import annotations

import pytest

from tests.translators.error_replies import decode, openai
from translators.redaction import MAX_LENGTH, redact

PRIVATE: list[tuple[str, str]] = [
    ("key sk-proj-abc123*********wxyz!", "key [redacted]!"),
    ("token dapi0123456789abcdef0123456789abcdef-2.", "token [redacted]."),
    ("Authorization: Bearer abc.def-ghi", "Authorization: [redacted]"),
    ("AIzaSyA1234567890abcdef", "[redacted]"),
    ("AKIAIOSFODNN7EXAMPLE used", "[redacted] used"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "[redacted]"),
    ("in organization org-AbCdEf123456 on", "in organization [redacted] on"),
    ("hash 0123456789abcdef0123456789abcdef", "hash [redacted]"),
    ("secret xK9vT2mQ8wR4yL6nB1cD3fG5hJ7kP0sA2dF4gH6j=", "secret [redacted]"),
    ("Incorrect API key provided: up-key-7.", "Incorrect API key provided: [redacted]"),
    ('"api_key": x, api_key="abcdefghijklmnopqrst"', '"api_key": x, api_key="[redacted]"'),
    ("at http://10.1.2.3:8000/v1/chat", "at [redacted]"),
    ("at https://vllm:8000/v1.", "at [redacted]"),
    ("at http://localhost/v1", "at [redacted]"),
    ("at https://models.internal/v1", "at [redacted]"),
    ("at https://user:pw@[::1]/x", "at [redacted]"),
    ("connect to 10.0.0.7:11434 failed", "connect to [redacted] failed"),
    ("host model.ns.svc.cluster.local:80 down", "host [redacted] down"),
]
PUBLIC = [
    "See https://platform.openai.com/account/api-keys.",
    "maximum context length is 40960 tokens",
    "messages.1.content.0.tool_use_id is not valid",
    "invalid response_format.json_schema.schema: additionalProperties_must_be_false_for_all_Objects_2",
    "key_name_of_a_parameter and key-value stores",
    "call_01ABCabc not found",
    "api_key: Extra inputs are not permitted",
    "max_tokens: 100000 is too large",
    "",
]


@pytest.mark.parametrize(("text", "wanted"), PRIVATE)
def test_secrets_and_inner_addresses_are_masked(text: str, wanted: str) -> None:
    assert redact(text) == wanted


@pytest.mark.parametrize("text", PUBLIC)
def test_useful_words_stay(text: str) -> None:
    assert redact(text) == text


def test_what_the_caller_hides() -> None:
    assert (
        redact("at https://w.example.com/x with k3y", ("w.example.com", "k3y", ""))
        == "at [redacted] with [redacted]"
    )
    assert decode(500, openai("host h.example down"), hide=("h.example",)).message == "host [redacted] down"


def test_messages_have_a_limit() -> None:
    assert len(redact("x " * 9000)) == MAX_LENGTH
    assert redact("x " * 9000).endswith("…")
