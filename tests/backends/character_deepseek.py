"""DeepSeek as a strict character: the very text of a thought must come back with its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import replies
from .character import SECRET_THOUGHT, Character, Json, assistants, edited, since_prompt, wire_call
from .long_task import Turn
from .strict_chat import Fault, first_fault


class DeepSeek(Character):
    """Thinks in `reasoning_content`, and wants the very text back with each of its calls.

    In the turn at hand a text that is not the one given is refused; so it is in earlier turns
    unless it is the blank that stands for a text not kept.
    """

    model = "deepseek-long"

    def __init__(self, *, all_turns: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._all_turns = all_turns

    def provider(self) -> Json:
        over = {"reasoning": {"scope": "all"}} if self._all_turns else {}
        return {**self._openai("deepseek"), **({"overrides": over} if over else {})}

    def fault(self, body: Json) -> Fault | None:
        own = next(self._own_faults(body), None)
        if own is not None:
            return own
        plain = {key: value for key, value in body.items() if key not in ("thinking", "parallel_tool_calls")}
        return first_fault(edited(plain, _without("reasoning_content")), later_system=True, prefill=True)

    def _own_faults(self, body: Json) -> Iterator[Fault]:
        if (body.get("response_format") or {}).get("type") == "json_schema":
            yield Fault("response_format", "This response_format type is unavailable now")
        if body.get("tool_choice") not in (None, "auto", "none"):
            yield Fault("tool_choice", "Thinking mode does not support this tool_choice")
        for at, message in enumerate(body.get("messages") or []):
            content = message.get("content")
            if isinstance(content, list) and all(part.get("type") == "text" for part in content):
                yield Fault(f"messages[{at}].content", "invalid type: sequence, expected a string")
        yield from self._thought_faults(body.get("messages") or [])

    def _thought_faults(self, messages: Sequence[Json]) -> Iterator[Fault]:
        now = len(messages) - since_prompt(messages)
        for at, message in assistants(messages):
            if not message.get("tool_calls"):
                continue
            given = message.get("reasoning_content")
            if not given:
                yield Fault("", "The reasoning_content in the thinking mode must be passed back to the API.")
            call_id = message["tool_calls"][0]["id"]
            if not call_id.startswith("call_00_"):  # another model's: any text is taken
                continue
            kept = given == self._thought(call_id)
            if not kept and (at >= now or self._all_turns or given != " "):
                yield Fault(f"messages[{at}].reasoning_content", f"is not what was given: {given!r}")

    def deltas(self, turn: Turn) -> Iterator[Json]:
        for piece in replies.pieces_of(self._thought_of(turn), 10):
            yield {"content": None, "reasoning_content": piece}
        for piece in replies.pieces_of(turn.text):
            yield {"content": piece, "reasoning_content": None}
        yield from replies.call_deltas(
            [replies.ToolUse(f"call_00_{call.key}", call.name, call.arguments) for call in turn.calls]
        )

    def message(self, turn: Turn) -> Json:
        calls = [wire_call(call, f"call_00_{call.key}") for call in turn.calls]
        said = {"role": "assistant", "content": turn.text, "reasoning_content": self._thought_of(turn)}
        return {**said, **({"tool_calls": calls} if calls else {})}

    def usage(self, turn: Turn) -> Json:
        usual = super().usage(turn)
        hit = usual["prompt_tokens"] // 2
        return {
            **usual,
            "prompt_cache_hit_tokens": hit,
            "prompt_cache_miss_tokens": usual["prompt_tokens"] - hit,
        }

    def _thought_of(self, turn: Turn) -> str:
        return self._thought(f"call_00_{turn.calls[0].key}") if turn.calls else "That is all."

    @staticmethod
    def _thought(call_id: str) -> str:
        return SECRET_THOUGHT.format(key=call_id)


def _without(key: str) -> Callable[[Json], Json]:
    return lambda message: {name: value for name, value in message.items() if name != key}
