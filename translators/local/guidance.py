"""What the client demands of an answer, as a grammar for the local engine.

`tool_choice` required or named, `response_format`: the engine masks every token that the
grammar does not allow (onnxruntime-genai `set_guidance`, which is llguidance). Where the choice
is left to the model there is no grammar: nothing outside its weights may make it call a tool.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from translators.errors import bad_request
from translators.ir import Json

from .call_grammars import FORMATS, Rules, named
from .families import Family
from .grammar_schema import grammar_schema

_PAUSE = "/\\n{0,2}/"
"""Between a thought and what follows; most models were trained on two line feeds."""
_RESUME = {"harmony": "<|start|>assistant"}
"""What must stand between the end of a thought and the next message, by family."""
_ANSWER = {"harmony": "<|channel|>final<|message|>"}
"""What begins an answer, by family."""


@dataclass(frozen=True, slots=True)
class Guidance:
    """The two arguments of `set_guidance`."""

    kind: Literal["json_schema", "regex", "lark_grammar"]
    text: str


def guidance(
    family: Family,
    tools: Sequence[Json] | None,
    tool_choice: Any,
    response_format: Json | None,
    parallel: bool = True,
    thinking: bool = False,
    *,
    thinking_open: bool = False,
    special_ids: Mapping[str, int] | None = None,
) -> Guidance | None:
    """The grammar for a Chat Completions request; None where the answer is free.

    `thinking`: the answer may begin with a thought; `thinking_open`: the prompt has begun one,
    so it must end first. `special_ids` are the tokeniser's special tokens. Raises 400
    (`tool_choice`, `tools[i].function.parameters`, `response_format`) for what no grammar says.
    """
    forced, names = _forced(tool_choice)
    schema = None if forced else _format_schema(response_format)
    if not forced and schema is None:
        return None
    offered = named(tools or (), names)
    if forced and not offered:
        raise bad_request(_NONE_OFFERED, "tool_choice")
    rules = Rules(special_ids or {})
    thought = _thought(rules, family, thinking, thinking_open)
    if forced:
        return _lark(rules, thought, _calls(rules, family, offered, parallel))
    callable_ = offered if tool_choice != "none" and family.name in FORMATS else []
    answer = _answer(rules, family, schema or {})
    if callable_:
        answer = f"({answer} | {_calls(rules, family, callable_, parallel)})"
    elif not thought and family.name not in _ANSWER:
        return Guidance("json_schema", orjson.dumps(schema).decode())
    return _lark(rules, thought, answer)


_NONE_OFFERED = "tool_choice demands a tool that is not in 'tools': offer it, or choose 'auto'."


def demanded_guidance(
    family: Family,
    kind: str,
    value: Any,
    thinking: bool = False,
    *,
    thinking_open: bool = False,
    special_ids: Mapping[str, int] | None = None,
) -> Guidance:
    """The grammar for what `demanded` found, but for a schema. Raises 400 (`structured_outputs`)."""
    if kind == "grammar":
        if thinking_open or family.name in _ANSWER:
            raise bad_request(_NO_ROOM, "structured_outputs.grammar")
        return Guidance("lark_grammar", value)
    rules = Rules(special_ids or {})
    thought = _thought(rules, family, thinking, thinking_open)
    opening = rules.literal(_ANSWER.get(family.name, ""))
    if kind == "regex" and not thought and not opening:
        return Guidance("regex", value)
    pattern = value if kind == "regex" else "|".join(map(re.escape, value))
    written = pattern.replace("/", r"\/").replace("\n", r"\n")
    return _lark(rules, thought, f"{opening} /{written}/".strip())


_NO_ROOM = (
    "A grammar leaves no room for the thought that this model begins with: "
    "turn it off (reasoning_effort 'none'), or demand a regex."
)


def _lark(rules: Rules, thought: str, rest: str) -> Guidance:
    return Guidance("lark_grammar", rules.text(f"{thought} {rest}".strip()))


def _forced(choice: Any) -> tuple[bool, list[str] | None]:
    """Whether a call is demanded, and of which tools (None: of any)."""
    if choice == "required":
        return True, None
    if not isinstance(choice, dict):
        return False, None
    allowed = choice.get("allowed_tools")
    if isinstance(allowed, dict):
        held = [each for each in allowed.get("tools") or () if isinstance(each, dict)]
        return allowed.get("mode") == "required", [_name(each) for each in held]
    return True, [_name(choice)]


def _name(choice: Json) -> str:
    function = choice.get("function")
    return str(function.get("name", "") if isinstance(function, dict) else choice.get("name", ""))


def _format_schema(response_format: Json | None) -> Json | None:
    kind = (response_format or {}).get("type")
    if kind == "json_object":
        return grammar_schema({"type": "object"}, strict=True, param="response_format")
    if kind != "json_schema":
        return None
    told = (response_format or {}).get("json_schema")
    if not isinstance(told, dict):
        raise bad_request("response_format has no json_schema.", "response_format")
    return grammar_schema(told.get("schema", {}), strict=bool(told.get("strict")), param="response_format")


def _thought(rules: Rules, family: Family, thinking: bool, is_open: bool) -> str:
    """What may, or must, come before the answer; "" for nothing."""
    if not family.thoughts or not (thinking or is_open):
        return ""
    begin, end = family.thoughts[0]
    resume = rules.literal(_RESUME.get(family.name, "")) or _PAUSE
    rest = f"{rules.until('thought', end)} {resume}"
    return rest if is_open else f"({rules.literal(begin)} {rest})?"


def _answer(rules: Rules, family: Family, schema: Json) -> str:
    return f"{rules.literal(_ANSWER.get(family.name, ''))} {rules.json('answer', schema)}".strip()


def _calls(rules: Rules, family: Family, offered: Sequence[tuple[int, Json]], parallel: bool) -> str:
    format = FORMATS.get(family.name)
    if format is None:
        raise bad_request(
            f"This model's call format ({family.name}) cannot be demanded by a grammar: "
            "use tool_choice 'auto'.",
            "tool_choice",
        )
    return rules.calls(format, offered, parallel)
