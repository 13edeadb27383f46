"""The real tiny model in its process, for the tests of that process."""

from __future__ import annotations

from pathlib import Path

from providers.onnx.process import Worker
from providers.onnx.protocol import Delta, Done, Params

TINY = Path(__file__).parents[3] / "providers" / "onnx" / "model" / "tiny-chat"
HELLO = "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n"
HELLO_ANSWER = "Hello! How can I help you today?"
ENDLESS = {"2": -100.0}
"""No end of text: the answer goes on to its limit."""


async def ask(worker: Worker, *segments: str, **params: object) -> tuple[str, Done]:
    """The text of an answer, and how it ended."""
    items = [item async for item in worker.generate(segments, Params(**params))]  # type: ignore[arg-type]
    done = items.pop()
    assert isinstance(done, Done)
    assert all(isinstance(item, Delta) for item in items)
    return "".join(item.text for item in items if isinstance(item, Delta)), done
