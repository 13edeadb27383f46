"""Local models' outputs fed to the text parsers, and the pieces added up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from translators.local.families import BY_NAME
from translators.local.parser import make_parser
from translators.local.pieces import Arguments, Call, CallEnd, Piece, Text, Thought


class Output(NamedTuple):
    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, str, str | None], ...] = ()
    dropped: str = ""
    order: str = ""
    """`t`, `r`, `c`: what followed what."""


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A tool in Chat's shape."""
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def cut_at(text: str, places: Iterable[int]) -> list[str]:
    """`text` in pieces."""
    ends = sorted({place % (len(text) + 1) for place in places} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def read(
    family: str,
    chunks: Iterable[str],
    tools: Sequence[Any] = (),
    *,
    cut: bool = False,
    thinking: bool = False,
) -> Output:
    """What a parser makes of the chunks; nothing may be left after the close."""
    parser = make_parser(BY_NAME[family], tools, thinking_open=thinking)
    pieces = [piece for chunk in chunks for piece in parser.feed(chunk)]
    pieces += parser.close(cut)
    assert parser.close(cut) == []
    return summed(pieces)._replace(dropped=parser.dropped)


def summed(pieces: list[Piece]) -> Output:
    text = "".join(piece.text for piece in pieces if isinstance(piece, Text))
    thought = "".join(piece.text for piece in pieces if isinstance(piece, Thought))
    order, calls, at = "", [], 0
    while at < len(pieces):
        piece = pieces[at]
        sign = {Text: "t", Thought: "r"}.get(type(piece), "c")
        order += sign if sign == "c" or not order.endswith(sign) else ""
        if isinstance(piece, Call):
            arguments, end = pieces[at + 1 : at + 3]
            assert isinstance(arguments, Arguments)
            assert isinstance(end, CallEnd)
            calls.append((piece.name, arguments.text, piece.id))
            at += 2
        else:
            assert isinstance(piece, Text | Thought)
            assert piece.text
        at += 1
    return Output(text, thought, tuple(calls), "", order)
