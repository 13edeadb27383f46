"""The laws of a stream and its reply, for the wire that is lines of JSON and no server-sent events."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.profiles import resolve
from tests.laws.folds import Failure
from tests.laws.odd import VALUES, damage
from tests.laws.oracle import check_completion, check_response
from tests.laws.pairs import CLIENTS, call, context, understood, understood_body
from tests.laws.render_ollama import STYLES, ollama_body, ollama_lines, ollama_scripts, told
from tests.laws.scripts import Said
from tests.laws.test_law_grammar import checked
from tests.laws.test_law_oracle import examined, violations
from tests.laws.test_law_same_reply import nameless
from translators.dialect import Encoded
from translators.ir import Event, Failed, Finished, Grammar, Shape
from translators.ollama import OllamaBackend
from translators.stream import StreamTranslator
from translators.translate import Translation

Json = dict[str, Any]

PROFILE = resolve(kind="ollama", host="", model="m", surface="ollama")
BACKEND = OllamaBackend()
_KEYS = st.sampled_from(
    [
        *("message", "content", "thinking", "tool_calls", "function", "arguments", "name", "id", "done"),
        *("done_reason", "error", "logprobs", "prompt_eval_count", "eval_count", "load_duration", "choices"),
    ]
)
NOISE = st.sampled_from([b"", b"\n", b"\n\n  \n", b"noise\n", b"[1]\n", b"\xef\xbb\xbf"])


def ndjson(lines: Iterable[Json], newline: bytes = b"\n") -> bytes:
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + newline for line in lines)


def machine(client: Shape) -> StreamTranslator:
    encoder = CLIENTS[client].encoder(call(client), context())
    return StreamTranslator(BACKEND.decoder(PROFILE), encoder, framer=BACKEND.framer())


def translate(client: Shape, pieces: Iterable[bytes]) -> bytes:
    running = machine(client)
    return b"".join([running.feed(piece) for piece in pieces]) + running.close()


def plain(client: Shape, body: Json) -> Json:
    translation = Translation(call(client), Encoded({}), CLIENTS[client], BACKEND, PROFILE, {})
    return translation.reply(body, context(stream=False))[0]


@st.composite
def odd_lines(draw: st.DrawFn) -> list[Json]:
    """A stream with zero to five things wrong."""
    lines = copy.deepcopy(ollama_lines(draw(ollama_scripts()), draw(STYLES)))
    for _ in range(draw(st.integers(0, 5))):
        place = draw(st.integers(0, len(lines)))
        match draw(st.sampled_from(["insert", "damage", "damage", "drop", "double"])):
            case "insert":
                lines.insert(place, draw(st.dictionaries(_KEYS, VALUES, max_size=4)))
            case "damage" if place < len(lines):
                damage(draw, lines[place])
            case "drop" if place < len(lines):
                del lines[place]
            case "double" if place < len(lines):
                lines.insert(place, copy.deepcopy(lines[place]))
    return lines


def unnamed(reply: Said) -> Said:
    return replace(reply, calls=tuple(each._replace(id="") for each in reply.calls))


# --- law 1 -----------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
@given(data=st.data())
def test_any_cut_and_either_line_ending(client: Shape, data: st.DataObject) -> None:
    lines, noise = data.draw(odd_lines()), data.draw(NOISE)
    expected = translate(client, [noise + ndjson(lines)])
    newline = data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n"]))
    other = noise.replace(b"\n", newline) + ndjson(lines, newline)
    if data.draw(st.booleans()):
        other = other.rstrip(b"\r\n")  # the last line has no end of its own
    places = data.draw(st.lists(st.integers(0, 5000), max_size=8))
    edges = [0, *sorted(place % (len(other) + 1) for place in places), len(other)]
    assert translate(client, [other[a:b] for a, b in pairwise(edges)]) == expected


@pytest.mark.parametrize("client", CLIENTS)
@given(lines=odd_lines())
def test_byte_by_byte(client: Shape, lines: list[Json]) -> None:
    whole = ndjson(lines)
    assert translate(client, [whole[i : i + 1] for i in range(len(whole))]) == translate(client, [whole])


# --- law 2 -----------------------------------------------------------------------------


@given(lines=odd_lines(), mark=st.booleans())
def test_events_are_legal_and_the_reply_ends_once(lines: list[Json], mark: bool) -> None:
    decoder, grammar = BACKEND.decoder(PROFILE), Grammar()
    events: list[Event] = []
    for line in lines:
        events += checked(decoder.feed(line), grammar)
    if mark:
        events += checked(decoder.done(), grammar)
    events += checked(decoder.close(), grammar)
    assert isinstance(events[-1], Finished | Failed)
    assert grammar.state == "done"
    assert [*decoder.feed({"error": "late"}), *decoder.done(), *decoder.close()] == []
    assert not decoder.told


@pytest.mark.parametrize("client", CLIENTS)
@given(body=st.dictionaries(_KEYS, VALUES, max_size=5))
def test_a_plain_reply_is_legal_too(client: Shape, body: Json) -> None:
    grammar = Grammar()
    encoder = CLIENTS[client].encoder(call(client), context(stream=False))
    for event in checked(BACKEND.decode_reply(body, PROFILE), grammar):
        assert encoder.feed(event) == b""
    assert grammar.state == "done"


# --- law 3 -----------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
@given(script=ollama_scripts(), style=STYLES)
def test_streams_are_accepted(client: Shape, script: Any, style: Any) -> None:
    out = translate(client, [ndjson(ollama_lines(script, style))])
    assert examined(client, out) is not None
    assert violations(client, out) == set()


@pytest.mark.parametrize("client", CLIENTS)
@given(lines=odd_lines())
def test_odd_streams_give_accepted_frames(client: Shape, lines: list[Json]) -> None:
    out = translate(client, [ndjson(lines)])
    examined(client, out)
    assert violations(client, out) <= {"torn_arguments"}


@pytest.mark.parametrize("client", CLIENTS)
@given(script=ollama_scripts(), style=STYLES)
def test_plain_replies_are_accepted(client: Shape, script: Any, style: Any) -> None:
    reply = plain(client, ollama_body(script, style))
    (check_completion if client == "chat" else check_response)(reply)


# --- law 4 -----------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
@given(script=ollama_scripts(), style=STYLES)
def test_a_streamed_reply_says_the_same(client: Shape, script: Any, style: Any) -> None:
    found = understood(client, translate(client, [ndjson(ollama_lines(script, style))]))
    assert isinstance(found, Said)
    ids = [each.id for each in found.calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert (found if style.ids else unnamed(found)) == told(script, style)


@pytest.mark.parametrize("client", CLIENTS)
@given(script=ollama_scripts(), style=STYLES)
def test_a_plain_reply_says_the_same(client: Shape, script: Any, style: Any) -> None:
    found = understood_body(client, plain(client, ollama_body(script, style)))
    assert (found if style.ids else unnamed(found)) == told(script, style)


@pytest.mark.parametrize("client", CLIENTS)
@given(script=ollama_scripts(), style=STYLES, data=st.data())
def test_a_stream_without_its_last_line_has_failed(
    client: Shape, script: Any, style: Any, data: st.DataObject
) -> None:
    """Whatever it has said: a model that is stopped for repeating itself ends so."""
    lines = ollama_lines(script, style)
    kept = data.draw(st.integers(0, len(lines) - 1))
    found = understood(client, translate(client, [ndjson(lines[:kept])]))
    assert isinstance(found, Failure)
    assert told(script, style).text.startswith(found.text)


@pytest.mark.parametrize("client", CLIENTS)
@given(script=ollama_scripts(), style=STYLES, data=st.data())
def test_an_error_line_is_the_end(client: Shape, script: Any, style: Any, data: st.DataObject) -> None:
    lines = ollama_lines(script, style)
    lines.insert(data.draw(st.integers(0, len(lines) - 1)), {"error": "boom"})
    found = understood(client, translate(client, [ndjson(lines)]))
    assert isinstance(found, Failure)
    assert "boom" in found.message


# --- law 5 -----------------------------------------------------------------------------


def in_order(script: Any) -> Any:
    """As one body has it: thought, text, calls."""
    kinds = {"thought": 0, "text": 1}
    pieces = sorted(script.pieces, key=lambda piece: kinds.get(getattr(piece, "kind", ""), 2))
    return replace(script, pieces=tuple(pieces))


@pytest.mark.parametrize("client", CLIENTS)
@given(script=ollama_scripts().map(in_order), style=STYLES)
def test_streamed_or_not_the_body_is_the_same(client: Shape, script: Any, style: Any) -> None:
    running = machine(client)
    running.feed(ndjson(ollama_lines(script, style)))
    running.close()
    assert nameless(running.body()) == nameless(plain(client, ollama_body(script, style)))
