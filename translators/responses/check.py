"""What is refused of a Responses body in every lane: what cannot be right for any backend.

That is: the need for stored state, a value of the wrong JSON type, a required member that is
missing, a combination that says nothing (a choice among no tools). Unknown keys, types and words
pass, and so do most numbers out of OpenAI's range: a backend may know them.

The body is walked once, and nothing is built: what is plainly well written is told by type tests
alone. Anything else is given to the function that reads it for a translation, so that its fault
is told in the same words there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..errors import bad_request
from ..ir import Json
from ..params import BY_NAME
from ..request_rules import check_cache_options
from ..values import FLAG, LIST, NULL, OBJECT, STOP, STRING, STRINGS, Rule, integer, number
from .decode_items import RESULTS, read_thoughts, untyped
from .decode_parts import PART_TYPES, decode_content, decode_output, missing, string, wrong
from .decode_tools import decode_choice, read_tool

RULES: Mapping[str, Rule] = {
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), number(-2, 2)),
    "top_logprobs": integer("an integer between 0 and 20", 0, 20),
    **dict.fromkeys(("max_tokens", "max_tool_calls"), integer("an integer of at least 1", 1)),
    "seed": integer("an integer"),
    "stop": STOP,
    **dict.fromkeys(("parallel_tool_calls", "store", "logprobs"), FLAG),
    **dict.fromkeys(("effort", "summary", "verbosity", "reasoning_context", "reasoning_mode"), STRING),
    **dict.fromkeys(("user", "safety_identifier", "service_tier", "prompt_cache_key"), STRING),
    **dict.fromkeys(("prompt_cache_retention", "truncation"), STRING),
    **dict.fromkeys(("metadata", "format", "logit_bias", "prompt", "moderation"), OBJECT),
    **dict.fromkeys(("prompt_cache_options", "client_metadata"), OBJECT),
    "include": STRINGS,
    "context_management": LIST,
}
"""Neutral parameter -> what it may be. Ranges are those outside of which no backend answers."""

PATHS = {BY_NAME[name].pointer("responses")[1:]: rule for name, rule in RULES.items()}
KEYS: Mapping[str, Rule] = {
    **{path: rule for path, rule in PATHS.items() if "/" not in path},
    "input": Rule(frozenset({str, list}), "a string or a list of items"),
    "instructions": STRING,
    "reasoning_effort": STRING,
    **dict.fromkeys(("reasoning", "text", "stream_options"), OBJECT),
    "tools": LIST,
    "tool_choice": Rule(frozenset({str, dict}), "a string or an object"),
    "stream": FLAG,
}
_TRUNCATIONS = ("auto", "disabled")
_MODES = (None, "standard", "pro")
"""Of `reasoning.mode` (openai 3.57.0): how the effort is spent; no backend takes another word."""


def check_request(body: Json) -> None:
    """Raise 400 (`ProxyError`, with `param`) for what no backend of this shape can answer."""
    _refuse_state(body)
    for key, value in body.items():
        known = _KNOWN.get(key)
        if known is not None:
            types, check = known
            if type(value) not in types:
                _check_value(key, KEYS[key], value)
            elif check is not None and value is not None:
                check(value)
    if not body.get("input") and body.get("prompt") is None:
        _check_asks(body)
    if body.get("tool_choice") == "required":
        _check_required(body)


def _refuse_state(body: Json) -> None:
    """Fields that need stored responses are refused, never ignored."""
    previous = body.get("previous_response_id")
    if previous is not None:
        raise bad_request(
            f"Previous response {str(previous)[:80]!r} not found: responses are not stored here. "
            "Send the whole conversation in `input`.",
            "previous_response_id",
            "previous_response_not_found",
        )
    if body.get("conversation") is not None:
        raise bad_request(
            "`conversation` is not supported: send the whole conversation in `input`.", "conversation"
        )
    background = body.get("background")
    if not isinstance(background, bool | None):
        raise wrong("/background", FLAG.words)
    if background:
        why = (
            "needs `store`"
            if body.get("store") is False
            else "needs stored responses, and there are none here"
        )
        raise bad_request(f"`background` {why}: leave it out and stream the response instead.", "background")


def _check_asks(body: Json) -> None:
    if body.get("input") is None:
        raise missing("/input", "a string or a list of items")
    if body["input"] == [] and not body.get("instructions"):
        raise missing("/input", "at least one item")


def _check_value(path: str, rule: Rule, value: Any) -> None:
    """An empty string is as good as nothing where a parameter of the table is meant."""
    if value is not None and not rule.is_typed(value) and not (value == "" and path in PATHS):
        raise wrong(f"/{path}", rule.words)


# --- items -----------------------------------------------------------------------------

_TEXTS = frozenset({"input_text", "output_text", "summary_text", "reasoning_text"})
_WORDS = ("type", "role", "name", "namespace", "id", "call_id")
"""What says in words what a thing is, wherever it stands."""
_LISTS = ("content", "output", "tools")
"""Where further things stand in an item or a tool."""


def _check_input(given: Any) -> None:
    for index, item in enumerate(given if type(given) is list else ()):
        if type(item) is not dict:
            raise wrong(f"/input/{index}", "an object")
        kind = item.get("type")
        if kind is not None and type(kind) is not str:
            raise wrong(f"/input/{index}/type", "a string")
        for key, value in item.items():
            if type(value) is str or value is None or key not in _MEMBERS:
                continue
            if key not in _SPOKEN or not _is_text(value):
                _MEMBERS[key](value, kind, f"/input/{index}/{key}")
        if not kind:
            untyped(item, f"/input/{index}")
        elif kind in _PECULIAR:
            _check_kind(item, kind, index)


_CALLS = frozenset({"function_call", "custom_tool_call"})
_BRINGING = frozenset({"additional_tools", "tool_search_output"})
"""Items that bring tools of the request's own."""
_PECULIAR = _CALLS | _BRINGING | PART_TYPES


def _check_kind(item: Json, kind: str, index: int) -> None:
    at = f"/input/{index}"
    if kind in _CALLS:
        if not item.get("name"):
            raise missing(f"{at}/name", "the name of the tool that was called")
    elif kind in PART_TYPES:
        raise wrong(at, f'an item: put this `{kind}` into the `content` list of {{"role": "user", ...}}')
    elif item.get("tools") is not None:
        _check_tools(item["tools"], f"{at}/tools")


def _is_text(value: Any) -> bool:
    """Whether it is a list of text parts, as most are."""
    try:
        for part in value:
            if part["type"] not in _TEXTS or type(part["text"]) is not str:
                return False
    except (KeyError, TypeError):
        return False
    return type(value) is list


def _check_word(value: Any, kind: str | None, at: str) -> None:
    raise wrong(at, "a string")


def _check_content(value: Any, kind: str | None, at: str) -> None:
    _check_entries(value, at)
    if kind == "reasoning":
        read_thoughts(value, at)
    elif not kind or kind == "message":
        decode_content(value, at)


def _check_output(value: Any, kind: str | None, at: str) -> None:
    _check_entries(value, at)
    if kind in RESULTS:
        decode_output(value, at)


def _check_brought(value: Any, kind: str | None, at: str) -> None:
    if kind not in _BRINGING:
        _check_entries(value, at)


def _check_thought(value: Any, kind: str | None, at: str) -> None:
    if kind == "reasoning":
        read_thoughts(value, at)


def _check_seal(value: Any, kind: str | None, at: str) -> None:
    if kind == "reasoning":
        raise wrong(at, "a string")


_MEMBERS: Mapping[str, Callable[[Any, str | None, str], None]] = {
    **dict.fromkeys(_WORDS, _check_word),
    "content": _check_content,
    "output": _check_output,
    "tools": _check_brought,
    "summary": _check_thought,
    "encrypted_content": _check_seal,
}
"""Keys of items whose value is looked at where it is no string."""
_SPOKEN = frozenset({"content", "output", "summary"})


def _check_entries(entries: Any, at: str) -> None:
    """Things of whatever type: they say in words what they are, so that the rules can rely on it."""
    for index, entry in enumerate(entries if type(entries) is list else ()):
        _check_entry(entry, f"{at}/{index}")


def _check_entry(entry: Any, at: str) -> None:
    if type(entry) is not dict:
        raise wrong(at, "an object")
    for key in _WORDS:
        string(entry, key, at)
    for key in _LISTS:
        _check_entries(entry.get(key), f"{at}/{key}")


# --- tools -----------------------------------------------------------------------------


def _check_tools(tools: Any, at: str = "/tools") -> None:
    if type(tools) is not list:
        raise wrong(at, LIST.words)
    for index, tool in enumerate(tools):
        if not _is_tool(tool):
            _check_entry(tool, f"{at}/{index}")
            read_tool(tool, f"{at}/{index}")


def _is_tool(tool: Any) -> bool:
    """Whether it is a function with all that one has, or a namespace of such."""
    try:
        kind, name = tool["type"], tool["name"]
        if type(name) is not str or name == "":
            return False
        if kind == "namespace":
            return type(tool["tools"]) is list and all(map(_is_tool, tool["tools"]))
        strict = tool.get("strict")
        is_whole = type(tool["parameters"]) is dict and type(tool["description"]) is str
        return is_whole and kind == "function" and (strict is None or type(strict) is bool)
    except (KeyError, TypeError):
        return False


def _check_required(body: Json) -> None:
    """A call is forced of what is offered: by the request, an item of it, or a stored prompt."""
    if not body.get("tools") and body.get("prompt") is None and not any(_bring(body["input"])):
        decode_choice("required", ())


def _bring(items: Any) -> Iterator[bool]:
    return (bool(item.get("tools")) for item in (items if type(items) is list else ()))


# --- other members ---------------------------------------------------------------------


def _check_limit(limit: float) -> None:
    if limit < 1:
        raise wrong("/max_output_tokens", RULES["max_tokens"].words)


def _check_include(include: Any) -> None:
    _check_value("include", STRINGS, include)


def _check_stop(stop: Any) -> None:
    _check_value("stop", STOP, stop)


def _check_reasoning(asked: Json) -> None:
    _check_inner("reasoning", asked)
    _check_value("reasoning/generate_summary", STRING, asked.get("generate_summary"))
    if asked.get("mode") not in _MODES:
        raise wrong("/reasoning/mode", "'standard' or 'pro'")


def _check_truncation(asked: str) -> None:
    """What is done here about it has to be known: a word that means neither would be taken for `disabled`."""
    if asked not in _TRUNCATIONS:
        raise wrong("/truncation", "'auto' or 'disabled'")


def _check_text(text: Json) -> None:
    _check_inner("text", text)
    form = text.get("format")
    if form is not None and form != "":
        _check_format(form)


def _check_inner(holder: str, value: Json) -> None:
    for key, inner in value.items():
        rule = PATHS.get(f"{holder}/{key}")
        if rule is not None:
            _check_value(f"{holder}/{key}", rule, inner)


def _check_format(form: Json) -> None:
    kind = string(form, "type", "/text/format")
    if not kind:
        raise missing("/text/format/type", "text, json_object or json_schema")
    if kind == "json_schema":
        if not string(form, "name", "/text/format"):
            raise missing("/text/format/name", "a name for the schema")
        if not isinstance(form.get("schema"), dict):
            raise missing("/text/format/schema", "a JSON Schema object")


_INSIDE: Mapping[str, Callable[[Any], None]] = {
    "input": _check_input,
    "tools": _check_tools,
    "reasoning": _check_reasoning,
    "text": _check_text,
    "truncation": _check_truncation,
    "max_output_tokens": _check_limit,
    "include": _check_include,
    "prompt_cache_options": check_cache_options,
    "stop": _check_stop,
}
"""Keys of whose value more is asked than its type."""
_KNOWN = {key: (rule.types | {NULL}, _INSIDE.get(key)) for key, rule in KEYS.items()}
