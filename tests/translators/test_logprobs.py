"""Log probabilities as backends write them, made whole."""

from __future__ import annotations

from typing import Any

import pytest

from translators.logprobs import read_logprobs

WHOLE = {"token": "é", "logprob": -0.5, "bytes": [195, 169], "top_logprobs": []}


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        (None, None),
        ("x", None),
        ([], None),
        ([WHOLE], [WHOLE]),
        ([{"token": "é", "logprob": -0.5}], [WHOLE]),
        ([{"token": "é", "logprob": -0.5, "bytes": None, "top_logprobs": None}], [WHOLE]),
        ([{"token": "é", "logprob": -0.5, "bytes": ["x"], "top_logprobs": [3]}], [WHOLE]),
        ([{"token": "é", "logprob": 0, "bytes": []}], [{**WHOLE, "logprob": 0, "bytes": []}]),
        ([3, {}, {"token": 5, "logprob": 0.0}, {"token": "a"}, {"token": "a", "logprob": True}], None),
        (
            [{**WHOLE, "top_logprobs": [{"token": "é", "logprob": -0.5}, {"token": "b"}]}],
            [{**WHOLE, "top_logprobs": [{"token": "é", "logprob": -0.5, "bytes": [195, 169]}]}],
        ),
    ],
)
def test_read(entries: Any, wanted: Any) -> None:
    assert read_logprobs(entries) == wanted
