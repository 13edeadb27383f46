"""Law 3: the official SDK and the Open Responses types accept every frame, and accumulate the same reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.events import legal_events
from tests.laws.folds import read_responses_stream, sse_payloads
from tests.laws.odd import odd_objects
from tests.laws.oracle import check_chunks, check_completion, check_events, check_response
from tests.laws.pairs import (
    CLIENTS,
    PAIRS,
    body,
    call,
    context,
    objects,
    plain_reply,
    sse_bytes,
    styles,
    told,
    translate,
    understood,
)
from tests.laws.render_chat import ChatStyle
from tests.laws.scripts import REPLIES, Said, orderly_scripts, scripts
from tests.laws.test_law_same_reply import nameless
from translators.chat.grammar import ChatCheck
from translators.errors import ProxyError
from translators.ir import Closed, Event, Failed, Opened, Shape
from translators.responses.grammar import ResponsesCheck

Json = dict[str, Any]


def examined(client: Shape, out: bytes) -> Json | None:
    """The reply as the SDK accumulates it; None when it ended as failed."""
    if client == "responses":
        events = read_responses_stream(out)
        final = check_events(events)
        return final if final is not None else events[-1]["response"]
    chunks = [json.loads(payload) for payload in sse_payloads(out)[:-1]]
    if chunks and "error" in chunks[-1]:
        if chunks[:-1]:
            check_chunks(chunks[:-1])
        return None
    return check_chunks(chunks)


def violations(client: Shape, out: bytes) -> set[str]:
    """The rules of the wire that a stream breaks, by the check that `dragoman check-stream` runs."""
    check = ChatCheck() if client == "chat" else ResponsesCheck()
    check.feed(out)
    return {finding.rule for finding in check.close()}


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_streams_are_accepted(client: Shape, backend: Shape, data: st.DataObject) -> None:
    script, style = data.draw(REPLIES), data.draw(styles(backend))
    out = translate(client, backend, [sse_bytes(objects(script, style), style.done)])
    reply = examined(client, out)
    assert reply is not None
    assert violations(client, out) == set()
    if client == "chat":
        message = reply["choices"][0]["message"]
        called = [entry["function"]["arguments"] for entry in message.get("tool_calls") or []]
        assert called == [entry.arguments for entry in told(script, style).calls]
        assert (message.get("content") or "") == told(script, style).text
    else:
        last = json.loads(sse_payloads(out)[-2])
        assert [item["type"] for item in reply["output"]] == [
            item["type"] for item in last["response"]["output"]
        ]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # damaged items of hosted tools
@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_odd_streams_give_accepted_frames(client: Shape, backend: Shape, data: st.DataObject) -> None:
    out = translate(client, backend, [sse_bytes(data.draw(odd_objects(backend)))])
    examined(client, out)
    assert violations(client, out) <= {"torn_arguments"}  # a piece that is not there leaves no trace


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_plain_replies_are_accepted(client: Shape, backend: Shape, data: st.DataObject) -> None:
    script = data.draw(orderly_scripts() if backend == "chat" else scripts())
    style = ChatStyle() if backend == "chat" else data.draw(styles(backend))
    reply = plain_reply(client, backend, body(script, style))
    (check_completion if client == "chat" else check_response)(reply)


@pytest.mark.parametrize("client", CLIENTS)
@given(events=legal_events())
def test_any_legal_events_give_accepted_frames(client: Shape, events: list[Event]) -> None:
    streaming = CLIENTS[client].encoder(call(client), context())
    plain = CLIENTS[client].encoder(call(client), context(stream=False))
    out = b"".join(streaming.feed(event) for event in events)
    assert b"".join(plain.feed(event) for event in events) == b""
    assert streaming.usage == plain.usage == events[-1].usage  # type: ignore[union-attr]
    has_custom = any(isinstance(event, Opened) and event.tool == "custom" for event in events)
    if client == "responses" or not has_custom:  # the SDK's chunks know no custom calls
        assert (examined(client, out) is None) == (client == "chat" and isinstance(events[-1], Failed))
    if isinstance(events[-1], Failed):
        with pytest.raises(ProxyError):
            streaming.body()
        return
    if client == "responses":
        assert isinstance(understood(client, out), Said)
    (check_completion if client == "chat" else check_response)(plain.body())
    told_late = any(isinstance(event, Closed) and event.text is not None for event in events)
    if client == "chat" or not told_late:  # what a Responses stream has said it keeps to
        assert nameless(plain.body()) == nameless(streaming.body())
