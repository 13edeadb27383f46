"""Which token is taken, against the definition written out."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from providers.onnx import sampling
from providers.onnx.protocol import Params
from providers.onnx.sampling import Sampler

LOGITS = np.log(np.array([0.4, 0.3, 0.2, 0.07, 0.03], dtype=np.float32))
DRAWS = 4000


def drawn(logits: np.ndarray, **params: object) -> Counter[int]:
    sampler = Sampler(Params(seed=1, **params), [], logits.size)  # type: ignore[arg-type]
    return Counter(sampler.choose(logits) for _ in range(DRAWS))


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"temperature": 1.0}, [0.4, 0.3, 0.2, 0.07, 0.03]),
        ({"temperature": 1.0, "top_k": 2}, [4 / 7, 3 / 7, 0, 0, 0]),
        ({"temperature": 1.0, "top_p": 0.65}, [4 / 7, 3 / 7, 0, 0, 0]),
        ({"temperature": 1.0, "top_p": 0.75}, [4 / 9, 3 / 9, 2 / 9, 0, 0]),
        ({"temperature": 1.0, "top_p": 0.01}, [1, 0, 0, 0, 0]),
        ({"temperature": 1.0, "top_k": 3, "top_p": 0.7}, [4 / 7, 3 / 7, 0, 0, 0]),
        ({"temperature": 1.0, "min_p": 0.4}, [4 / 9, 3 / 9, 2 / 9, 0, 0]),
        ({"temperature": 1.0, "min_p": 1.0}, [1, 0, 0, 0, 0]),
        ({"temperature": 0.5}, [16 / 29.58, 9 / 29.58, 4 / 29.58, 0.49 / 29.58, 0.09 / 29.58]),
        ({"temperature": 1e-4}, [1, 0, 0, 0, 0]),
        ({"temperature": 1e-9}, [1, 0, 0, 0, 0]),
        ({"temperature": 0.0}, [1, 0, 0, 0, 0]),
        ({"temperature": 1.0, "top_k": 99}, [0.4, 0.3, 0.2, 0.07, 0.03]),
    ],
    ids=str,
)
def test_shares(params, expected):
    counts = drawn(LOGITS, **params)
    for token, share in enumerate(expected):
        assert counts[token] / DRAWS == pytest.approx(share, abs=0.03)
        assert (counts[token] == 0) == (share == 0) or share < 0.005


def test_a_large_vocabulary_is_drawn_from_in_blocks():
    logits = np.full(10_000, -50.0, dtype=np.float32)
    logits[[7, 999, 9_999]] = 0.0
    counts = drawn(logits, temperature=1.0)
    assert set(counts) == {7, 999, 9_999}
    assert min(counts.values()) > DRAWS * 0.28


CUTS = [
    *({"top_p": 0.99}, {"top_p": 0.9999}, {"top_p": 0.01}, {"min_p": 0.5}, {"min_p": 0.001}),
    *({"top_k": 70}, {"top_k": 700}, {"top_k": 40, "top_p": 0.9}, {"top_p": 0.9, "min_p": 0.05}),
    *({"top_k": 450, "top_p": 0.97, "min_p": 0.002}, {"top_k": 3, "min_p": 0.9}),
]


@pytest.mark.parametrize("width", [0.1, 1.0, 6.0], ids="width {}".format)
@pytest.mark.parametrize("params", CUTS, ids=str)
def test_what_the_cuts_leave_by_definition(params, width):
    """Whether the tokens near the likeliest are enough to look at, or not."""
    logits = (np.random.default_rng(3).normal(size=500) * width).astype(np.float32)
    logits[[7, 70]] = logits[3]  # equals
    given = Params(temperature=1.0, **params)
    weights = np.exp(logits - logits.max())
    order = np.argsort(-weights, kind="stable")
    order = order[: given.top_k] if given.top_k else order
    sums = weights[order].cumsum(dtype=np.float64)
    left = [
        int(token)
        for at, token in enumerate(order)
        if (not at or given.top_p == 1 or sums[at - 1] < given.top_p * sums[-1])
        and weights[token] >= given.min_p
    ]
    found = Sampler(given, [], 500)._candidates(weights)
    assert found is not None
    assert found.tolist() == left


def test_equals_are_taken_by_number():
    assert sampling._likeliest(np.array([1.0, 2, 1, 2, 1]), 3).tolist() == [1, 3, 0]


def test_penalties_and_bias_by_definition():
    params = Params(frequency_penalty=0.5, presence_penalty=0.25, logit_bias={"3": 2.0})
    sampler = Sampler(params, [0], 5)
    for token in (1, 1, 2):
        sampler.took(token)
    logits = np.zeros(5, dtype=np.float32)
    assert sampler.edit(logits).tolist() == [0.0, -1.25, -0.75, 2.0, 0.0]
    assert logits.tolist() == [0.0] * 5


def test_a_repetition_penalty_by_definition():
    sampler = Sampler(Params(repetition_penalty=2.0), [0], 3)
    sampler.took(1)
    assert sampler.edit(np.array([4.0, -4.0, 4.0], dtype=np.float32)).tolist() == [2.0, -8.0, 4.0]


def test_what_is_plain():
    assert Sampler(Params(), [], 5).plain
    assert Sampler(Params(temperature=1e-6), [], 5).plain
    assert not Sampler(Params(temperature=1.0), [], 5).plain
    assert not Sampler(Params(presence_penalty=0.1), [], 5).plain


def test_an_unreachable_token_has_a_finite_log_probability():
    class Bytes:
        def bytes_of(self, token: int) -> bytes:
            return b"\xc3"

    logits = np.array([0.0, -np.inf], dtype=np.float32)
    entry = sampling.logprob_entry(logits, 1, 5, Bytes())  # type: ignore[arg-type]
    assert entry["logprob"] == -9999.0
    assert entry["token"] == "\ufffd"
    assert entry["bytes"] == [0xC3]
    assert [top["logprob"] for top in entry["top_logprobs"]] == [0.0, -9999.0]
    assert not math.isnan(entry["top_logprobs"][1]["logprob"])
