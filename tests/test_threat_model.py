"""Every promise of the threat model has tests, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/threat-model.md").read_text()
ROWS = [
    line.split("|")[1:4]
    for line in PAGE.partition("## What could be done")[2].splitlines()
    if line.startswith("| ")
][2:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_a_promise_is_tested(row: list[str]) -> None:
    folder = "tests/app/"
    names = re.findall(r"`([^`]+)`", row[2])
    assert names
    for name in names:
        if "/" in name:
            folder = name.rpartition("/")[0] + "/"
            name = name.rpartition("/")[2]
        assert list((ROOT / folder).glob(name or "test_*.py")), f"{folder}{name}"


def test_all_rows_are_read() -> None:
    assert len(ROWS) > 12
