"""The legal order of events: what may come when, and that a refusal changes nothing."""

from __future__ import annotations

import pytest

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
    Opaque,
    Opened,
    Started,
)

TEXT, CALL = Opened(0, "text"), Opened(0, "tool_call", "c", "f")
FOREIGN = Foreign(0, Opaque("responses", {"type": "web_search_call"}))
FAILED, FINISHED = Failed(ProxyError("upstream", "x")), Finished("stop")

LEGAL: dict[str, list[Event]] = {
    "nothing said": [Started(), FINISHED],
    "a failure before the start": [FAILED],
    "a failure in the middle": [Started(), TEXT, FAILED],
    "interleaved": [
        Started(),
        CALL,
        Opened(1, "tool_call", "d", "g"),
        Delta(0, ""),
        Closed(1),
        Closed(0),
        FINISHED,
    ],
    "a refusal joins text": [
        Started(),
        TEXT,
        Closed(0),
        Opened(1, "refusal", joins=True),
        Closed(1),
        FINISHED,
    ],
    "a hosted call takes an index": [
        Started(),
        FOREIGN,
        Opened(1, "text"),
        Annotated(1, {}),
        Closed(1),
        FINISHED,
    ],
}
ILLEGAL: dict[str, list[Event]] = {
    "no start": [TEXT],
    "two starts": [Started(), Started()],
    "a gap in the indices": [Started(), Opened(1, "text")],
    "a hosted call with a gap": [Started(), Foreign(1, FOREIGN.item)],
    "text of a piece that is not open": [Started(), Delta(0, "x")],
    "text of a closed piece": [Started(), TEXT, Closed(0), Delta(0, "x")],
    "the end with a piece open": [Started(), TEXT, FINISHED],
    "after the end": [Started(), FINISHED, TEXT],
    "a failure after the end": [Started(), FINISHED, FAILED],
    "joins nothing": [Started(), Opened(0, "text", joins=True)],
    "joins an open piece": [Started(), TEXT, Opened(1, "refusal", joins=True)],
    "joins another family": [Started(), TEXT, Closed(0), Opened(1, "summary", joins=True)],
    "calls never join": [Started(), CALL, Closed(0), Opened(1, "tool_call", "d", "g", joins=True)],
    "joins over a hosted call": [Started(), FOREIGN, Opened(1, "text", joins=True)],
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    grammar = Grammar()
    for event in LEGAL[name]:
        grammar.see(event)
    assert grammar.state == "done"


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal(name: str) -> None:
    grammar = Grammar()
    *before, last = ILLEGAL[name]
    for event in before:
        grammar.see(event)
    state = grammar.state
    with pytest.raises(GrammarError):
        grammar.see(last)
    assert grammar.state == state
