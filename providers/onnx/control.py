"""Which strings are control tokens to a model: what its tokeniser files say.

A tokeniser reads every *added token* out of plain text. The ones marked `special` are control
tokens. Of the others (`<tool_call>`, `<think>`; but also runs of blanks and HTML tags) those
are that the chat template writes, for there they mean something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from translators.ir import Json

from .json_file import read_json

_CONTROL_SHAPE = re.compile("<[|\uff5c].+[|\uff5c]>")
"""`<|im_end|>` (DeepSeek's bars are full-width): control tokens by their looks, whatever the file says."""
_NAMED = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")
_MORE = ("additional_special_tokens", "extra_special_tokens")


@dataclass(frozen=True, slots=True)
class Control:
    """`tokens`: what client text must not form. `ids`: ids of the special ones, by text.

    `variables` are what templates know the named tokens as (`bos_token`, `eos_token`, ...).
    """

    tokens: tuple[str, ...] = ()
    ids: Mapping[str, int] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


def read_control(folder: Path, meaning: str) -> Control:
    """`meaning`: the template and its family's markers. A file missing or damaged says nothing."""
    tokenizer = read_json(folder / "tokenizer.json") or {}
    config = read_json(folder / "tokenizer_config.json") or {}
    mapped = read_json(folder / "special_tokens_map.json") or {}
    added = list(_added(tokenizer, config))
    variables = dict(_variables({**mapped, **config}))
    tokens = {text for text, special, _ in added if special or _is_control(text, meaning)}
    tokens.update(variables.values(), _listed(config), _listed(mapped))
    ids = {text: at for text, special, at in added if special and at is not None}
    return Control(tuple(sorted(tokens)), ids, variables)


def _is_control(text: str, meaning: str) -> bool:
    """One sign alone is what templates are written of: braces, quotes."""
    return bool(_CONTROL_SHAPE.fullmatch(text)) or (len(text.strip()) > 1 and text in meaning)


def _added(tokenizer: Json, config: Json) -> Iterator[tuple[str, bool, int | None]]:
    """`(text, special, id)` of every added token, from both files."""
    held = tokenizer.get("added_tokens")
    for entry in held if isinstance(held, list) else ():
        yield from _entry(entry, entry.get("id") if isinstance(entry, dict) else None)
    decoder = config.get("added_tokens_decoder")
    for at, entry in decoder.items() if isinstance(decoder, dict) else ():
        yield from _entry(entry, int(at) if at.isdecimal() else None)


def _entry(entry: Any, at: Any) -> Iterator[tuple[str, bool, int | None]]:
    text = _text(entry)
    if text and isinstance(entry, dict):
        yield text, bool(entry.get("special")), at if isinstance(at, int) else None


def _text(entry: Any) -> str | None:
    """A token is written as its text, or as `{content, ...}`."""
    text = entry.get("content") if isinstance(entry, dict) else entry
    return text if isinstance(text, str) and text else None


def _variables(config: Json) -> Iterator[tuple[str, str]]:
    for name in _NAMED:
        text = _text(config.get(name))
        if text:
            yield name, text


def _listed(config: Json) -> Iterator[str]:
    """`additional_special_tokens`: a list; `extra_special_tokens`: a list or `{name: token}`."""
    for key in _MORE:
        held = config.get(key)
        entries = held.values() if isinstance(held, dict) else held if isinstance(held, list) else ()
        yield from (text for text in map(_text, entries) if text)
