"""Summaries of conversations: sealed, opened, and the record that they are made of."""

from __future__ import annotations

from typing import Any

import pytest

from translators.compaction import (
    KEPT_CHARS,
    asks_for_it,
    halved,
    holds_some,
    kept,
    opened,
    record,
    seal_summary,
)
from translators.errors import ProxyError
from translators.ir import Json
from translators.responses import ResponsesClient

USER: Json = {"role": "user", "content": "u"}
TRIGGER: Json = {"type": "compaction_trigger"}
THEIRS: Json = {"type": "compaction", "encrypted_content": "gAAAA"}


def key() -> bytes:
    return b"k" * 32


def ours(text: str = "SUM", over: Any = "something else") -> Json:
    return {"type": "compaction", "id": "cmp_1", "encrypted_content": seal_summary(key, text, over)}


def say(text: str, role: str = "user") -> Json:
    return {"role": role, "content": text}


def text_of(item: Json) -> str:
    return str(item["content"][0]["text"])


@pytest.mark.parametrize("text", ["SUM", "«Übersicht» 🧭 \u2028", "long " * 5000])
def test_what_is_sealed_is_opened(text: str) -> None:
    item = ours(text)
    assert text not in item["encrypted_content"]
    (message,) = opened([item], key)
    assert (message["role"], text_of(message).endswith(text)) == ("user", True)


@pytest.mark.parametrize(
    "items", [[], [USER], [USER, THEIRS], [TRIGGER], ["x", 7, None], [{"type": "compaction"}]]
)
def test_what_is_not_ours_stays(items: list[Any]) -> None:
    assert opened(items, key) is items


@pytest.mark.parametrize(
    ("items", "holds"),
    [
        ("compaction", False),
        (None, False),
        ([], False),
        ([USER], False),
        ([{"type": "message"}], False),
        ([{"type": "message"}, THEIRS], True),
        ([USER, {"type": "compaction_summary"}], True),
        ([{"type": ["compaction"]}, "compaction", 7], False),
        (["x", THEIRS], True),
    ],
)
def test_whether_there_is_one(items: Any, holds: bool) -> None:
    assert holds_some(items) is holds


@pytest.mark.parametrize(
    "sealed",
    ["dgc1.", "dgc1.x.y", "dgc2." + seal_summary(key, "s", "")[5:], seal_summary(lambda: b"other", "s", "")],
)
def test_what_cannot_be_believed_is_refused(sealed: str) -> None:
    with pytest.raises(ProxyError) as caught:
        opened([USER, {**ours(), "encrypted_content": sealed}], key)
    assert caught.value.param == "input[1].encrypted_content"


def test_a_capsule_of_reasoning_is_no_summary() -> None:
    sealed = seal_summary(key, "s", "")
    assert opened([{"type": "reasoning", "encrypted_content": sealed}], key)[0]["type"] == "reasoning"


def test_what_a_trigger_had_summed_up_is_gone() -> None:
    tools = {"type": "additional_tools", "tools": []}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    before = [say("d", "developer"), tools, USER, call, say("a", "assistant"), ours("OLD")]
    told = opened([*before, TRIGGER, ours(), say("next")], key)
    assert told[:3] == [before[0], tools, USER]
    assert [text_of(told[3]).endswith("SUM"), told[4]] == [True, say("next")]
    assert len(told) == 5


def test_what_it_stands_behind_is_gone() -> None:
    first = [say("d", "developer"), USER, say("a", "assistant")]
    later = [say("more"), say("b", "assistant")]
    one = [*first, ours("ONE", first), *later]
    told = opened([*one, ours("TWO", opened(one, key)), say("next")], key)
    assert told[:2] == first[:2]
    assert told[2] == say("more")
    assert [text_of(told[3]).endswith("TWO"), told[4:]] == [True, [say("next")]]


OTHERS: dict[str, tuple[list[Json], list[Json]]] = {
    "one gone, another added": (
        [USER, say("a", "assistant"), say("b", "assistant")],
        [USER, say("b", "assistant"), say("c", "assistant")],
    ),
    "one gone": ([USER, say("a", "assistant"), say("b", "assistant")], [USER, say("b", "assistant")]),
    "one added": ([USER, say("a", "assistant")], [USER, say("a", "assistant"), say("b", "assistant")]),
    "another order": ([USER, say("a", "assistant")], [say("a", "assistant"), USER]),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_it_does_not_sum_up_stays(case: str) -> None:
    summed_up, before = OTHERS[case]
    assert opened([*before, ours("SUM", summed_up), say("next")], key)[:-2] == before


def test_one_without_a_trigger_takes_nothing_away() -> None:
    told = opened([USER, say("a", "assistant"), ours(), THEIRS], key)
    assert told[:2] == [USER, say("a", "assistant")]
    assert told[3] == THEIRS


@pytest.mark.parametrize(
    ("items", "asks"),
    [([USER, TRIGGER], True), ([TRIGGER, USER], False), ([], False), ("x", False), (None, False)],
)
def test_the_wish(items: Any, asks: bool) -> None:
    assert asks_for_it(items) is asks


def test_what_is_kept() -> None:
    (summary,) = opened([ours()], key)
    empty = {"role": "user", "content": []}
    items = [say("s", "system"), USER, say("a", "assistant"), summary, TRIGGER, empty, "odd", say("last")]
    assert kept(items) == [say("s", "system"), USER, empty, say("last")]


def test_the_oldest_words_of_the_user_are_not_kept() -> None:
    long = say("x" * KEPT_CHARS)
    assert kept([say("d", "developer"), say("old"), long]) == [say("d", "developer"), long]
    assert kept([say("old"), say("new")], most=4) == [say("new")]
    assert kept([long, say("end")]) == [say("end")]


def test_a_record() -> None:
    body: Json = {
        "model": "m",
        "instructions": "I",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "see"}, IMAGE, FILE, ODD]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "secret"}]},
            {"type": "additional_tools", "tools": [], "role": "developer"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c", "output": "x" * 9000},
            {"type": "function_call_output", "call_id": "elsewhere", "output": "y"},
            {"type": "web_search_call", "id": "w"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"role": "assistant", "content": ""},
        ],
    }
    call = ResponsesClient().decode_request(body, lambda prefix: prefix + "1")
    told = record(call.items)
    assert told.startswith("[system]\nI\n\n[user]\nsee\n[image]\n[file]\n[odd_part]\n\n[assistant calls f]\n")
    assert '{"a": 1}\n\n[result of f]\nxxx' in told
    assert "[... 1000 characters ...]" in told
    assert "[result of a tool]\ny\n\n[web_search_call]\n" in told
    assert told.endswith("[assistant]\nno")
    assert "secret" not in told


IMAGE: Json = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
FILE: Json = {"type": "input_file", "file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}
ODD: Json = {"type": "odd_part", "x": 1}


def test_a_record_without_its_middle() -> None:
    assert halved("a" * 100 + "b" * 1000 + "c" * 900) == "a" * 100 + "b" * 150 + (
        "\n[... 1000 characters ...]\n" + "c" * 750
    )
