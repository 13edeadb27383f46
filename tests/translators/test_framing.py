"""Server-sent events cut out of bytes, however the network cuts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translators.framing import FrameCutter, SseFramer, payload_of, sse

STREAMS: list[tuple[str, bytes, list[bytes]]] = [
    ("LF", b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    ("CR", b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    ("mixed", b"data: a\r\n\ndata: b\n\r\ndata: c\r\r\ndata: d\n\n", [b"a", b"b", b"c", b"d"]),
    ("no space", b"data:a\n\ndata:  b\n\n", [b"a", b" b"]),
    ("comments", b": ping\n\n: ping\ndata: a\n\n:\n\n", [b"a"]),
    ("event and id lines", b"event: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"]),
    ("several data lines", b"data: a\ndata: b\n\n", [b"a\nb"]),
    ("an event without data", b"event: x\n\ndata: a\n\n", [b"a"]),
    ("blank lines between", b"\n\n\ndata: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
    ("no blank line at the end", b"data: a\n\ndata: b", [b"a", b"b"]),
    ("a line end at the end", b"data: a\n\ndata: b\r\n", [b"a", b"b"]),
    ("byte order mark", b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    (
        "line separators of Unicode are text",
        "data: a\u2028b\u2029c\u0085d\n\n".encode(),
        ["a\u2028b\u2029c\u0085d".encode()],
    ),
    ("empty", b"", []),
    ("half a byte order mark", b"\xef\xbb", []),
]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(("data", "wanted"), [s[1:] for s in STREAMS], ids=[s[0] for s in STREAMS])
def test_payloads(data: bytes, wanted: list[bytes], size: int) -> None:
    framer, found = SseFramer(), list[bytes]()
    for at in range(0, len(data), size):
        found += framer.feed(data[at : at + size])
    assert found + framer.close() == wanted


def told(frames: list[bytes]) -> list[bytes]:
    return [payload for payload in map(payload_of, frames) if payload is not None]


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(("data", "wanted"), [s[1:] for s in STREAMS], ids=[s[0] for s in STREAMS])
def test_whole_frames(data: bytes, wanted: list[bytes], size: int) -> None:
    cutter, frames = FrameCutter(), list[bytes]()
    for at in range(0, len(data), size):
        frames += cutter.feed(data[at : at + size])
    frames.append(cutter.close())
    assert b"".join(frames) == data
    assert told(frames) == wanted


pieces = st.lists(
    st.sampled_from([b"data: ", b"a", b":", b"\r", b"\n", b"\r\n", b"\n\n", "é\u2028".encode()])
)


@given(pieces.map(b"".join), st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_any_cut_gives_the_same(data: bytes, sizes: list[int]) -> None:
    whole_framer, whole_cutter = SseFramer(), FrameCutter()
    payloads = whole_framer.feed(data) + whole_framer.close()
    frames = [*whole_cutter.feed(data), whole_cutter.close()]
    framer, cutter, at, count = SseFramer(), FrameCutter(), 0, 0
    found, cut = list[bytes](), list[bytes]()
    while at < len(data):
        size = sizes[count % len(sizes)]
        found += framer.feed(data[at : at + size])
        cut += cutter.feed(data[at : at + size])
        at, count = at + size, count + 1
    assert found + framer.close() == payloads
    rest = cutter.close()
    assert b"".join([*cut, rest]) == data
    assert told([*cut, rest]) == told(frames)


def test_one_read_of_one_frame_is_not_copied() -> None:
    data = sse(b"{}")
    assert FrameCutter().feed(data)[0] is data


def test_sse_reads_back() -> None:
    assert SseFramer().feed(sse(b'{"a":1}')) == [b'{"a":1}']
