"""Gemini as a strict character: signatures on calls, on its OpenAI-compatible surface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import orjson

from . import replies
from .character import Character, Json, assistants, edited, signature, since_prompt, wire_call
from .long_task import Turn
from .loopback import Reply
from .strict_chat import Fault, first_fault


class Gemini(Character):
    """Calls without index, with empty or equal ids and a signature on the first one of a turn.

    The signature comes with the call, or in a delta of its own after it. In the turn at hand it
    must stand where it stood, byte for byte; in earlier turns it may be gone but not changed.
    """

    model = "gemini-long-pro"
    _KEYS: ClassVar = frozenset(
        {
            "model",
            "messages",
            "stream",
            "stream_options",
            "tools",
            "tool_choice",
            "parallel_tool_calls",
            "response_format",
            "reasoning_effort",
            "max_tokens",
            "max_completion_tokens",
            "temperature",
            "top_p",
            "n",
            "stop",
            "extra_body",
        }
    )

    def __init__(self, *, equal_ids: bool = False, **options: Any) -> None:
        """`equal_ids`: the calls of every second step have one id, the same each time."""
        super().__init__(**options)
        self._equal_ids = equal_ids

    def provider(self) -> Json:
        return self._openai("gemini-openai")

    def error(self, status: int, message: str) -> Reply:
        told = {"code": status, "message": message, "status": "INVALID_ARGUMENT"}
        return replies.json_reply([{"error": told}], status)

    def fault(self, body: Json) -> Fault | None:
        own = next(self._own_faults(body), None)
        if own is not None:
            return own
        dropped = ("parallel_tool_calls", "max_completion_tokens", "extra_body")
        plain = {key: value for key, value in body.items() if key not in dropped}
        return first_fault(edited(plain, _without_extra), later_system=True, prefill=True)

    def _own_faults(self, body: Json) -> Iterator[Fault]:
        for key in body:
            if key not in self._KEYS:
                words = f'Invalid JSON payload received. Unknown name "{key}": Cannot find field.'
                yield Fault("", words)
        messages = body.get("messages") or []
        now = len(messages) - since_prompt(messages)
        for at, message in assistants(messages):
            for number, call in enumerate(message.get("tool_calls") or []):
                yield from self._signed(call, number, at, at >= now)

    def _signed(self, call: Json, number: int, at: int, current: bool) -> Iterator[Fault]:
        got = ((call.get("extra_content") or {}).get("google") or {}).get("thought_signature")
        due = _call_signature(call["function"]) if number == 0 else None
        name = call["function"]["name"]
        if got is None and due is not None and current:
            yield Fault(
                "",
                "Function call is missing a thought_signature in functionCall parts. This is required for "
                f"tools to work correctly. Function call `default_api:{name}`, position {at}.",
            )
        if got is not None and got != due:
            yield Fault("", f"Thought signature is not valid. Function call `{name}`, position {at}.")

    def finish(self, turn: Turn) -> str:
        return "stop"

    def deltas(self, turn: Turn) -> Iterator[Json]:
        for piece in replies.pieces_of(turn.text, 20):
            yield {"content": piece}
        late = turn.step is not None and turn.step % 3 == 1
        for number, call in enumerate(self._calls(turn)):
            extra = call.pop("extra_content", None) if late else None
            yield {"tool_calls": [call]}
            if extra is not None and number == 0:
                yield {"tool_calls": [{"id": call["id"], "type": "function", "extra_content": extra}]}

    def message(self, turn: Turn) -> Json:
        calls = list(self._calls(turn))
        said = {"role": "assistant", "content": turn.text or None}
        return {**said, **({"tool_calls": calls} if calls else {})}

    def _calls(self, turn: Turn) -> Iterator[Json]:
        """Ids are empty in one step and given in the next."""
        given = "function-call-{}" if not self._equal_ids else "call_same"
        for number, call in enumerate(turn.calls):
            made = wire_call(call, "" if (turn.step or 0) % 2 else given.format(call.key))
            if number == 0:
                google = {"thought_signature": _call_signature(made["function"])}
                made["extra_content"] = {"google": google}
            yield made


def _call_signature(function: Mapping[str, Any]) -> str:
    """Of what is called with what; the spelling of the arguments does not count."""
    arguments = orjson.dumps(orjson.loads(function["arguments"]), option=orjson.OPT_SORT_KEYS)
    return signature(function["name"], arguments.decode())


def _without_extra(message: Json) -> Json:
    calls = message.get("tool_calls")
    if not calls:
        return message
    bare = [{key: value for key, value in call.items() if key != "extra_content"} for call in calls]
    return {**message, "tool_calls": bare}
