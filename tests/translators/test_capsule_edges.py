"""Capsules that cannot be read, bodies that hold some, and thoughts told in odd pieces."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from translators.capsule import (
    Seals,
    Unusable,
    _encode,
    _signature,
    merge_details,
    merge_parts,
    seal,
    unseal,
    without_capsules,
)

SEALS = Seals(lambda: b"k" * 32, "p/m")


def test_a_signed_one_that_is_no_base64() -> None:
    head = "dgm1.A"
    with pytest.raises(Unusable, match="cannot be read"):
        unseal(SEALS, f"{head}.{_encode(_signature(SEALS.key, head))}")


def test_one_of_a_version_to_come() -> None:
    with pytest.raises(Unusable, match="version"):
        unseal(SEALS, seal(SEALS, {"calls": {}}).replace("dgm1.", "dgm2."))


CAPSULE = {"type": "reasoning", "summary": [], "encrypted_content": "dgm1.x.y"}
OWN = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}


def test_a_body_without_its_capsules() -> None:
    body = {"model": "m", "input": ["odd", CAPSULE, OWN]}
    before = copy.deepcopy(body)
    bare, lost = without_capsules(body)
    assert bare == {"model": "m", "input": ["odd", {"type": "reasoning", "summary": []}, OWN]}
    assert [loss.pointer for loss in lost] == ["/input/1"]
    assert body == before


@pytest.mark.parametrize("given", ["dgm1.x.y", None, [OWN], []])
def test_a_body_that_holds_none(given: Any) -> None:
    body = {"input": given}
    assert without_capsules(body) == (body, [])
    assert without_capsules(body)[0] is body


def test_a_null_takes_nothing_away_from_an_entry() -> None:
    pieces = [{"type": "t", "text": "a", "signature": "S"}, {"type": "t", "text": "b", "signature": None}]
    assert merge_details(pieces) == [{"type": "t", "text": "ab", "signature": "S"}]


def test_whole_lists_are_joined_and_single_entries_merged() -> None:
    one, two = {"type": "s", "text": "a"}, {"type": "s", "text": "b"}
    pieces = [{"type": "reasoning", "summary": [one]}, {"type": "reasoning", "summary": [two]}]
    assert merge_parts(pieces) == [{"type": "reasoning", "summary": [{"type": "s", "text": "ab"}]}]
    lists = [{"type": "reasoning", "summary": [one, two]}, {"type": "reasoning", "summary": [two]}]
    assert merge_parts(lists) == [{"type": "reasoning", "summary": [one, two, two]}]
