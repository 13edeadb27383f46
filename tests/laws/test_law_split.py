"""Law 1: however the network cuts the stream and whatever ends its lines, the client gets the same bytes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.odd import odd_objects
from tests.laws.pairs import PAIRS, sse_bytes, translate
from translators.ir import Shape

NEWLINES = st.sampled_from([b"\n", b"\r\n", b"\r"])
NOISE = st.sampled_from([b"", b": ping\n\n", b"data: {\n\n", b"data:\n\n", b"retry: 5\n\n", b"data: [1]\n\n"])


def cut_after_cr(data: bytes) -> list[bytes]:
    """The worst place there is: between the CR and the LF of one line ending."""
    return [piece + b"\r" for piece in data.split(b"\r")[:-1]] + [data.rpartition(b"\r")[2]]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_any_cut_and_any_line_ending(client: Shape, backend: Shape, data: st.DataObject) -> None:
    objs = data.draw(odd_objects(backend))
    done, names = data.draw(st.booleans()), data.draw(st.booleans())
    noise = data.draw(NOISE)
    whole = noise + sse_bytes(objs, done, names=names)
    expected = translate(client, backend, [whole])
    newline = data.draw(NEWLINES)
    lines = data.draw(st.booleans())
    other = noise.replace(b"\n", newline) + sse_bytes(objs, done, newline, names, lines)
    places = data.draw(st.lists(st.integers(0, 5000), max_size=8))
    pieces = cut_after_cr(other) if data.draw(st.booleans()) else cut(other, places)
    assert b"".join(pieces) == other
    assert translate(client, backend, pieces) == expected


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_byte_by_byte(client: Shape, backend: Shape, data: st.DataObject) -> None:
    whole = sse_bytes(data.draw(odd_objects(backend)))
    single = [whole[i : i + 1] for i in range(len(whole))]
    assert translate(client, backend, single) == translate(client, backend, [whole])
