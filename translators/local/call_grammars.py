"""How each family's calls are spelled, as rules of a Lark grammar.

A rule's text is made of literals (JSON strings; ids for special tokens, which no text spells),
of `%json {schema}` and of free text that ends at a mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from translators.ir import Json
from translators.schema import inline_refs

from .grammar_schema import parameters_schema

Arguments = Literal["json", "parameter_tags", "arg_keys", "python", "gemma"]


@dataclass(frozen=True, slots=True)
class CallFormat:
    """One call is `call` with its `{name}`, `{arguments}` and `{index}` filled in.

    Several are joined by `separator` (None: one is all a turn can hold), all of them stand
    between `before` and `after`. `quoted`: the name is the inside of a JSON string. `quote`:
    what stands around texts in place of JSON's sign.
    """

    call: str
    separator: str | None = "\n"
    before: str = ""
    after: str = ""
    arguments: Arguments = "json"
    quoted: bool = False
    quote: str = '"'


_OBJECT = '{"name": "{name}", "arguments": {arguments}}'
_TOOL_CALL = f"<tool_call>\n{_OBJECT}\n</tool_call>"

FORMATS: Mapping[str, CallFormat] = {
    "hermes": CallFormat(_TOOL_CALL, quoted=True),
    "qwen3_coder": CallFormat(
        "<tool_call>\n<function={name}>\n{arguments}</function>\n</tool_call>", arguments="parameter_tags"
    ),
    "glm45": CallFormat("<tool_call>{name}\n{arguments}</tool_call>", arguments="arg_keys"),
    "llama3_json": CallFormat('{"name": "{name}", "parameters": {arguments}}', "; ", quoted=True),
    "mistral": CallFormat("[TOOL_CALLS]{name}[ARGS]{arguments}", ""),
    "mistral_v3": CallFormat(_OBJECT, ", ", "[TOOL_CALLS][", "]", quoted=True),
    "phi": CallFormat(_OBJECT, ", ", "functools[", "]", quoted=True),
    "phi4_mini": CallFormat(_OBJECT, ", ", "<|tool_call|>[", "]<|/tool_call|>", quoted=True),
    "deepseek_v3": CallFormat(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```<｜tool▁call▁end｜>",
        "\n",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
    ),
    "deepseek_v31": CallFormat(
        "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>",
        "",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁end｜>",
    ),
    "kimi_k2": CallFormat(
        "<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>",
        "",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
    ),
    "harmony": CallFormat(
        "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}<|call|>", None
    ),
    "pythonic": CallFormat("{name}({arguments})", ", ", "[", "]", "python"),
    "llama4_pythonic": CallFormat("{name}({arguments})", ", ", "[", "]", "python"),
    "lfm2": CallFormat(
        "{name}({arguments})", ", ", "<|tool_call_start|>[", "]<|tool_call_end|>", arguments="python"
    ),
    "olmo3": CallFormat(
        "{name}({arguments})", "\n", "<function_calls>\n", "\n</function_calls>", arguments="python"
    ),
    "gemma4": CallFormat(
        "<|tool_call>call:{name}{{arguments}}<tool_call|>", "", arguments="gemma", quote='<|"|>'
    ),
    "functiongemma": CallFormat(
        "<start_function_call>call:{name}{{arguments}}<end_function_call>",
        "",
        arguments="gemma",
        quote="<escape>",
    ),
}
"""Families without an entry write calls in a syntax of their own that no grammar here spells."""

_HOLES = re.compile(r"(\{name\}|\{arguments\}|\{index\})")
_MOST_CHARACTERS = 2000
"""Longest `maxLength` of free text that is kept: the automaton grows with it."""

MOST_CALLS = 32
"""Calls in one answer. A small model that must call (S SmolLM2-135M) may begin another one each time it can
end, up to the end of its context."""


class Rules:
    """The rules of one grammar. `special_ids` are the special tokens, by text."""

    def __init__(self, special_ids: Mapping[str, int]) -> None:
        self._ids = special_ids
        texts = sorted(special_ids, key=len, reverse=True)
        self._special = re.compile("(" + "|".join(map(re.escape, texts)) + ")") if texts else None
        self._lines: list[str] = []

    def text(self, start: str) -> str:
        return "\n".join((f"start: {start}", *self._lines))

    def add(self, name: str, body: str) -> str:
        """A rule; its name is given back."""
        self._lines.append(f"{name}: {body}")
        return name

    def literal(self, text: str) -> str:
        pieces = self._special.split(text) if self._special else [text]
        return " ".join(
            f"<[{self._ids[piece]}]>" if piece in self._ids else _quoted(piece) for piece in pieces if piece
        )

    def json(self, name: str, schema: Json) -> str:
        return self.add(name, f"%json {orjson.dumps(schema).decode()}")

    def until(self, name: str, mark: str, most: int | None = None) -> str:
        """Any text up to the mark (of `most` characters), and the mark."""
        free = "/(?s:.*)/" if most is None else f"/(?s:.{{0,{most}}})/"
        if self._special and self._special.search(mark):
            return self.add(name, f"{free} {self.literal(mark)}")
        self.add(f"{name}[suffix={_quoted(mark)}]", free)
        return name

    def calls(self, format: CallFormat, tools: Sequence[tuple[int, Json]], many: bool) -> str:
        """One call of any of the tools, or several; the tools come with their place in the request."""
        one = self.add("call", " | ".join(self._call(format, index, tool) for index, tool in tools))
        rest = ""
        if many and format.separator is not None:
            rest = f"({self.literal(format.separator)} {one}){{0,{MOST_CALLS - 1}}}"
        parts = (self.literal(format.before), one, rest, self.literal(format.after))
        return self.add("calls", " ".join(part for part in parts if part))

    def _call(self, format: CallFormat, index: int, tool: Json) -> str:
        schema = parameters_schema(tool, f"tools[{index}]")
        name = str(tool["function"].get("name", ""))
        filled = {
            "{name}": _quoted(_quoted(name)[1:-1] if format.quoted else name),
            "{arguments}": self._arguments(format, f"a{index}", schema),
            "{index}": "/[0-9]+/",
        }
        pieces = (filled.get(piece) or self.literal(piece) for piece in _HOLES.split(format.call))
        return self.add(f"call{index}", " ".join(piece for piece in pieces if piece))

    def _arguments(self, format: CallFormat, name: str, schema: Json) -> str:
        kind = format.arguments
        if kind == "json":
            return self.json(name, schema)
        if kind == "gemma":
            schema = inline_refs(schema)
        fields = list(_fields(schema))
        if kind == "python":
            return self.add(name, _listed(fields, ", ", lambda at: self._keyword(f"{name}_{at}", fields[at])))
        if kind == "gemma":
            return self._pairs(format.quote, name, fields)
        tags = [self._tagged(kind, f"{name}_{at}", field) for at, field in enumerate(fields)]
        return self.add(name, " ".join(tags) or '""')

    def _tagged(self, kind: Arguments, name: str, field: Field) -> str:
        """One argument between tags: text as it is, all else as JSON."""
        key, needed, schema = field
        before, between, after = "<parameter=", ">\n", "\n</parameter>\n"
        if kind == "arg_keys":
            before, between, after = "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"
        if schema.get("type") in _JSON_TYPES:
            value = f"{self.json(name, schema)} {self.literal(after)}"
        elif _choices(schema):
            value = f"({' | '.join(map(_quoted, _choices(schema)))}) {self.literal(after)}"
        else:
            value = self.until(name, after, _most(schema))
        rule = f"{self.literal(before)} {_quoted(key)} {self.literal(between)} {value}"
        return rule if needed else f"({rule})?"

    def _keyword(self, name: str, field: Field) -> str:
        """`a=1`, `b="x"`: a JSON value, which the reader of Python calls takes too."""
        return self.add(name, f"{_quoted(field[0] + '=')} {self.json(name + 'v', field[2])}")

    def _pairs(self, quote: str, name: str, fields: Sequence[Field]) -> str:
        """Gemma's `a:1,b:<|"|>x<|"|>`."""

        def pair(at: int) -> str:
            value = self._gemma(quote, f"{name}_{at}v", fields[at][2])
            return self.add(f"{name}_{at}", f"{_quoted(fields[at][0] + ':')} {value}")

        return self.add(name, _listed(fields, ",", pair))

    def _gemma(self, quote: str, name: str, schema: Json) -> str:
        """A value as Gemma writes it: what has no declared type is a text."""
        mark, told = self.literal(quote), schema.get("type")
        if choices := _choices(schema):
            return f"({' | '.join(f'{mark} {_quoted(choice)} {mark}' for choice in choices)})"
        if told in _SCALARS or "enum" in schema or "const" in schema:
            return self.json(name, schema)
        if told == "object":
            return f'"{{" {self._pairs(quote, name, list(_fields(schema)))} "}}"'
        if told == "array":
            items = schema.get("items")
            one = self.add(f"{name}i", self._gemma(quote, name, items if isinstance(items, dict) else {}))
            return f'"[" ({one} ("," {one})*)? "]"'
        return f"{mark} {self.until(name, quote, _most(schema))}"


Field = tuple[str, bool, Json]
"""Name, whether it is needed, schema."""
_SCALARS = ("number", "integer", "boolean", "null")
_JSON_TYPES = ("object", "array", *_SCALARS)


def _listed(fields: Sequence[Field], comma: str, rule: Callable[[int], str]) -> str:
    """Arguments with commas between them.

    Needed ones first, so that a comma has something before it; with none needed, each may be
    the first.
    """
    rules = [(field[1], rule(at)) for at, field in enumerate(fields)]
    free = [each for needed, each in rules if not needed]
    tail = [f"({_quoted(comma)} {each})?" for each in free]
    if len(free) < len(rules):
        first = f" {_quoted(comma)} ".join(each for needed, each in rules if needed)
        return " ".join((first, *tail))
    starts = [" ".join((each, *tail[at + 1 :])) for at, each in enumerate(free)]
    return " | ".join((*starts, '""'))


def _fields(schema: Json) -> Iterator[Field]:
    """The declared properties; each schema with the definitions that its refs lead to."""
    needed = schema.get("required")
    shared: Json = {key: schema[key] for key in ("$defs", "definitions", "x-guidance") if key in schema}
    properties = schema.get("properties")
    for key, value in properties.items() if isinstance(properties, dict) else ():
        held = value if isinstance(value, dict) else {}
        yield key, isinstance(needed, list) and key in needed, {**held, **shared}


def _choices(schema: Json) -> list[str]:
    """An enum of texts."""
    held = [schema["const"]] if "const" in schema else schema.get("enum")
    texts = [each for each in held if isinstance(each, str)] if isinstance(held, list) else []
    return texts if isinstance(held, list) and len(texts) == len(held) else []


def _most(schema: Json) -> int | None:
    most = schema.get("maxLength")
    return most if isinstance(most, int) and 0 <= most <= _MOST_CHARACTERS else None


def _quoted(text: Any) -> str:
    return orjson.dumps(text).decode()


def named(tools: Sequence[Json], names: Iterable[str] | None = None) -> list[tuple[int, Json]]:
    """The functions among the tools with their places, only those of `names` if given."""
    wanted = None if names is None else set(names)
    return [
        (index, tool)
        for index, tool in enumerate(tools)
        if isinstance(tool.get("function"), dict)
        and (wanted is None or tool["function"].get("name") in wanted)
    ]
