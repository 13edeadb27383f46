"""An ONNX provider's own keys are checked where the configuration is read."""

from __future__ import annotations

from typing import Any

import pytest

from config.overrides import find_problems
from providers.onnx.options import OWN_KEYS as READ
from providers.onnx.options import read_options

GOOD: dict[str, Any] = {
    "threads": 2,
    "num_ctx": 4096,
    "devices": ["cuda"],
    "variant": "q4",
    "max_loaded": 1,
    "idle_unload_s": 0.5,
    "max_queue": 0,
}


def test_every_key_is_taken_and_read() -> None:
    assert list(find_problems(GOOD, "onnx")) == []
    assert set(GOOD) == READ
    options, bounds = read_options(GOOD)
    assert (options.threads, options.context, options.devices) == (2, 4096, ("cuda",))
    assert (bounds.max_loaded, bounds.idle_unload_s, bounds.max_queue) == (1, 0.5, 0)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"threads": 0}, "threads: should be greater than or equal to 1"),
        ({"threads": True}, "threads: must not be true or false"),
        ({"max_loaded": "2"}, "max_loaded: should be a valid integer"),
        ({"idle_unload_s": -1}, "idle_unload_s: should be greater than or equal to 0"),
        ({"idle_unload_s": float("inf")}, "idle_unload_s: should be a finite number"),
        ({"devices": [1]}, "devices[0]: should be a valid string"),
        ({"keep_alive": "5m"}, "keep_alive: is for providers of kind ollama only"),
        ({"max_queues": 1}, "max_queues: unknown key"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told(own: dict[str, Any], said: str) -> None:
    (problem,) = find_problems(own, "onnx")
    assert str(problem) == said


def test_they_are_nobody_elses() -> None:
    (problem,) = find_problems({"threads": 1}, "openai")
    assert str(problem) == "threads: is for providers of kind onnx only"
