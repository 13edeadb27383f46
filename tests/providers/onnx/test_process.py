"""A model's process for real: answers, cancellation, death, hanging, and what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import aclosing

import pytest

from providers.onnx import process as process_module
from providers.onnx.process import Options, Worker
from providers.onnx.protocol import Delta, Done, Guidance, Params
from tests.providers.onnx.graph import write_folder
from tests.providers.onnx.tiny import ENDLESS, HELLO, HELLO_ANSWER, TINY, ask
from translators.errors import ProxyError

LONG = Params(max_tokens=8000, logit_bias=ENDLESS)
"""Some two seconds of text."""


async def until(check: Callable[[], bool], seconds: float = 5.0) -> float:
    """Seconds until `check` holds."""
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < seconds
        await asyncio.sleep(0.005)
    return time.monotonic() - began


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_an_answer_and_its_usage(worker):
    assert (worker.context_length, worker.alive, worker.pending) == (8192, True, 0)
    text, done = await ask(worker, HELLO)
    assert text == HELLO_ANSWER
    assert done == Done("stop", None, 11, 10, 0)
    text, done = await ask(worker, HELLO, stop=["can"], guidance=None)
    assert (text, done.matched_stop, done.cached_tokens) == ("Hello! How ", "can", 9)
    assert re.fullmatch("[0-9]{4}", (await ask(worker, HELLO, guidance=Guidance("regex", "[0-9]{4}")))[0])


async def test_logprobs_arrive(worker):
    items = [
        item async for item in worker.generate([HELLO], Params(logprobs=True, top_logprobs=1, max_tokens=1))
    ]
    assert isinstance(items[0], Delta)
    assert items[0].logprobs is not None
    assert items[0].logprobs[0]["token"] == items[0].logprobs[0]["top_logprobs"][0]["token"] == "Hello"


async def test_requests_at_once_are_answered_one_after_the_other(worker):
    answers = await asyncio.gather(*(ask(worker, HELLO) for _ in range(5)))
    assert [text for text, _ in answers] == [HELLO_ANSWER] * 5
    assert worker.pending == 0


@pytest.mark.parametrize(
    ("segment", "params", "kind", "param", "words"),
    [
        (HELLO * 800, {}, "context_length", None, "8192 tokens.*8800 tokens"),
        (HELLO, {"guidance": Guidance("regex", "[0-9")}, "bad_request", None, "cannot be held"),
        (HELLO, {"logit_bias": {"999": 1.0}}, "bad_request", "logit_bias", "640"),
        (HELLO, {"top_k": "many", "temperature": 1.0}, "upstream", None, "The model failed"),
    ],
)
async def test_a_refusal_is_for_its_request_only(worker, segment, params, kind, param, words):
    with pytest.raises(ProxyError, match=words) as caught:
        await ask(worker, segment, **params)
    assert (caught.value.kind, caught.value.param) == (kind, param)
    assert (await ask(worker, HELLO))[0] == HELLO_ANSWER


async def test_loading_tells_its_progress():
    told: list[tuple[str, float]] = []
    worker = await Worker.start(
        TINY, Options(threads=1), tell=lambda state, share: told.append((state, share))
    )
    await worker.stop()
    states = [state for state, _ in told]
    assert states == ["loading"] * (len(told) - 1) + ["compiling"]
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


async def test_a_folder_that_cannot_be_loaded(tmp_path):
    with pytest.raises(ProxyError, match=r"genai_config\.json") as caught:
        await Worker.start(tmp_path, Options())
    assert caught.value.kind == "unavailable"
    for file in TINY.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[:5000])
    with pytest.raises(ProxyError, match=r"The model's process ended: .+"):
        await Worker.start(tmp_path, Options())


# --- cancellation --------------------------------------------------------------------------


async def test_a_client_that_leaves_frees_the_process(worker):
    async with aclosing(worker.generate([HELLO], LONG)) as answer:
        await anext(answer)
        assert worker.pending == 1
    assert await until(lambda: worker.pending == 0) < 0.5
    assert (await ask(worker, HELLO))[0] == HELLO_ANSWER


async def test_a_client_that_leaves_while_the_prompt_is_read(worker):
    asking = asyncio.create_task(ask(worker, HELLO * 700))
    await asyncio.sleep(0.05)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await until(lambda: worker.pending == 0) < 0.5


async def test_one_that_waits_can_leave_too(worker):
    async with aclosing(worker.generate([HELLO], LONG)) as first:
        await anext(first)
        waiting = asyncio.create_task(ask(worker, HELLO))
        await asyncio.sleep(0.01)
        assert worker.pending == 2
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await until(lambda: worker.pending == 0) < 0.5


# --- death and silence ---------------------------------------------------------------------


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_process_fails_its_requests(worker, sent):
    async with aclosing(worker.generate([HELLO], LONG)) as answer:
        await anext(answer)
        waiting = asyncio.create_task(ask(worker, HELLO))
        await asyncio.sleep(0)
        os.kill(worker.pid, sent)
        with pytest.raises(ProxyError, match=sent.name) as caught:
            async for _ in answer:
                pass
    assert caught.value.kind == "upstream"
    with pytest.raises(ProxyError, match=sent.name):
        await waiting
    assert (worker.alive, worker.pending) == (False, 0)
    with pytest.raises(ProxyError, match=sent.name):
        await ask(worker, HELLO)
    assert not exists(worker.pid)


async def test_a_hung_process_is_killed():
    worker = await Worker.start(TINY, Options(silence_s=0.3))
    await asyncio.sleep(0.5)  # owing nothing, it may be silent
    assert worker.alive
    os.kill(worker.pid, signal.SIGSTOP)
    began = time.monotonic()
    with pytest.raises(ProxyError, match=r"did not answer for 0\.3 seconds") as caught:
        await ask(worker, HELLO)
    assert caught.value.kind == "upstream"
    assert 0.2 < time.monotonic() - began < 2
    assert not exists(worker.pid)
    await worker.stop()


async def test_a_process_that_hangs_in_the_middle_of_an_answer():
    worker = await Worker.start(TINY, Options(silence_s=0.3))
    async with aclosing(worker.generate([HELLO], LONG)) as answer:
        for _ in range(40):  # past the first look at it
            await anext(answer)
        os.kill(worker.pid, signal.SIGSTOP)
        with pytest.raises(ProxyError, match="did not answer"):
            async for _ in answer:
                pass
    await worker.stop()


async def test_a_process_that_hangs_while_it_loads(monkeypatch):
    spawned: list[subprocess.Popen[bytes]] = []
    spawn = process_module._spawn

    def stopped(theirs):
        spawned.append(spawn(theirs))
        spawned[-1].send_signal(signal.SIGSTOP)
        return spawned[-1]

    monkeypatch.setattr(process_module, "_spawn", stopped)
    with pytest.raises(ProxyError, match="did not answer") as caught:
        await Worker.start(TINY, Options(load_timeout_s=0.3))
    assert caught.value.kind == "unavailable"
    assert spawned[0].returncode == -signal.SIGKILL


@pytest.mark.parametrize("after", [0.0, 0.002, 0.02, 0.08])
async def test_a_start_that_is_cancelled_leaves_nothing(monkeypatch, after):
    spawned: list[subprocess.Popen[bytes]] = []
    spawn = process_module._spawn
    monkeypatch.setattr(process_module, "_spawn", lambda theirs: spawned.append(spawn(theirs)) or spawned[-1])
    starting = asyncio.create_task(Worker.start(TINY, Options()))
    await asyncio.sleep(after)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert [process.returncode for process in spawned] == [-signal.SIGKILL]


async def test_a_start_that_is_cancelled_at_once_leaves_nothing(monkeypatch):
    spawned: list[subprocess.Popen[bytes]] = []
    spawn = process_module._spawn
    monkeypatch.setattr(process_module, "_spawn", lambda theirs: spawned.append(spawn(theirs)) or spawned[-1])

    async def cancelled(**_: object) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "open_unix_connection", cancelled)
    with pytest.raises(asyncio.CancelledError):
        await Worker.start(TINY, Options())
    assert [process.returncode for process in spawned] == [-signal.SIGKILL]


async def test_a_machine_without_room_for_a_process(monkeypatch):
    monkeypatch.setattr(process_module.sys, "executable", "/nowhere/python")
    with pytest.raises(ProxyError, match="No process for the model: No such file") as caught:
        await Worker.start(TINY, Options())
    assert caught.value.kind == "unavailable"


def test_a_process_that_closed_its_socket_and_stays_is_killed(monkeypatch):
    monkeypatch.setattr(process_module, "GRACE_S", 0.05)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process_module._end(process)
    assert process.returncode == -signal.SIGKILL


async def test_garbage_from_the_process_is_its_end(worker):
    async with aclosing(worker.generate([HELLO], LONG)) as answer:
        await anext(answer)
        worker._reader.feed_data(b"\0" * 80_000)  # frames without a body
        with pytest.raises(ProxyError, match="process ended"):
            async for _ in answer:
                pass


async def test_whoever_asks_hears_of_the_end(worker):
    ended: list[bool] = []
    worker.on_end(lambda: ended.append(worker.alive))
    os.kill(worker.pid, signal.SIGKILL)
    await until(lambda: ended == [False])


async def test_stopping_fails_what_is_left_and_leaves_no_process():
    worker = await Worker.start(TINY, Options())
    asking = asyncio.create_task(ask(worker, HELLO, max_tokens=8000, logit_bias=ENDLESS))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await worker.stop()
    assert time.monotonic() - began < 1.5
    with pytest.raises(ProxyError, match="unloaded") as caught:
        await asking
    assert caught.value.kind == "unavailable"
    assert not exists(worker.pid)
    await worker.stop()
    with pytest.raises(ProxyError, match="unloaded"):
        await ask(worker, HELLO)


async def test_stopping_a_stopped_process_kills_it(worker):
    os.kill(worker.pid, signal.SIGSTOP)
    await worker.stop()
    assert not exists(worker.pid)


async def test_the_process_ends_with_the_gateway():
    worker = await Worker.start(TINY, Options())
    worker._writer.transport.abort()  # all that it can see of a gateway that died
    assert await until(lambda: not exists(worker.pid)) < 2
    assert worker._process.returncode == 0
    await worker.stop()


# --- embeddings ----------------------------------------------------------------------------


async def test_embeddings(tmp_path):
    worker = await Worker.start(write_folder(tmp_path), Options(), kind="embedding")
    assert (worker.context_length, worker.dimensions) == (512, 4)
    found = await worker.embed(["three", [2]])
    assert [struct.unpack("<4f", vector) for vector in found.vectors] == [
        pytest.approx((0, 0, 0.6, 0.8)),
        (0, 1, 0, 0),
    ]
    assert found.prompt_tokens == 2
    assert len((await worker.embed(["three"], 2)).vectors[0]) == 8
    with pytest.raises(ProxyError, match="empty") as caught:
        await worker.embed([""])
    assert (caught.value.kind, caught.value.param) == ("bad_request", "input")
    many = asyncio.create_task(worker.embed(["one two three " * 100] * 2000))
    await asyncio.sleep(0.05)
    many.cancel()
    with pytest.raises(asyncio.CancelledError):
        await many
    await until(lambda: worker.pending == 0)
    assert len((await worker.embed(["one"])).vectors) == 1
    await worker.stop()
