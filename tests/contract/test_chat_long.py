"""A tool loop of the official SDK over the strict backends: each message goes back as its dump says it.

The SDK keeps keys that it does not know (`reasoning_content`, `extra_content`, lists of parts),
so whatever a backend wants back is in the dump, and must reach the backend unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessage

from tests.backends.character import Character
from tests.backends.character_databricks import DatabricksClaude
from tests.backends.character_deepseek import DeepSeek
from tests.backends.character_gemini import Gemini
from tests.backends.gateway import Gateway
from tests.backends.long_task import DONE, gauge_prompt

TURNS = 10
GAUGE: Any = {
    "type": "function",
    "function": {
        "name": "read_gauge",
        "description": "Reads a part of a gauge.",
        "parameters": {
            "type": "object",
            "properties": {"gauge": {"type": "integer"}, "part": {"type": "integer"}},
            "required": ["gauge", "part"],
        },
    },
}


def whole(client: OpenAI, **request: Any) -> dict[str, Any]:
    return _dump(client.chat.completions.create(**request).choices[0].message)


def streamed(client: OpenAI, **request: Any) -> dict[str, Any]:
    """The message that the SDK's own accumulator makes of a stream."""
    with client.chat.completions.stream(**request) as stream:
        return _dump(stream.get_final_completion().choices[0].message)


def _dump(message: ChatCompletionMessage) -> dict[str, Any]:
    """Without what the SDK adds for its own use (`parsed`, `parsed_arguments`) and without its nulls."""
    told = message.model_dump(exclude_none=True, exclude={"parsed": True})
    for call in told.get("tool_calls") or []:
        call["function"].pop("parsed_arguments", None)
        call.pop("index", None)
    return told


@pytest.mark.parametrize("ask", [whole, streamed])
@pytest.mark.parametrize("make", [DatabricksClaude, DeepSeek, Gemini])
def test_ten_turns_of_tools(
    make: Callable[[], Character],
    ask: Callable[..., dict[str, Any]],
    start_gateway: Callable[..., Gateway],
) -> None:
    with make() as backend:
        gateway = start_gateway([backend.provider()])
        client = OpenAI(base_url=f"{gateway.base}/v1", api_key="unused", max_retries=0)
        messages: list[Any] = [
            {"role": "system", "content": "Read."},
            {"role": "user", "content": gauge_prompt(TURNS)},
        ]
        for _ in range(TURNS + 1):
            said = ask(client, model=f"up/{backend.model}", messages=messages, tools=[GAUGE])
            messages.append(said)
            messages += [_result(call) for call in said.get("tool_calls") or []]
        assert backend.refusals == []
        assert backend.steps == [*range(TURNS), None]
        assert DONE in str(messages[-1]["content"])


def _result(call: dict[str, Any]) -> dict[str, Any]:
    told = orjson.loads(call["function"]["arguments"])
    return {"role": "tool", "tool_call_id": call["id"], "content": f"gauge {told['gauge']}.{told['part']}"}
