"""The wordings of refusals, as they were met: which field, or which value of it."""

from __future__ import annotations

import time

import pytest

from translators.rejection_words import Named, read_words

FIELDS = [
    # Databricks: Anthropic's models, Go's decoder, the Open Responses surface
    ("parallel_tool_calls: Extra inputs are not permitted", ["parallel_tool_calls"]),
    ("tools.0.custom.strict: Extra inputs are not permitted", ["tools.0.custom.strict"]),
    ("messages.98.thinking_blocks: Extra inputs are not permitted", ["messages.98.thinking_blocks"]),
    ('Bad request: json: unknown field "parallel_tool_calls"\n', ["parallel_tool_calls"]),
    (
        "INVALID_PARAMETER_VALUE: This model does not support the 'parallel_tool_calls' parameter for "
        "the Open Responses API.",
        ["parallel_tool_calls"],
    ),
    ("This model does not support 'reasoning' for the Open Responses API.", ["reasoning"]),
    ("Model databricks-claude-opus-4-7 does not support the temperature parameter.", ["temperature"]),
    # OpenAI and Azure
    ("Unknown parameter: 'input[1].content[0].annotations'.", ["input[1].content[0].annotations"]),
    ("Unsupported parameter: 'temperature' is not supported with this model.", ["temperature"]),
    ("Unsupported parameter: metadata", ["metadata"]),
    ("Unrecognized request argument supplied: store", ["store"]),
    ("Unrecognized request arguments supplied: store, user", ["store", "user"]),
    # NVIDIA NIM, Groq, Google, jsonschema, serde
    ("Validation: Unsupported parameter(s): `tool_stream`", ["tool_stream"]),
    ("Unsupported parameter(s): `a`, `b` and `c`", ["a", "b", "c"]),
    ("property 'metadata' is unsupported", ["metadata"]),
    ("'messages.2' : for 'role:assistant' (property 'reasoning' is unsupported)", ["reasoning"]),
    ("`logit_bias` is not supported with this model", ["logit_bias"]),
    ("The parameter top_k is not supported", ["top_k"]),
    ('Invalid JSON payload received. Unknown name "store": Cannot find field.', ["store"]),
    ("Additional properties are not allowed ('store', 'user' were unexpected)", ["store", "user"]),
    ("unknown field `store`, expected one of `model`, `messages`", ["store"]),
    # pydantic: FastAPI's faults joined, its own text, vLLM's quotation of it
    (
        "messages.0.name: Extra inputs are not permitted; store: Extra inputs are not permitted",
        ["messages.0.name", "store"],
    ),
    ("1 validation error for Request\nstream_options\n  Extra inputs are not permitted", ["stream_options"]),
    ("1 validation error\nfoo\n  extra fields not permitted (type=value_error.extra)", ["foo"]),
    (
        "[{'type': 'extra_forbidden', 'loc': ('body', 'messages', 0, 'name'), 'msg': 'Extra inputs are not "
        "permitted', 'input': 'x'}]",
        ["body.messages.0.name"],
    ),
]

VALUES = [
    (
        "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values "
        "are: 'low', 'medium', and 'high'.",
        Named("reasoning_effort", True, ("low", "medium", "high"), said="minimal"),
    ),
    (
        "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value "
        "is supported.",
        Named("temperature", True, said="0.2"),
    ),
    (
        "reasoning_effort: Input should be 'low', 'medium' or 'high'",
        Named("reasoning_effort", True, ("low", "medium", "high")),
    ),
    ("`reasoning_effort` must be one of `low`, `high`", Named("reasoning_effort", True, ("low", "high"))),
    (
        "'none' is not one of ['low', 'high'] - 'reasoning_effort'",
        Named("reasoning_effort", True, ("low", "high"), said="none"),
    ),
    ("temperature: Input should be less than or equal to 1", Named("temperature", True, high=1)),
    ("top_p: Input should be greater than or equal to 0.1", Named("top_p", True, low=0.1)),
    (
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 1, but got 1.5 instead.",
        Named("temperature", True, high=1),
    ),
    (
        "Invalid 'presence_penalty': decimal below minimum value. Expected a value >= 0, but got -1 instead.",
        Named("presence_penalty", True, low=0),
    ),
]

SILENT = [
    "Responses API passthrough is not supported for model databricks-claude",
    "Anthropic does not support tool type 'web_search'. Only 'function' is supported.",
    "This model does not support assistant message prefill. The conversation must end with a user message.",
    "messages.3.content.0: Invalid `data` in `redacted_thinking` block",
    "Compiled grammar size (486.7MB) exceeds maximum allowed size (300MB)",
    "Multiple tool calls are not supported.\n",
    "Missing 'function' in the tool specification",
    "This response_format type is unavailable now",
    "Thinking mode does not support this tool_choice",
    "The reasoning_content in the thinking mode must be passed back to the API.",
    "Invalid value: 'fast'",
    "",
]


@pytest.mark.parametrize(("message", "fields"), FIELDS)
def test_a_refused_field_is_read(message: str, fields: list[str]) -> None:
    assert [named.field for named in read_words(message)] == fields
    assert not any(named.value for named in read_words(message))


@pytest.mark.parametrize(("message", "named"), VALUES)
def test_a_refused_value_is_read(message: str, named: Named) -> None:
    assert read_words(message) == (named,)


@pytest.mark.parametrize("message", SILENT)
def test_other_faults_name_no_field(message: str) -> None:
    assert read_words(message) == ()


def test_the_errors_param_names_what_the_words_do_not() -> None:
    listed = "Invalid value: 'minimal'. Supported values are: 'low' and 'high'."
    named = Named("reasoning.effort", True, ("low", "high"), said="minimal")
    assert read_words(listed, "reasoning.effort") == (named,)
    assert read_words("No.", "store", "unsupported_parameter") == (Named("store"),)
    assert read_words("No.", "store", "invalid_type") == ()
    assert read_words("No.", None, "unsupported_parameter") == ()


@pytest.mark.parametrize("text", ["a" * 2000, "a." * 1000, "'a' " * 500, "unknown field " * 140, "x, " * 600])
def test_long_words_cost_little(text: str) -> None:
    """An error's text is cut at 2,000 characters; none of them may hold up the event loop."""
    began = time.thread_time()
    read_words(text)
    assert time.thread_time() - began < 0.1
