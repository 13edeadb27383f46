"""Law 2: whatever a backend sends, the events come in a legal order and the reply ends once."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.odd import VALUES, odd_objects
from tests.laws.pairs import BACKENDS, CLIENTS, PAIRS, call, context
from translators.errors import ProxyError
from translators.ir import Event, Failed, Finished, Grammar, Shape
from translators.profile import Profile


def checked(events: Iterable[Event], grammar: Grammar) -> list[Event]:
    """The events, each seen by the grammar (which raises for an illegal one)."""
    found = []
    for event in events:
        grammar.see(event)
        found.append(event)
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@given(data=st.data())
def test_events_are_legal_and_the_reply_ends_once(backend: Shape, data: st.DataObject) -> None:
    decoder, grammar = BACKENDS[backend].decoder(Profile()), Grammar()
    events: list[Event] = []
    for obj in data.draw(odd_objects(backend)):
        events += checked(decoder.feed(obj), grammar)
    if data.draw(st.booleans()):
        events += checked(decoder.done(), grammar)
    events += checked(decoder.close(), grammar)
    assert isinstance(events[-1], Finished | Failed)
    assert grammar.state == "done"
    assert list(decoder.feed({"error": {"message": "late"}})) == []
    assert [*decoder.done(), *decoder.close()] == []


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_a_plain_reply_is_legal_too(client: Shape, backend: Shape, data: st.DataObject) -> None:
    keys = st.sampled_from(
        ["choices", "output", "status", "error", "usage", "id", "model", "incomplete_details"]
    )
    body = data.draw(st.dictionaries(keys, VALUES, max_size=5))
    grammar = Grammar()
    encoder = CLIENTS[client].encoder(call(client), context(stream=False))
    for event in checked(BACKENDS[backend].decode_reply(body, Profile()), grammar):
        assert encoder.feed(event) == b""
    assert grammar.state == "done"
    try:
        assert encoder.body()["model"] == "asked"
    except ProxyError as error:
        assert error.message  # noqa: PT017 - a refused body is as good as a read one
