"""Ids of our own."""

from __future__ import annotations

import os
import re
import time

import pytest

from app import ids
from app.ids import new_id


def test_an_id_has_its_prefix_and_is_unlike_any_other() -> None:
    made = [new_id("resp_") for _ in range(5000)]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"resp_[0-9a-f]{28}", each) for each in made)


def test_what_is_made_later_stands_later() -> None:
    first = new_id("msg_")
    time.sleep(0.001)
    assert first < new_id("msg_")


def test_its_random_part_is_never_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    made = [new_id("") for _ in range(5000)]
    assert len(set(made)) == len(made)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes that share memory here")
def test_nor_in_a_process_that_was_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    new_id("")
    assert ids._page, "there is something to use twice"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(len(ids._page)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    assert os.read(reading, 16) == b"0"
    os.close(reading)
