"""What a model's process may not do: write, inherit, block the event loop, bring the engine along."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable
from pathlib import Path

import pytest

from providers.onnx.process import Options, Worker
from tests.providers.onnx.tiny import ENDLESS, HELLO, HELLO_ANSWER, TINY, ask


def seen_from_outside(pid: int) -> tuple[list[bytes], list[bytes], dict[str, str]]:
    """Command line, environment, and what each open file is."""
    home = Path(f"/proc/{pid}")
    if not home.exists():
        pytest.skip("needs /proc")
    command, environment = ((home / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
    return command, environment, {file.name: str(file.readlink()) for file in (home / "fd").iterdir()}


async def test_it_is_spawned_without_telemetry_and_writes_nothing(worker, capfd):
    command, environment, links = seen_from_outside(worker.pid)
    assert command[:3] == [os.fsencode(sys.executable), b"-P", b"-c"]
    assert b"ORT_DISABLE_TELEMETRY=1" in environment
    assert {links[number] for number in "012"} == {"/dev/null"}
    assert len([link for link in links.values() if link.startswith("socket:")]) == 1  # none of the gateway's
    await ask(worker, HELLO)
    assert capfd.readouterr() == ("", "")


def test_the_gateways_side_imports_no_engine():
    code = (
        "import sys, providers.onnx.process;"
        "print({'onnxruntime', 'onnxruntime_genai', 'numpy', 'tokenizers'} & sys.modules.keys())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def queued() -> float:
    """Seconds for which this thread was ready and the machine had no core for it; 0 where that is unknown."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


async def longest_gap(work: Awaitable[object]) -> float:
    """Seconds for which the event loop did nothing else, at most, while `work` went on."""
    longest, over = 0.0, False

    async def tick() -> None:
        nonlocal longest
        last = time.perf_counter() - queued()
        while not over:
            await asyncio.sleep(0.001)
            now = time.perf_counter() - queued()
            longest, last = max(longest, now - last - 0.001), now

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    await work
    over = True
    await ticker
    return longest


async def test_the_event_loop_is_never_blocked():
    async def load_and_answer() -> None:
        worker = await Worker.start(TINY, Options())
        await ask(worker, HELLO * 700)
        await asyncio.gather(*(ask(worker, HELLO, max_tokens=500, logit_bias=ENDLESS) for _ in range(2)))
        await worker.stop()

    gaps = []
    for _ in range(5):  # a busy machine makes gaps too, but not each time
        gaps.append(await longest_gap(load_and_answer()))
        if gaps[-1] < 0.01:
            return
    pytest.fail(f"blocked for {gaps} s")


def test_it_works_on_the_loop_that_serves():
    uvloop = pytest.importorskip("uvloop")

    async def answer() -> str:
        worker = await Worker.start(TINY, Options())
        try:
            return (await ask(worker, HELLO))[0]
        finally:
            await worker.stop()

    assert uvloop.run(answer()) == HELLO_ANSWER
