"""From logits to a token: penalties, bias, temperature, the cuts, the draw; and log probabilities.

Done here and not by the engine, because its search has no penalties or bias, and because its random state
belongs to a generator, which answers many requests in turn: a seed must give the same text each time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .detokenizer import Vocabulary
from .protocol import Params

Logits = NDArray[np.float32]

_NEAR = math.exp(-6)
"""Tokens of at least this share of the likeliest one's weight are looked at first: nearly always they are
enough. Sorting them and not the vocabulary makes 0.05 ms of 0.4 (49,152 tokens)."""
_BLOCK = 256
COLDEST = 1e-5
"""A temperature below is 0: divided by it, a logit leaves the range of float32."""


class Sampler:
    """Chooses the tokens of one answer."""

    __slots__ = ("_bias", "_bias_at", "_counts", "_params", "_random", "_seen", "edits", "plain")

    def __init__(self, params: Params, prompt: Sequence[int], vocabulary: int) -> None:
        """Raises ValueError for a `logit_bias` on no token of the model."""
        self._params = params
        seed = None if params.seed is None else params.seed & 0xFFFF_FFFF_FFFF_FFFF
        self._random = np.random.default_rng(seed)
        self._bias_at = np.array([int(token) for token in params.logit_bias], dtype=np.int64)
        self._bias = np.array(list(params.logit_bias.values()), dtype=np.float32)
        if self._bias_at.size and not (self._bias_at.min() >= 0 and self._bias_at.max() < vocabulary):
            raise ValueError(f"logit_bias names a token that is not below {vocabulary}")
        counted = bool(params.frequency_penalty or params.presence_penalty)
        self._counts = np.zeros(vocabulary, np.float32) if counted else None
        repeated = params.repetition_penalty != 1.0
        self._seen = np.zeros(vocabulary, bool) if repeated else None
        if self._seen is not None:
            self._seen[np.asarray(prompt, dtype=np.int64)] = True
        self.edits = bool(params.logit_bias) or counted or repeated
        self.plain = not self.edits and params.temperature < COLDEST
        """The likeliest token, as it is: the engine's own choice, no logits needed."""

    def edit(self, logits: Logits) -> Logits:
        """A copy with penalties and bias, as OpenAI and the CTRL paper (repetition) define them."""
        edited = logits.copy()
        if self._seen is not None:
            seen, factor = edited[self._seen], self._params.repetition_penalty
            edited[self._seen] = np.where(seen > 0, seen / factor, seen * factor)
        if self._counts is not None:
            edited -= self._params.frequency_penalty * self._counts
            edited -= self._params.presence_penalty * (self._counts > 0)
        edited[self._bias_at] += self._bias
        return edited

    def choose(self, logits: Logits) -> int:
        """The next token for logits that are already edited."""
        params = self._params
        if params.temperature < COLDEST:
            return int(logits.argmax())
        weights = np.exp((logits - logits.max()) / np.float32(params.temperature))  # the heaviest is 1
        candidates = self._candidates(weights)
        if candidates is None:
            return self._draw_any(weights)
        return int(candidates[self._draw(weights[candidates])])

    def took(self, token: int) -> None:
        if self._counts is not None:
            self._counts[token] += 1
        if self._seen is not None:
            self._seen[token] = True

    def _candidates(self, weights: Logits) -> NDArray[np.int64] | None:
        """The tokens that `top_k`, `top_p` and `min_p` leave, likeliest first; None: all of them."""
        params = self._params
        if params.top_k <= 0 and params.top_p >= 1 and params.min_p <= 0:
            return None
        total = float(weights.sum())
        held = np.flatnonzero(weights >= max(_NEAR, params.min_p))
        if not _holds_all(weights[held], total, params):
            held = _rest(weights, total, params)
        order = held[np.argsort(-weights[held], kind="stable")]  # of equals those with the lower numbers
        if params.top_k > 0:
            order = order[: params.top_k]
            total = float(weights[order].sum())  # top_p is a share of what top_k left
        keep = order.size
        if params.top_p < 1:
            sums = weights[order].cumsum(dtype=np.float64)
            keep = int(np.searchsorted(sums, params.top_p * total)) + 1
        if params.min_p > 0:
            keep = min(keep, int((weights[order] >= params.min_p).sum()))
        return order[: max(keep, 1)]

    def _draw_any(self, weights: Logits) -> int:
        """A draw from all tokens in two steps; running sums over all of them take ten times as long."""
        blocks = np.add.reduceat(weights, np.arange(0, weights.size, _BLOCK))
        start = self._draw(blocks) * _BLOCK
        return start + self._draw(weights[start : start + _BLOCK])

    def _draw(self, weights: Logits) -> int:
        sums = weights.cumsum(dtype=np.float64)
        return int(np.searchsorted(sums, self._random.random() * sums[-1], side="right"))


def _likeliest(weights: NDArray[Any], n: int) -> NDArray[np.int64]:
    """The `n` heaviest, heaviest first; of equals those with the lower numbers."""
    least = np.partition(weights, weights.size - n)[weights.size - n]
    above = np.flatnonzero(weights > least)
    some = np.concatenate([above, np.flatnonzero(weights == least)[: n - above.size]])
    return some[np.argsort(-weights[some], kind="stable")]


def _holds_all(held: Logits, total: float, params: Params) -> bool:
    """Whether the heaviest tokens, of these weights, are all that the cuts leave."""
    if params.min_p >= _NEAR:
        return True
    if params.top_k > 0:
        return held.size >= params.top_k
    return params.top_p < 1 and float(held.sum(dtype=np.float64)) >= params.top_p * total


def _rest(weights: Logits, total: float, params: Params) -> NDArray[np.int64]:
    """The same for the whole vocabulary, as few as can be told at once."""
    if params.top_k > 0:
        return np.sort(_likeliest(weights, min(params.top_k, weights.size)))
    # All that are lighter than this weigh less than what top_p leaves out.
    least = (1 - params.top_p) * total / weights.size
    return np.flatnonzero(weights >= max(least / 2, params.min_p))


def logprob_entry(logits: Logits, token: int, top: int, vocabulary: Vocabulary) -> Mapping[str, Any]:
    """`{token, logprob, bytes, top_logprobs}` of a chosen token, from the model's own logits.

    They are taken before temperature, penalties, bias and guidance, as vLLM does by default.
    """
    wide = logits.astype(np.float64)
    peak = wide.max()
    wide -= peak + np.log(np.exp(wide - peak).sum())
    likeliest = _likeliest(wide, min(top, wide.size)) if top > 0 else ()
    return _entry(wide, token, vocabulary) | {
        "top_logprobs": [_entry(wide, int(other), vocabulary) for other in likeliest]
    }


def _entry(logprobs: NDArray[np.float64], token: int, vocabulary: Vocabulary) -> dict[str, Any]:
    raw = vocabulary.bytes_of(token)
    # OpenAI's floor for what is out of reach; -inf is no JSON.
    logprob = max(float(logprobs[token]), -9999.0)
    return {"token": raw.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(raw)}
