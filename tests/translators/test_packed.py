"""What is kept takes no more memory than it has bytes."""

from __future__ import annotations

import tracemalloc

import orjson
import pytest

from translators.packed import packed


@pytest.mark.parametrize("size", [0, 50, 3000, 100_000])
def test_the_bytes_are_the_same(size: int) -> None:
    data = orjson.dumps({"a": "x" * size})
    assert packed(data) == data


def test_they_take_no_more_than_they_need() -> None:
    value = {"a": "x" * 3000}
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [packed(orjson.dumps(value)) for _ in range(100)]
        each = (tracemalloc.get_traced_memory()[0] - before) / len(kept)
    finally:
        tracemalloc.stop()
    assert each < 3500
