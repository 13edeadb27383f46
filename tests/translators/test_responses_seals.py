"""Reasoning that a backend cannot use is left out, everything else of the conversation stays."""

from __future__ import annotations

from typing import Any

import pytest

from translators.dialect import Loss
from translators.responses.seals import refused, sealed, without_seals

SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
STORED = {"type": "reasoning", "id": "rs_2", "summary": []}
ASKED = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
SAID = {"type": "message", "role": "assistant", "content": "so"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
POINTER = {"type": "item_reference", "id": "msg_9"}


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ([ASKED, SEALED, CALL], [ASKED, CALL]),
        ([SEALED, STORED, ASKED, SEALED], [ASKED]),
        ([SEALED, {**CALL, "id": "fc_1"}, {**SAID, "id": "msg_1"}, ASKED], [CALL, SAID, ASKED]),
        ([{**CALL, "id": "fc_1"}, ASKED], [CALL, ASKED]),
        ([{**ASKED, "id": "msg_1"}], [ASKED]),
        ([SEALED, SEARCH, POINTER], [SEARCH, POINTER]),
        ([SEARCH, POINTER, ASKED], None),
        ([{"type": "compaction", "encrypted_content": "gAAAA"}, ASKED], None),
        (["odd", ASKED], None),
        ("just text", None),
        (None, None),
    ],
)
def test_seals_are_left_out(items: Any, kept: Any) -> None:
    body = {"model": "m", "input": items, "store": False}
    assert without_seals(body) == (None if kept is None else {**body, "input": kept})
    assert body["input"] is items


@pytest.mark.parametrize(
    ("items", "at"), [([ASKED, SEALED, CALL, STORED], ["/input/1", "/input/3"]), ("text", []), (None, [])]
)
def test_the_client_is_told_which(items: Any, at: list[str]) -> None:
    assert sealed({"input": items}) == [
        Loss(pointer, "this backend cannot use its reasoning", "bookkeeping") for pointer in at
    ]


@pytest.mark.parametrize(
    ("status", "code", "message", "expected"),
    [
        (400, "invalid_encrypted_content", "The encrypted content could not be verified.", True),
        (
            400,
            "invalid_request_body",
            "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content item_id did"
            " not match the target item id.",
            True,
        ),
        (
            400,
            None,
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
            True,
        ),
        (400, None, "It was provided without its required preceding item of type 'reasoning'.", True),
        (
            400,
            None,
            "'fc_1' of type 'function_call' was provided without its required 'reasoning' item",
            True,
        ),
        (
            404,
            None,
            "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
            True,
        ),
        (400, None, "items are not persisted when store is set to false", True),
        (500, "invalid_encrypted_content", "", False),
        (400, None, "reasoning is not supported", False),
        (404, "model_not_found", "no such model", False),
    ],
)
def test_the_refusals(status: int, code: str | None, message: str, expected: bool) -> None:
    assert refused(status, code, message) is expected


FOUR = [
    "invalid_encrypted_content",
    "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
    "Item 'fc_1' was provided without its required preceding item of type 'reasoning'.",
    "Items are not persisted when `store` is set to false. Try again with `store` set to true.",
]


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("words", FOUR)
def test_the_documented_words_however_they_are_written(words: str, status: int) -> None:
    for written in (words, words.upper(), words.replace("`", ""), f"{{'message': '{words}'}}"):
        assert refused(status, None, written)
        assert refused(status, written, "Bad request")
    for quote in ("`", '"', '\\"', ""):
        assert refused(status, "bad_request", words.replace("'", quote))
