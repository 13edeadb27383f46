"""The engine with the real tiny model, in this process."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from providers.onnx import engine as engine_module
from providers.onnx.engine import Engine
from providers.onnx.protocol import Delta, Guidance, Params
from providers.onnx.refusal import Refused

HELLO = "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n"
HELLO_ANSWER = "Hello! How can I help you today?"
SUM = "<|im_start|>user\nWhat is 2 plus 3?<|im_end|>\n<|im_start|>assistant\n"
SUM_ANSWER = "2 plus 3 is 5."
ENDLESS = {"2": -100.0}


def test_greedy_answers_are_the_same_each_time_and_end_with_stop(ask):
    for _ in range(2):
        text, done, _ = ask(HELLO)
        assert text == HELLO_ANSWER
        assert (done.finish, done.matched_stop) == ("stop", None)
        assert (done.prompt_tokens, done.completion_tokens) == (11, 10)
    assert ask(SUM)[0] == SUM_ANSWER


@pytest.mark.parametrize(
    "params",
    [
        {"temperature": 1.5},
        {"temperature": 2.0, "top_p": 0.95},
        {"temperature": 2.0, "top_k": 20},
        {"temperature": 2.0, "min_p": 0.001},
        {"temperature": 1.5, "guidance": Guidance("regex", "[a-z]{12}")},
    ],
    ids=repr,
)
def test_a_seed_repeats_and_others_differ(ask, params):
    def text(seed: int) -> str:
        return ask(HELLO, seed=seed, max_tokens=30, logit_bias=ENDLESS, **params)[0]

    texts = {seed: text(seed) for seed in range(-2, 6)}
    assert {seed: text(seed) for seed in texts} == texts
    assert len(set(texts.values())) > 2


def test_without_a_seed_answers_differ(ask):
    assert len({ask(HELLO, temperature=3.0, max_tokens=20)[0] for _ in range(5)}) > 1


def test_max_tokens_ends_with_length(ask):
    text, done, deltas = ask(HELLO, max_tokens=3)
    assert (done.finish, done.completion_tokens) == ("length", 3)
    assert HELLO_ANSWER.startswith(text)
    assert sum(delta.tokens for delta in deltas) == 3


@pytest.mark.parametrize(
    ("stop", "text", "matched"),
    [
        (["can I"], "Hello! How ", "can I"),  # across tokens
        (["help you tomorrow"], HELLO_ANSWER, None),  # only begins
        (["zzz", "o", "Hello!"], "Hell", "o"),  # the first to end
        (["lo", "Hello"], "", "Hello"),  # of those, the first to begin
        (["today?"], "Hello! How can I help you ", "today?"),
        ([""], HELLO_ANSWER, None),
    ],
)
def test_stop_strings(ask, stop, text, matched):
    got, done, _ = ask(HELLO, stop=stop, logprobs=True)
    assert (got, done.matched_stop, done.finish) == (text, matched, "stop")


def test_logprobs_are_the_models_own(ask, engine):
    _, done, deltas = ask(HELLO, logprobs=True, top_logprobs=3)
    entries = [entry for delta in deltas for entry in delta.logprobs or ()]
    assert len(entries) == done.completion_tokens - 1  # not the end of text
    assert b"".join(bytes(entry["bytes"]) for entry in entries).decode() == HELLO_ANSWER
    for entry in entries:
        top = entry["top_logprobs"]
        assert (top[0]["token"], top[0]["logprob"]) == (entry["token"], entry["logprob"])  # greedy
        assert [one["logprob"] for one in top] == sorted((one["logprob"] for one in top), reverse=True)
        assert math.fsum(math.exp(one["logprob"]) for one in top) <= 1.0
    ids = engine.encode([HELLO])
    logits = next_logits(engine, ids)
    expected = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    assert entries[0]["logprob"] == pytest.approx(float(expected.max()), abs=1e-4)


def next_logits(engine: Engine, ids: list[int]) -> np.ndarray:
    """From a generator of its own, in one piece."""
    cache = engine._generator(len(ids) + 1, {"do_sample": False})
    cache.append_tokens(np.array(ids, dtype=np.int32))
    return np.array(cache.get_logits(), dtype=np.float64).reshape(-1)


def test_logprobs_of_a_stop_string_stay_out(ask):
    text, _, deltas = ask(HELLO, stop=["can"], logprobs=True)
    entries = [entry for delta in deltas for entry in delta.logprobs or ()]
    assert text == "Hello! How "
    assert [entry["token"] for entry in entries][:3] == ["Hello", "!", " How"]
    assert all(entry["top_logprobs"] == [] for entry in entries)
    assert len(entries) <= 4  # " can" begins before the stop string


def test_no_logprobs_unless_asked(ask):
    assert all(delta.logprobs is None for delta in ask(HELLO)[2])


def test_logit_bias_forces_and_bans(ask, engine):
    (six,) = engine.encode(["6"])
    assert ask(HELLO, logit_bias={str(six): 100.0}, max_tokens=4)[0] == "6666"
    (hello,) = engine.encode(["Hello"])
    assert "Hello" not in ask(HELLO, logit_bias={str(hello): -100.0}, max_tokens=6)[0]


@pytest.mark.parametrize("penalty", ["frequency_penalty", "presence_penalty"])
def test_penalties_work_against_repetition(ask, engine, penalty):
    (six,) = engine.encode(["6"])
    forced = {str(six): 60.0}
    assert ask(HELLO, logit_bias=forced, max_tokens=8)[0] == "66666666"
    assert ask(HELLO, logit_bias=forced, max_tokens=8, **{penalty: 70.0})[0].count("6") < 3


def test_a_repetition_penalty_counts_the_prompt_too(ask):
    assert ask(HELLO, repetition_penalty=1.0)[0] == HELLO_ANSWER
    assert ask(SUM, repetition_penalty=5.0, max_tokens=12)[0] != SUM_ANSWER


def test_guidance(ask):
    assert re.fullmatch("[0-9]{5}", ask(HELLO, guidance=Guidance("regex", "[0-9]{5}"))[0])
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
        "x-guidance": {"whitespace_flexible": False},
    }
    text, done, _ = ask(HELLO, guidance=Guidance("json_schema", json.dumps(schema)))
    assert json.loads(text)["city"] in ("Paris", "Rome")
    assert done.finish == "stop"
    lark = 'start: "<tool_call>\\n" obj "\\n</tool_call>"\nobj: %json ' + json.dumps(schema)
    text = ask(HELLO, guidance=Guidance("lark_grammar", lark), temperature=1.0, seed=1, logprobs=True)[0]
    assert re.fullmatch(r'<tool_call>\n\{"city":"(Paris|Rome)"\}\n</tool_call>', text)
    assert ask(HELLO, guidance=Guidance("regex", "[0-9]{9}"), max_tokens=3)[1].finish == "length"


def test_bias_works_under_guidance(ask, engine):
    (seven,) = engine.encode(["7"])
    assert ask(HELLO, guidance=Guidance("regex", "[0-9]{3}"), logit_bias={str(seven): 50.0})[0] == "777"


@pytest.mark.parametrize(
    ("params", "kind", "param", "words"),
    [
        ({"guidance": Guidance("regex", "[0-9")}, "bad_request", None, "cannot be held to this format"),
        ({"guidance": Guidance("lark_grammar", "start: foo")}, "bad_request", None, "foo"),
        ({"logit_bias": {"640": 1.0}}, "bad_request", "logit_bias", "640"),
        ({"logit_bias": {"-1": 1.0}}, "bad_request", "logit_bias", "640"),
    ],
)
def test_what_cannot_be_done_is_refused_and_the_next_works(ask, params, kind, param, words):
    with pytest.raises(Refused) as caught:
        ask(HELLO, **params)
    assert (caught.value.kind, caught.value.param) == (kind, param)
    assert words in caught.value.message
    assert ask(HELLO)[0] == HELLO_ANSWER


def test_a_prompt_over_the_context_names_both_numbers(ask):
    with pytest.raises(Refused) as caught:
        ask(HELLO * 800)
    assert caught.value.kind == "context_length"
    assert re.search(r"8192 tokens.*8800 tokens", caught.value.message)


def test_an_empty_prompt_is_refused(ask):
    with pytest.raises(Refused, match="empty"):
        ask("", "")


# --- segments ------------------------------------------------------------------------------


def test_no_token_spans_two_segments(engine):
    control = engine.encode(["<|im_start|>"])
    assert len(control) == 1
    for cut in range(1, len("<|im_start|>")):
        apart = engine.encode(["<|im_start|>"[:cut], "<|im_start|>"[cut:]])
        assert control[0] not in apart
    assert engine.encode(["<|im_start|>user", "\nhi"])[0] == control[0]


# --- prefix reuse --------------------------------------------------------------------------


def test_a_longer_conversation_reuses_the_prefix_and_says_the_same(tiny):
    first = HELLO
    second = first + HELLO_ANSWER + "<|im_end|>\n" + SUM
    warm, cold = Engine(tiny), Engine(tiny)
    run(warm, first)
    text, done = run(warm, second)
    other, fresh = run(cold, second)
    assert text == other
    assert fresh.cached_tokens == 0
    assert done.cached_tokens >= len(warm.encode([first]))
    assert done.prompt_tokens == fresh.prompt_tokens
    again, repeated = run(warm, second)
    assert again == other
    assert repeated.cached_tokens == repeated.prompt_tokens - 2
    _, unlike = run(warm, "Something else. " + SUM)
    assert unlike.cached_tokens == 0


@pytest.mark.parametrize("params", [{"temperature": 1.5, "seed": 5}, {"logprobs": True}, {"stop": ["How"]}])
def test_reuse_changes_nothing_for_any_way_to_choose(tiny, params):
    warm, cold = Engine(tiny), Engine(tiny)
    run(warm, HELLO, guidance=None, max_tokens=4)
    assert run(warm, HELLO, **params)[0] == run(cold, HELLO, **params)[0]


@pytest.mark.parametrize("chunk", [8, 10, 128])
def test_with_a_seed_not_a_bit_depends_on_what_was_asked_before(tiny, monkeypatch, chunk):
    """The engine adds up one token alone otherwise than among others: rests of one, and answers in memory."""
    monkeypatch.setattr(engine_module, "CHUNK", chunk)
    second = HELLO + HELLO_ANSWER + "<|im_end|>\n" + SUM
    asked = {"seed": 4, "temperature": 1.0, "logprobs": True, "top_logprobs": 3, "max_tokens": 6}

    def told(engine: Engine, prompt: str) -> list[Any]:
        found: list[Delta] = []
        engine.generate([prompt], Params(**asked), found.append, lambda: False, lambda *_: None)
        return [delta.logprobs for delta in found]

    def entries(found: list[Any]) -> list[Any]:
        return [entry for each in found for entry in each]

    fresh = entries(told(Engine(tiny), second))
    engine = Engine(tiny)
    for before in (HELLO, second, SUM, second[: len(second) // 2]):
        run(engine, before)
        assert entries(told(engine, second)) == fresh


def test_a_model_that_cannot_wind_back_starts_anew(tiny, monkeypatch):
    engine = Engine(tiny)
    run(engine, HELLO)

    class Straight:
        def rewind_to(self, tokens: int) -> None:
            raise RuntimeError("not supported")

    assert engine._cache is not None
    engine._cache.generator = Straight()
    text, done = run(engine, HELLO)
    assert (text, done.cached_tokens) == (HELLO_ANSWER, 0)


def run(engine: Engine, prompt: str, **params):
    deltas: list[Delta] = []
    done = engine.generate([prompt], Params(**params), deltas.append, lambda: False, lambda done, total: None)
    return "".join(delta.text for delta in deltas), done


def test_a_failed_answer_leaves_nothing_behind(tiny):
    engine = Engine(tiny)

    def fail(delta: Delta) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        engine.generate([HELLO], Params(), fail, lambda: False, lambda done, total: None)
    assert run(engine, HELLO)[0] == HELLO_ANSWER


# --- the cache grows -----------------------------------------------------------------------


def test_an_answer_longer_than_the_cache_goes_on(tiny, monkeypatch):
    whole = run(Engine(tiny), HELLO, max_tokens=300, logit_bias=ENDLESS)
    monkeypatch.setattr(engine_module, "SMALLEST_CACHE", 32)
    monkeypatch.setattr(engine_module, "ROOM", 16)
    small = Engine(tiny)
    text, done = run(small, HELLO, max_tokens=300, logit_bias=ENDLESS)
    assert (text, done.completion_tokens) == (whole[0], 300)
    assert small._cache is not None
    assert small._cache.capacity == 512


def test_a_full_context_ends_with_length(tiny):
    engine = Engine(tiny, context=64)
    assert engine.context_length == 64
    for params in ({}, {"guidance": Guidance("regex", "[0-9]+")}):
        done = run(engine, HELLO, logit_bias=ENDLESS, **params)[1]
        assert (done.finish, done.prompt_tokens + done.completion_tokens) == ("length", 64)


# --- cancellation --------------------------------------------------------------------------


def test_cancelled_between_pieces_of_the_prompt(tiny):
    engine, pieces = Engine(tiny), []
    prompt = [HELLO * 50]  # 550 tokens
    done = engine.generate(
        prompt,
        Params(),
        lambda delta: None,
        lambda: len(pieces) >= 2,
        lambda at, total: pieces.append((at, total)),
    )
    assert (done.finish, done.completion_tokens) == ("cancelled", 0)
    assert pieces == [(128, 550), (256, 550)]
    resumed = engine.generate(prompt, Params(), lambda delta: None, lambda: False, lambda at, total: None)
    assert resumed.cached_tokens == 255  # what was read before is not read again


def test_cancelled_between_tokens(tiny):
    engine, asked = Engine(tiny), iter(range(1000))
    done = engine.generate(
        [HELLO], Params(), lambda delta: None, lambda: next(asked) >= 5, lambda at, total: None
    )
    assert (done.finish, done.completion_tokens) == ("cancelled", 4)


def test_slow_pieces_get_smaller(tiny, monkeypatch):
    monkeypatch.setattr(engine_module, "CHUNK_S", -1.0)
    engine, pieces = Engine(tiny), []
    engine.generate([HELLO * 50], Params(), lambda d: None, lambda: False, lambda at, _: pieces.append(at))
    steps = np.diff([0, *pieces]).tolist()
    assert steps[:5] == [128, 64, 32, 16, 8]
    assert set(steps[5:-1]) == {8}
    monkeypatch.undo()
    pieces.clear()
    engine.generate([SUM * 50], Params(), lambda d: None, lambda: False, lambda at, _: pieces.append(at))
    assert np.diff(pieces).tolist()[:4] == [16, 32, 64, 128]


# --- loading -------------------------------------------------------------------------------


def test_threads_and_devices(tiny):
    assert run(Engine(tiny, threads=1, devices=["cpu"]), HELLO)[0] == HELLO_ANSWER


def test_several_ends_of_text(tiny, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for file in tiny.iterdir():
        (folder / file.name).symlink_to(file)
    config = json.loads((tiny / "genai_config.json").read_text())
    (comma,) = Engine(tiny).encode(["!"])
    config["model"]["eos_token_id"] = [2, comma]
    (folder / "genai_config.json").unlink()
    (folder / "genai_config.json").write_text(json.dumps(config))
    text, done = run(Engine(folder), HELLO)
    assert (text, done.finish) == ("Hello", "stop")


def test_a_missing_folder(tmp_path: Path):
    with pytest.raises(OSError, match="genai_config"):
        Engine(tmp_path / "none")


def test_special_tokens_appear_only_when_kept(ask, engine):
    start = {str(engine.encode(["<|im_start|>"])[0]): 100.0}
    assert ask(HELLO, logit_bias=start, max_tokens=2, logprobs=True)[0] == ""
    kept, _, deltas = ask(HELLO, logit_bias=start, max_tokens=2, keep_special=True, logprobs=True)
    assert kept == "<|im_start|><|im_start|>"
    assert sum(len(delta.logprobs or ()) for delta in deltas) == 2
