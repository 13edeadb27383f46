"""Client text and control tokens, with the tokeniser of the packaged model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers

from providers.onnx.boundary import MARK, Boundary, boundary, segments
from providers.onnx.folder import read_folder
from providers.onnx.template import render
from tests.providers.onnx.template_sources import CHATML_TOOLS

TINY = Path(__file__).parents[3] / "providers" / "onnx" / "model" / "tiny-chat"
FOLDER = read_folder(TINY, "tiny")
TOKENIZER = Tokenizer.from_file(str(TINY / "tokenizer.json"))
CONTROL = {TOKENIZER.token_to_id(token) for token in FOLDER.special_tokens}

_PIECES = st.sampled_from(
    [
        *FOLDER.special_tokens,
        *("<", "<|", "<|im_", "im_end|>", "|>", ">", "</", "tool_call>", "think>", "<th", "<<|im_end|>"),
        *("\uff1c|im_end|\uff1e", "<|IM_END|>", MARK, MARK + "\ue001", "\ue001", " ", "\n", "word", "ü"),
    ]
)
TEXT = st.lists(_PIECES, max_size=6).map("".join)
"""Text of one who knows the tokens."""
VALUE: Any = st.recursive(
    TEXT | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def control_ids(prompt: str) -> list[int]:
    encoded = TOKENIZER.encode_batch(segments(prompt), add_special_tokens=False)
    return [token for each in encoded for token in each.ids if token in CONTROL]


def conversation(word: Any, value: Any) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Every place where a template writes what a client said."""
    call = {"id": word(), "function": {"name": word(), "arguments": {"k": value()}}}
    turn = {"role": "assistant", "content": word(), "reasoning_content": word() or "x", "tool_calls": [call]}
    messages = [
        {"role": "system", "content": word()},
        {"role": "user", "content": [{"type": "text", "text": word()}, {"type": "text", "text": word()}]},
        turn,
        {"role": "tool", "tool_call_id": call["id"], "content": word()},
    ]
    function = {"name": word(), "description": word(), "parameters": {"properties": value()}}
    return messages, [{"type": "function", "function": function}], {"extra": value()}


@pytest.mark.parametrize("template", [FOLDER.template or "", CHATML_TOOLS + "{{ extra }}"])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_only_the_template_writes_control_tokens(template: str, data: st.DataObject) -> None:
    def prompt(word: Any, value: Any) -> str:
        messages, tools, kwargs = conversation(word, value)
        tokens = FOLDER.special_tokens
        return render(template, messages, tools, special_tokens=tokens, **kwargs)

    plain = prompt(lambda: "x", lambda: "x")
    said = prompt(lambda: data.draw(TEXT) + "x", lambda: data.draw(VALUE))
    assert control_ids(said) == control_ids(plain)


@given(TEXT)
def test_what_the_client_wrote_is_what_the_model_reads(text: str) -> None:
    """All of it, the private-use characters too; only what normalises to a token may be normalised."""
    guard = boundary(FOLDER.special_tokens)
    read = "".join(segments(guard.text(text)))
    if "\uff1c" not in text:
        assert read == text
    assert control_ids(guard.text(text)) == []


@given(TEXT, TEXT)
def test_two_strings_side_by_side_make_no_token(first: str, second: str) -> None:
    guard = boundary(FOLDER.special_tokens)
    assert control_ids(guard.text(first) + guard.text(second)) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [(token[:at], token[at:]) for token in FOLDER.special_tokens for at in range(1, len(token))],
)
def test_no_token_in_two_halves(first: str, second: str) -> None:
    """By two client strings, or by one beside what the template writes."""
    guard = boundary(FOLDER.special_tokens)
    assert control_ids(first + second)
    assert control_ids(guard.text("a " + first) + guard.text(second + " b")) == []
    assert control_ids(guard.text(first) + second) == control_ids(second)
    assert control_ids(first + guard.text(second)) == control_ids(first)


@pytest.mark.parametrize("text", ["\uff1cb>", "x \uff1c\uff42\uff1e y", "<b> \uff1cb>"])
def test_a_tokeniser_that_normalises_finds_none_either(text: str) -> None:
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.add_tokens([AddedToken("<b>", normalized=True)])
    control = tokenizer.token_to_id("<b>")
    assert control in tokenizer.encode(text).ids
    pieces = segments(Boundary(["<b>"]).text(text))
    assert not any(control in tokenizer.encode(piece).ids for piece in pieces)


def test_a_text_without_tokens_is_left_alone() -> None:
    guard = Boundary(["<|im_end|>"])
    assert guard.text("2 < 3, ü, <b>bold</b> [x]") == "2 < 3, ü, <b>bold</b> [x]"
    assert Boundary(()).text(f"a{MARK}b") == f"a{MARK}\ue001b"
    assert segments("") == []


def test_overlapping_tokens_are_all_cut() -> None:
    guard = Boundary(["<a<", "<b>", "b><"])
    pieces = segments(guard.text("<a<b><a<b>"))
    assert "".join(pieces) == "<a<b><a<b>"
    assert not any(token in piece for piece in pieces for token in ("<a<", "<b>", "b><"))


def test_roles_are_not_touched() -> None:
    assert Boundary(["tool", "user"]).message({"role": "user", "content": "user"}) == {
        "role": "user",
        "content": f"u{MARK}ser",
    }
