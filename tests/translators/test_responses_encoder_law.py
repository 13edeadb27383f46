"""Whatever a decoder may legally say becomes a legal Responses stream."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.translators.responses_oracle import check
from tests.translators.responses_player import encoder, play
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
    Usage,
)


class Log:
    """A legal sequence of events, drawn move by move; illegal moves are left out."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.grammar = draw, Grammar()
        self.events: list[Event] = []
        self.open: list[int] = []
        self.said: dict[int, str] = {}
        self.count = 0

    def put(self, event: Event) -> bool:
        try:
            self.grammar.see(event)
        except GrammarError:
            return False
        self.events.append(event)
        return True

    def opened(self) -> None:
        kind = self.draw(st.sampled_from(("text", "refusal", "reasoning", "summary", "tool_call")))
        tool = self.draw(st.sampled_from(("function", "custom", "tool_search")))
        call_id = self.draw(st.sampled_from(("", "call_x", "call_y")))
        if self.put(Opened(self.count, kind, call_id, "f", tool, joins=self.draw(st.booleans()))):
            self.open.append(self.count)
            self.count += 1

    def foreign(self) -> None:
        raw = {"type": "compaction", "id": self.draw(st.sampled_from(("", "c1"))), "encrypted_content": "g"}
        self.count += self.put(Foreign(self.count, Opaque("responses", raw)))

    def delta(self) -> None:
        index, text = self.one(), self.draw(st.sampled_from(("", "1", "2", "é\n")))
        if self.put(Delta(index, text)):
            self.said[index] = self.said.get(index, "") + text

    def note(self) -> None:
        self.put(Annotated(self.one(), {"type": "file_path", "file_id": "f"}))

    def closed(self) -> None:
        """A last word that says more. One that says something else makes a stream and a body differ."""
        index = self.one()
        more = self.draw(st.sampled_from((None, None, "1", "12")))
        text = None if more is None else self.said.get(index, "") + more
        if self.put(Closed(index, text=text)):
            self.open.remove(index)

    def one(self) -> int:
        return self.draw(st.sampled_from(self.open)) if self.open else -1

    def end(self) -> None:
        if self.draw(st.booleans()):
            self.put(Failed(ProxyError("upstream", "boom")))
            return
        for index in self.open:
            self.put(Closed(index))
        self.put(Finished(self.draw(st.sampled_from(("stop", "length", "tool_calls"))), Usage(1, 2)))


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    log = Log(draw)
    log.put(Started())
    for _ in range(draw(st.integers(0, 14))):
        draw(st.sampled_from((log.opened, log.delta, log.delta, log.closed, log.note, log.foreign)))()
    log.end()
    return log.events


@given(log=logs(), as_text=st.booleans())
def test_any_legal_log_gives_a_legal_stream(log: list[Event], as_text: bool) -> None:
    """Grammar, oracles and the same reply for whatever a decoder may say."""
    streamed = play(log, refusal_as_text=as_text)
    found = check(streamed, arguments=False)
    quiet = encoder(stream=False, refusal_as_text=as_text)
    for event in log:
        quiet.feed(event)
    if not isinstance(log[-1], Failed):
        assert quiet.body() == found[-1]["response"]
