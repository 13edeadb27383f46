"""Any legal sequence of neutral events, more than today's decoders make use of."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.laws.scripts import ARGUMENTS, NAMES, TEXT
from translators.errors import ProxyError
from translators.ir import (
    Annotated,
    Closed,
    Delta,
    Event,
    Failed,
    Finished,
    Foreign,
    Grammar,
    GrammarError,
    ItemKind,
    Opaque,
    Opened,
    Started,
    Usage,
)

_SCORE = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}
_CITATION = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
_SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "q"},
}
_KINDS: st.SearchStrategy[ItemKind] = st.sampled_from(
    ["text", "refusal", "reasoning", "summary", "tool_call"]
)
USAGE = st.none() | st.builds(Usage, *[st.integers(0, 9)] * 5)


@dataclass
class _Open:
    """A piece that is open: the fragments still to come."""

    index: int
    kind: ItemKind
    fragments: list[str] = field(default_factory=list)


@st.composite
def legal_events(draw: st.DrawFn) -> list[Event]:
    """A whole reply; pieces interleave, join, are cut, and end with a text of their own."""
    grammar = Grammar()
    events: list[Event] = []

    def put(event: Event) -> None:
        grammar.see(event)
        events.append(event)

    put(draw(st.builds(Started, st.sampled_from(["", "chatcmpl-1", "resp_1"]), st.just("up"))))
    opened: list[_Open] = []
    following = 0
    for _ in range(draw(st.integers(0, 10))):
        if opened and draw(st.booleans()):
            _continue(draw, opened, put)
        elif draw(st.integers(0, 9)) == 0:
            put(Foreign(following, Opaque("responses", {**_SEARCH, "id": f"ws_{following}"})))
            following += 1
        else:
            opened.append(_open(draw, following, put))
            following += 1
    while opened:
        _continue(draw, opened, put)
    usage = draw(USAGE)
    failed = Failed(ProxyError("upstream", "it broke"), usage)
    reason: Any = draw(st.sampled_from(["stop", "length", "tool_calls", "content_filter"]))
    put(draw(st.sampled_from([Finished(reason, usage)] * 3 + [failed])))
    return events


def _open(draw: st.DrawFn, index: int, put: Any) -> _Open:
    kind = draw(_KINDS)
    if kind == "tool_call":
        tool: Any = draw(st.sampled_from(["function", "custom", "tool_search"]))
        namespace = draw(st.sampled_from([None, None, "mcp__calc"])) if tool != "tool_search" else None
        name = "tool_search" if tool == "tool_search" else draw(NAMES)
        put(Opened(index, kind, f"call_{index}", name, tool, namespace))
        whole = draw(TEXT) if tool == "custom" else json.dumps(draw(ARGUMENTS))
        half = len(whole) // 2
        return _Open(index, kind, [whole[:half], whole[half:]])
    try:
        put(Opened(index, kind, joins=draw(st.booleans())))
    except GrammarError:
        put(Opened(index, kind))
    return _Open(index, kind, draw(st.lists(TEXT, max_size=3)))


def _continue(draw: st.DrawFn, opened: list[_Open], put: Any) -> None:
    """The next thing that happens to one of the open pieces; a call closes only when it is whole."""
    piece = draw(st.sampled_from(opened))
    if piece.fragments:
        scores = [_SCORE] if piece.kind == "text" and draw(st.booleans()) else None
        put(Delta(piece.index, piece.fragments.pop(0), scores))
    elif piece.kind == "text" and draw(st.integers(0, 3)) == 0:
        put(Annotated(piece.index, _CITATION))
    else:
        opened.remove(piece)
        sealed = draw(st.sampled_from([None, "zz"])) if piece.kind in ("reasoning", "summary") else None
        whole = draw(st.sampled_from([None, None, "another text"])) if piece.kind == "text" else None
        put(Closed(piece.index, sealed, whole, cut=draw(st.booleans()) and piece.kind != "tool_call"))
