"""`POST /v1/responses/input_tokens`: how many tokens the input of a request would be.

A backend that counts is asked; for the others it is estimated, which `x-dragoman-estimated` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from translators.budget import prompt_tokens

from ..plan import Plan
from ..request import Request
from .doors import ask, has

if TYPE_CHECKING:
    from ..gateway import Gateway
    from ..routes import Exchange

_KEYS = frozenset(
    {
        *("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning"),
        *("text", "truncation"),
    }
)
"""What OpenAI takes there (openai 3.57.0)."""
ESTIMATED = (b"x-dragoman-estimated", b"true")


async def count_tokens(_: Gateway, exchange: Exchange, __: Request, plan: Plan) -> None:
    exact = await _counted(plan)
    tokens = prompt_tokens(orjson.loads(plan.payload), plan.profile.request) if exact is None else exact
    body = orjson.dumps({"object": "response.input_tokens", "input_tokens": tokens})
    await exchange.answer(200, body, *([ESTIMATED] if exact is None else []))


async def _counted(plan: Plan) -> int | None:
    """The backend's own count; None: it does not count. Raises `ProxyError`."""
    told = await ask(plan, "input_tokens", _KEYS) if has(plan, "input_tokens") else None
    try:
        count = orjson.loads(told).get("input_tokens") if told is not None else None
    except (orjson.JSONDecodeError, AttributeError):
        return None
    return count if type(count) is int else None
