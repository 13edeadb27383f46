"""Tokens to text, stop strings, and the joining of deltas."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models

from providers.onnx import answer as answer_module
from providers.onnx.answer import Answer
from providers.onnx.detokenizer import BYTE_ALPHABET, Detokenizer, StopStrings, Vocabulary
from providers.onnx.protocol import Delta, Params


def byte_level() -> Tokenizer:
    """Token n is byte n; then `<end>` (special) and `<é>` (added, not special)."""
    names = {byte: name for name, byte in BYTE_ALPHABET.items()}
    tokenizer = Tokenizer(models.BPE({names[byte]: byte for byte in range(256)}, []))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<end>")])
    tokenizer.add_tokens([AddedToken("<…>", special=False)])
    return tokenizer


def sentence_piece() -> Tokenizer:
    vocabulary = {"<unk>": 0, "\u2581Hello": 1, "\u2581": 2, "<0xC3>": 3, "<0xA9>": 4, "!": 5}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return tokenizer


def test_the_byte_alphabet_is_that_of_the_tokenizers_library():
    tokenizer = byte_level()
    text = "Grüße, 世界! \x00\x7f\xad"
    assert tokenizer.decode(list(text.encode())) == text
    vocabulary = Vocabulary(tokenizer)
    assert b"".join(vocabulary.bytes_of(byte) for byte in range(256)) == bytes(range(256))


@given(st.text())
def test_text_comes_whole_whatever_the_bytes(text):
    detokenizer = Detokenizer(Vocabulary(byte_level()), keep_special=False)
    pieces = [detokenizer.feed(byte) for byte in text.encode("utf-8", "replace")]
    assert "".join(pieces) == text.encode("utf-8", "replace").decode()
    assert "\ufffd" in text or not any("\ufffd" in piece for piece in pieces)


def test_added_and_special_tokens():
    vocabulary = Vocabulary(byte_level())
    shown, hidden = Detokenizer(vocabulary, True), Detokenizer(vocabulary, False)
    assert [shown.feed(token) for token in (256, 257, 9999)] == ["<end>", "<…>", ""]
    assert [hidden.feed(token) for token in (256, 257)] == ["", "<…>"]


def test_sentence_piece():
    detokenizer = Detokenizer(Vocabulary(sentence_piece()), False)
    assert [detokenizer.feed(token) for token in (1, 2, 3, 4, 5)] == [" Hello", " ", "", "é", "!"]


def test_a_tokenizer_without_a_decoder():
    tokenizer = Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))
    assert Vocabulary(tokenizer).bytes_of(0) == b"a"


STOPS = ["END", "</stop>", "aab"]


@given(st.text(alphabet="aabEND</stop>", max_size=30), st.lists(st.integers(1, 4), max_size=30))
def test_stop_strings_do_not_depend_on_the_cuts(text, cuts):
    def fold(pieces: list[str]) -> tuple[str, str | None]:
        stops, out = StopStrings(STOPS), ""
        for piece in pieces:
            out += stops.feed(piece)
            if stops.matched is not None:
                return out, stops.matched
        return out + stops.close(), None

    pieces, at = [], 0
    for cut in cuts:
        pieces.append(text[at : at + cut])
        at += cut
    out, matched = fold([*pieces, text[at:]])
    assert (out, matched) == fold(list(text))
    ends = sorted((text.find(stop) + len(stop), text.find(stop)) for stop in STOPS if stop in text)
    assert out == (text[: ends[0][1]] if ends else text)


@given(st.text(alphabet="END ", max_size=12))
def test_no_more_is_held_back_than_may_be_a_stop_string(text):
    stops = StopStrings(["END"])
    out = stops.feed(text)
    if stops.matched is None:
        held = text[len(out) :]
        assert "END".startswith(held)
        assert len(held) < 3
        assert not any(text.endswith("END"[:n]) for n in range(len(held) + 1, 3))


def answer(deltas: list[Delta], **params: object) -> Answer:
    return Answer(Vocabulary(byte_level()), Params(**params), deltas.append)  # type: ignore[arg-type]


def test_tokens_that_come_fast_go_out_together(monkeypatch):
    now = 0.0
    monkeypatch.setattr(answer_module.time, "monotonic", lambda: now)
    deltas: list[Delta] = []
    it = answer(deltas)
    for at, byte in enumerate(b"abcdef"):
        now = at * 0.008
        it.add(byte, None, ends=False)
    it.close()
    assert [(delta.text, delta.tokens) for delta in deltas] == [("a", 1), ("bcd", 3), ("ef", 2)]


def test_a_long_silence_sends_an_empty_delta(monkeypatch):
    now = 0.0
    monkeypatch.setattr(answer_module.time, "monotonic", lambda: now)
    deltas: list[Delta] = []
    it = answer(deltas)
    for at in range(4):
        now = at * 0.6
        it.add(256, None, ends=False)
    assert [(delta.text, delta.tokens) for delta in deltas] == [("", 3)]


def test_half_a_character_at_the_end_is_left_out():
    deltas: list[Delta] = []
    it = answer(deltas)
    for byte in "aé".encode()[:-1]:
        it.add(byte, None, ends=False)
    it.close()
    assert "".join(delta.text for delta in deltas) == "a"
    assert it.tokens == 2


def test_log_probabilities_go_with_their_text(monkeypatch):
    monkeypatch.setattr(answer_module, "JOIN_S", 0.0)
    deltas: list[Delta] = []
    it = answer(deltas, stop=["no!"], logprobs=True)
    for byte in "énone".encode():
        it.add(byte, {"token": byte}, ends=False)
    it.close()
    seen = [(delta.text, [entry["token"] for entry in delta.logprobs or ()]) for delta in deltas]
    assert seen[0] == ("é", [0xC3, 0xA9])  # not before its text
    assert "".join(text for text, _ in seen) == "énone"
    assert [token for _, tokens in seen for token in tokens] == list("énone".encode())


def test_log_probabilities_without_text_come_at_the_end():
    deltas: list[Delta] = []
    it = answer(deltas, logprobs=True)
    it.add(0xC3, {"token": 1}, ends=False)
    it.close()
    assert deltas == [Delta("", 1, [{"token": 1}])]


@pytest.mark.parametrize("logprobs", [False, True])
def test_nothing_at_all_sends_nothing(logprobs):
    deltas: list[Delta] = []
    it = answer(deltas, logprobs=logprobs)
    assert it.add(256, None, ends=True)
    it.close()
    assert deltas == []
    assert it.tokens == 1
