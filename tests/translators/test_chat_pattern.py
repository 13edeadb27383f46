"""A look at the text alone says of a frame what a look at the whole of it would."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translators.chat.pattern import FramePattern
from translators.framing import FrameCutter
from translators.lenient import has_whole_characters

_STRING = re.compile(rb'(?:[^"\\]|\\.)*')
_piece = st.sampled_from(
    [b"a", b" ", "\u00e9".encode(), b"\xc3", b'"', b"\\", b'\\"', b"\\n", b"\\ud800", b"\\uD83D\\ude00", b"}"]
)
_text = st.lists(_piece, max_size=4).map(b"".join)
_around = st.sampled_from([b"m", "\u00e9".encode(), b"\xc3", b"\\ud800"])


def _frame(around: bytes, text: bytes) -> bytes:
    return b'data: {"model":"%b","content":"%b","id":"%b"}\n\n' % (around, text, around)


@given(around=_around, text=_text)
def test_a_frame_is_ordinary_when_its_text_is_a_string_and_all_of_it_can_be_decoded(
    around: bytes, text: bytes
) -> None:
    pattern, frame = FramePattern(), _frame(around, text)
    assert pattern.learn(_frame(around, b"x"), "content", bare=False)
    ordinary = _STRING.fullmatch(text) is not None and has_whole_characters(frame)
    assert pattern.matches(frame) is ordinary
    if ordinary:
        assert pattern.quoted(frame) == b'"%b"' % text
        assert pattern.written(frame) == frame


@given(
    around=_around, texts=st.lists(_text | st.sampled_from([b"\n", b"\r", b"\n\n"]), min_size=1, max_size=3)
)
def test_a_read_that_is_covered_is_ordinary_frames(around: bytes, texts: list[bytes]) -> None:
    pattern = FramePattern()
    pattern.learn(_frame(around, b"x"), "content", bare=False)
    frames = [_frame(around, text) for text in texts]
    read = b"".join(frames)
    if pattern.covers(read):
        assert FrameCutter().feed(read) == frames
        assert all(map(pattern.matches, frames))
    else:
        plain = all(re.fullmatch(rb"[^\"\\\r\n]*", text) for text in texts)
        assert not plain or not all(map(pattern.matches, frames))


_WHOLE = _frame(b"m", b"x")


@pytest.mark.parametrize("read", [b"", *(_WHOLE[:end] for end in range(1, len(_WHOLE))), _WHOLE + b"data: "])
def test_a_read_that_ends_inside_a_frame_is_not_covered(read: bytes) -> None:
    pattern = FramePattern()
    assert not pattern.covers(read)
    pattern.learn(_WHOLE, "content", bare=False)
    assert not pattern.covers(read)
    assert pattern.covers(_WHOLE)


def test_a_frame_without_room_for_a_text_is_neither() -> None:
    """One quote that would have to be both sides of the text."""
    pattern = FramePattern()
    pattern.learn(_WHOLE, "content", bare=False)
    frame = _WHOLE.replace(b'"x"', b'"')
    assert not pattern.matches(frame)
    assert not pattern.covers(frame)


def test_half_a_character_at_the_end_of_one_text_and_half_at_the_next_are_none() -> None:
    pattern = FramePattern()
    pattern.learn(_WHOLE, "content", bare=False)
    first, second = "\u00e9".encode()[:1], "\u00e9".encode()[1:]
    assert not pattern.covers(_frame(b"m", first) + _frame(b"m", second))
    assert pattern.covers(_frame(b"m", first + second))


def test_frames_that_leave_without_their_role_are_not_covered() -> None:
    frame = b'data: {"delta":{"role":"assistant","content":"x"}}\n\n'
    pattern = FramePattern()
    pattern.learn(frame, "content", bare=True)
    assert pattern.matches(frame)
    assert not pattern.covers(frame)


@pytest.mark.parametrize("around", [b"\xc3", b"\\ud800"])
def test_what_is_broken_around_its_text_is_never_ordinary(around: bytes) -> None:
    pattern = FramePattern()
    pattern.learn(_frame(around, b"x"), "content", bare=False)
    assert not pattern.matches(_frame(around, b"y"))


@given(
    around=_around,
    texts=st.lists(_text | st.sampled_from([b"\n", b"\r", b"<end>"]), min_size=1, max_size=8),
)
def test_a_run_is_made_of_frames_that_are_ordinary_each(around: bytes, texts: list[bytes]) -> None:
    pattern = FramePattern()
    pattern.learn(_frame(around, b"x"), "content", bare=False)
    frames = [_frame(around, text) if text != b"<end>" else b"data: [DONE]\n\n" for text in texts]
    count = pattern.run(frames)
    assert all(map(pattern.matches, frames[:count]))
    ordinary = [pattern.matches(frame) and re.fullmatch(rb"[^\"\\\r\n]*", text) is not None
                for frame, text in zip(frames, texts, strict=True)]  # fmt: skip
    if all(ordinary):
        assert count == len(frames) - 1


@pytest.mark.parametrize("rest", [b"data: [DONE]\n\n", b": comment\n\n", _WHOLE.replace(b'"m"', b'"n"')])
def test_a_run_ends_where_something_else_comes(rest: bytes) -> None:
    pattern = FramePattern()
    pattern.learn(_WHOLE, "content", bare=False)
    assert pattern.run([_WHOLE] * 20 + [rest]) == 19
    assert pattern.run([rest, *[_WHOLE] * 20]) == 0
    assert pattern.run([_WHOLE, rest, *[_WHOLE] * 20]) == 0, "left to a look at each"


def test_frames_that_lose_their_role_are_no_run() -> None:
    pattern, frame = FramePattern(), b'data: {"role":"assistant","content":"x"}\n\n'
    assert pattern.learn(frame, "content", bare=True)
    assert pattern.run([frame] * 5) == 0
