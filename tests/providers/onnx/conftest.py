"""The tiny model of the package: what it says to fixed prompts is known."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import pytest

from providers.onnx.engine import Engine
from providers.onnx.process import Options, Worker
from providers.onnx.protocol import Delta, Done, Params
from tests.providers.onnx.tiny import TINY

SUM = "<|im_start|>user\nWhat is 2 plus 3?<|im_end|>\n<|im_start|>assistant\n"
SUM_ANSWER = "2 plus 3 is 5."


@pytest.fixture(scope="session")
def tiny() -> Path:
    return TINY


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    started = await Worker.start(TINY, Options())
    yield started
    await started.stop()


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(TINY)


Ask = Callable[..., tuple[str, Done, list[Delta]]]


@pytest.fixture
def ask(engine: Engine) -> Ask:
    """`ask("prompt", temperature=..., ...)`: the text, the end, the deltas."""

    def ask(*segments: str, **params: object) -> tuple[str, Done, list[Delta]]:
        deltas: list[Delta] = []
        done = engine.generate(
            segments,
            Params(**params),
            deltas.append,
            lambda: False,
            lambda done, total: None,  # type: ignore[arg-type]
        )
        return "".join(delta.text for delta in deltas), done, deltas

    return ask
