"""vLLM as a strict character: a template that wants one system message."""

from __future__ import annotations

from collections.abc import Iterator

from . import replies
from .character import Character, Json, wire_call
from .long_task import Turn
from .strict_chat import Fault, first_fault


class OneSystem(Character):
    """Anything but one leading system message is refused by the chat template."""

    model = "qwen-long-coder"

    def provider(self) -> Json:
        """Codex tells of a change of model in a later developer message, so the leading run is not enough."""
        return {**self._openai(), "overrides": {"messages": {"system": "hoist_all"}}}

    def fault(self, body: Json) -> Fault | None:
        for at, message in enumerate(body.get("messages") or []):
            if message.get("role") == "developer" or (at and message.get("role") == "system"):
                return Fault("", "System message must be at the beginning.")
        plain = {key: value for key, value in body.items() if key in _VLLM_KEYS}
        return first_fault(plain, prefill=True)

    def deltas(self, turn: Turn) -> Iterator[Json]:
        for piece in replies.pieces_of("Hm. Step by step.", 5):
            yield {"reasoning": piece}
        for piece in replies.pieces_of(turn.text):
            yield {"content": piece}
        yield from replies.call_deltas(
            [replies.ToolUse(f"chatcmpl-tool-{call.key}", call.name, call.arguments) for call in turn.calls]
        )

    def message(self, turn: Turn) -> Json:
        calls = [wire_call(call, f"chatcmpl-tool-{call.key}") for call in turn.calls]
        said = {"role": "assistant", "content": turn.text or None}
        return {**said, **({"tool_calls": calls} if calls else {})}


_VLLM_KEYS = frozenset(
    {
        "model",
        "messages",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "response_format",
        "max_tokens",
        "temperature",
        "top_p",
        "n",
        "stop",
    }
)
"""What it reads; other keys of the body are ignored, not refused."""
