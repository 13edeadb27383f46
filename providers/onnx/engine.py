"""Text generation with onnxruntime-genai: one model, one request at a time.

Only a model's own process imports this: the engine holds the interpreter's lock while it works (measured:
2.2 s for a prompt of 860 tokens).

The generator of the last answer is kept. The next prompt goes on from the tokens both have in common, so it
may hold nothing of one request: choosing tokens is `sampling`'s, and the engine reads the choice as it reads
a prompt. Only an answer under guidance has a generator of its own, whose grammar cannot be wound back.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read once, at the import: the packages send usage data by default

import numpy as np
import onnxruntime_genai as og
import orjson
from tokenizers import Tokenizer

from .answer import Answer
from .detokenizer import Vocabulary
from .protocol import Delta, Done, Finish, Params
from .refusal import Refused, first_line, too_long
from .sampling import COLDEST, Logits, Sampler, logprob_entry

CONTEXT = 32_768
"""Context in use unless told otherwise: a model's own may need more memory than the machine has."""
CHUNK = 128
"""Tokens of a prompt in one call; one call of 128 costs no more per token than one for all (measured)."""
CHUNK_S = 0.25
"""A slower call has the chunks halved, so that a client that leaves is noticed within twice this; one of a
quarter has them doubled again."""
SMALLEST_CHUNK = 8
ROOM = 1_024
"""Room for an answer in a new generator, whose cache is allocated at once; a longer answer has it grow."""
SMALLEST_CACHE = 2_048
GUIDED_ROOM = 8_192
"""The same under guidance, where it cannot grow: an answer without `max_tokens` ends here."""


@dataclass(slots=True)
class _Cache:
    """A generator and the tokens it has read or written."""

    generator: Any
    capacity: int
    ids: list[int]
    read: int = 0
    """So many of the first were read as a prompt. Those that were written went one by one, which the engine
    adds up a little differently: with a seed an answer may not rest on them."""


class Engine:
    """A loaded chat model.

    `cancelled` of every method is asked before each token and each piece of the prompt.
    """

    def __init__(
        self,
        path: Path,
        *,
        threads: int | None = None,
        context: int | None = None,
        devices: Sequence[str] = (),
    ) -> None:
        """Load a genai model folder. Raises RuntimeError in the engine's words, OSError, ValueError.

        `devices` are execution providers ("cuda") in place of the folder's own.
        """
        model = orjson.loads((path / "genai_config.json").read_bytes())["model"]
        self.context_length = min(int(model["context_length"]), context or CONTEXT)
        eos = model.get("eos_token_id", ())
        self._eos = frozenset([eos] if isinstance(eos, int) else eos)
        self._vocabulary_size = int(model["vocab_size"])
        self._model = og.Model(_config(path, threads, devices))
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._vocabulary = Vocabulary(self._tokenizer)
        self._cache: _Cache | None = None
        self._chunk = CHUNK

    def encode(self, segments: Sequence[str]) -> list[int]:
        """The tokens of each segment, one after the other: none spans two of them."""
        encoded = self._tokenizer.encode_batch(list(segments), add_special_tokens=False)
        return [token for segment in encoded for token in segment.ids]

    def generate(
        self,
        segments: Sequence[str],
        params: Params,
        emit: Callable[[Delta], None],
        cancelled: Callable[[], bool],
        prefilled: Callable[[int, int], None],
    ) -> Done:
        """Answer a prompt. `prefilled` gets (read, all) tokens of the prompt after each piece.

        Raises `Refused` for a prompt over the context, a grammar that does not hold, a bias on no token.
        """
        prompt = self.encode(segments)
        if not prompt:
            raise Refused("bad_request", "The prompt is empty.", "messages")
        if len(prompt) >= self.context_length:
            raise too_long(self.context_length, len(prompt), "the prompt")
        try:
            sampler = Sampler(params, prompt, self._vocabulary_size)
        except ValueError as error:
            raise Refused("bad_request", str(error), "logit_bias") from None
        run = _Run(self, params, prompt, sampler, cancelled, prefilled)
        answer = Answer(self._vocabulary, params, emit)
        try:
            finish = run.answer(answer)
        except BaseException:
            self._cache = None  # what it holds now is anybody's guess
            raise
        answer.close()
        return Done(finish, answer.matched_stop, len(prompt), answer.tokens, run.cached)

    # --- what a run asks of it ---------------------------------------------------------

    def cache_for(self, prompt: list[int], params: Params) -> tuple[_Cache, int]:
        """A cache with a beginning of `prompt` in it, and the number of those tokens."""
        kept = self._cache
        room = ROOM if params.max_tokens is None else min(params.max_tokens, ROOM)
        if kept is None or kept.capacity < min(len(prompt) + room // 4 + 1, self.context_length):
            return self.new_cache(len(prompt) + room), 0
        common = _common(kept.ids, prompt)
        if params.seed is not None:
            common = min(common, kept.read)
        if common and not _rewind(kept, common):
            common = 0
        return (kept, common) if common else (self.new_cache(len(prompt) + room), 0)

    def new_cache(self, tokens: int) -> _Cache:
        """An empty cache with room for at least so many tokens, or for the context."""
        self._release()
        capacity = SMALLEST_CACHE
        while capacity < tokens:
            capacity *= 2
        capacity = min(capacity, self.context_length)
        self._cache = _Cache(self._generator(capacity, {"do_sample": False}), capacity, [])
        return self._cache

    def guided_cache(self, prompt: list[int], params: Params) -> _Cache:
        """A cache for one answer under `params.guidance`. Raises `Refused` when that makes no grammar."""
        self._release()
        room = GUIDED_ROOM if params.max_tokens is None else params.max_tokens
        capacity = min(len(prompt) + room, self.context_length)
        try:
            return _Cache(self._generator(capacity, _search_options(params), params), capacity, [])
        except RuntimeError as error:
            raise Refused(
                "bad_request", f"The model cannot be held to this format: {first_line(error)}"
            ) from None

    def _release(self) -> None:
        """Give a cache's memory back before the next one's is taken; others may still refer to it."""
        if self._cache is not None:
            self._cache.generator = None
            self._cache = None

    def _generator(self, capacity: int, search: dict[str, Any], params: Params | None = None) -> Any:
        options = og.GeneratorParams(self._model)
        options.set_search_options(max_length=capacity, **search)
        if params is not None and params.guidance is not None:
            options.set_guidance(params.guidance.kind, params.guidance.text)
        return og.Generator(self._model, options)

    def prefill(
        self, cache: _Cache, ids: list[int], cancelled: Callable[[], bool], told: Callable[[int], None]
    ) -> bool:
        """Have the model read `ids`, piece by piece; False: cancelled on the way."""
        at = 0
        while at < len(ids):
            if cancelled():
                return False
            # One token alone would be summed up otherwise than the same one among others.
            size = self._chunk - (len(ids) - at == self._chunk + 1)
            piece, began = ids[at : at + size], time.monotonic()
            cache.generator.append_tokens(np.array(piece, dtype=np.int32))
            if cache.read == len(cache.ids):
                cache.read += len(piece)
            cache.ids += piece
            at += len(piece)
            if len(piece) == self._chunk:
                self._chunk = _next_chunk(self._chunk, time.monotonic() - began)
            told(at)
        return True

    def entry(self, logits: Logits, token: int, params: Params) -> Any:
        """The log probabilities of a token that appears in the text; None: it doesn't."""
        if token in self._eos or (token in self._vocabulary.special and not params.keep_special):
            return None
        return logprob_entry(logits, token, params.top_logprobs, self._vocabulary)

    def ends(self, token: int) -> bool:
        return token in self._eos


class _Run:
    """One request on its way through the engine."""

    __slots__ = (
        *("_cache", "_cancelled", "_engine", "_params", "_prefilled", "_prompt", "_sampler", "_unread"),
        "cached",
    )

    def __init__(
        self,
        engine: Engine,
        params: Params,
        prompt: list[int],
        sampler: Sampler,
        cancelled: Callable[[], bool],
        prefilled: Callable[[int, int], None],
    ) -> None:
        self._engine = engine
        self._params = params
        self._prompt = prompt
        self._sampler = sampler
        self._unread: int | None = None
        """A token that was chosen and that the model has not read yet."""
        self._cancelled = cancelled
        self._prefilled = prefilled
        if params.guidance is not None:
            self._cache, self.cached = engine.guided_cache(prompt, params), 0
        else:
            self._cache, self.cached = engine.cache_for(prompt, params)

    def answer(self, answer: Answer) -> Finish:
        """Read the prompt, then token by token until something ends it."""
        if not self._read(self._prompt[self.cached :], self.cached):
            return "cancelled"
        limit = self._params.max_tokens
        while limit is None or answer.tokens < limit:
            if self._cancelled():
                return "cancelled"
            if not self._has_room():
                return "length"
            token, entry = self._next()
            self._sampler.took(token)
            self._cache.ids.append(token)
            if answer.add(token, entry, ends=self._engine.ends(token)):
                return "stop"
        return "length"

    def _read(self, ids: list[int], before: int) -> bool:
        total = len(self._prompt)
        return self._engine.prefill(
            self._cache, ids, self._cancelled, lambda done: self._prefilled(min(before + done, total), total)
        )

    def _has_room(self) -> bool:
        """Whether one more token fits; a full cache makes way for one of twice its size."""
        cache, full = self._cache, self._engine.context_length
        if len(cache.ids) < cache.capacity:
            return True
        if cache.capacity >= full or self._params.guidance is not None:
            return False
        self._cache, self._unread = self._engine.new_cache(2 * cache.capacity), None
        return self._read(cache.ids, 0)

    def _next(self) -> tuple[int, Any]:
        """The next token and, where asked for, its log probabilities."""
        generator, sampler, params = self._cache.generator, self._sampler, self._params
        if sampler.plain and not params.logprobs:
            generator.generate_next_token()
            return int(generator.get_next_tokens()[0]), None
        if self._unread is not None:
            generator.append_tokens(np.array([self._unread], dtype=np.int32))
        logits: Logits = np.array(generator.get_logits(), dtype=np.float32).reshape(-1)
        edited = sampler.edit(logits) if sampler.edits else logits
        if params.guidance is None:
            token = self._unread = sampler.choose(edited)
        else:
            if sampler.edits:  # the grammar's mask is laid over these, and the engine draws
                generator.set_logits(edited.reshape(1, 1, -1))
            generator.generate_next_token()
            token = int(generator.get_next_tokens()[0])
        return token, self._engine.entry(logits, token, params) if params.logprobs else None


def _config(path: Path, threads: int | None, devices: Sequence[str]) -> Any:
    config = og.Config(str(path))
    if threads is not None:
        session = {"intra_op_num_threads": threads}
        overlay = {"model": {"decoder": {"session_options": session}}}
        config.overlay(orjson.dumps(overlay).decode())
    if devices:
        config.clear_providers()
        for device in devices:
            config.append_provider(device)
    return config


def _next_chunk(size: int, seconds: float) -> int:
    """Size of the next chunk after one of `size` took so long."""
    if seconds > CHUNK_S:
        return max(size // 2, SMALLEST_CHUNK)
    return min(size * 2, CHUNK) if seconds < CHUNK_S / 4 else size


def _search_options(params: Params) -> dict[str, Any]:
    """The engine's own sampling, which draws under a grammar's mask."""
    if params.temperature < COLDEST:
        return {"do_sample": False}
    options = {
        "do_sample": True,
        "temperature": params.temperature,
        "top_k": params.top_k,
        "top_p": params.top_p,
    }
    return options if params.seed is None else options | {"random_seed": params.seed & 0x7FFF_FFFF}


def _common(held: list[int], prompt: list[int]) -> int:
    """Tokens of the prompt that need not be read again.

    Never the last two of the prompt (the logits of the last are wanted, and it is not read alone), nor the
    last one held: written, not yet read.
    """
    limit = max(min(len(held) - 1, len(prompt) - 2), 0)
    return next((n for n in range(limit) if held[n] != prompt[n]), limit)


def _rewind(cache: _Cache, tokens: int) -> bool:
    """Wind back to so many tokens; False for models (recurrent ones) that cannot."""
    try:
        cache.generator.rewind_to(tokens)
    except RuntimeError:
        return False
    del cache.ids[tokens:]
    cache.read = min(cache.read, tokens)
    return True
