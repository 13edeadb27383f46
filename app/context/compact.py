"""`POST /v1/responses/compact`: a conversation, and the shorter one that stands for it.

The user's messages stay, the newest of them at least, and those of the system; all else becomes a summary
(`compaction.py`). A backend that compacts by itself is asked to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from translators.compaction import kept
from translators.ir import Json, Usage
from translators.usage import write_responses_usage

from ..ids import new_id
from ..plan import Plan
from ..request import Request
from .compaction import compaction
from .doors import ask, has

if TYPE_CHECKING:
    from ..gateway import Gateway
    from ..routes import Exchange

_KEYS = frozenset(
    {"model", "input", "instructions", "prompt_cache_key", "prompt_cache_retention", "service_tier"}
)
"""What OpenAI takes there (openai 3.57.0)."""


async def compact(gateway: Gateway, exchange: Exchange, request: Request, plan: Plan) -> None:
    made = await ask(plan, "compact", _KEYS) if has(plan, "compact") else None
    if made is None:
        made = await _compacted(request, exchange.headers, gateway)
    await exchange.answer(200, made)


async def _compacted(request: Request, headers: Mapping[bytes, bytes], gateway: Gateway) -> bytes:
    item, usage = await compaction(request, headers, gateway)
    given = request.body.get("input")
    before = kept(given) if isinstance(given, list) else [_said(given)]
    return orjson.dumps(_object([*map(_shown, before), item], usage, request.context.created))


def _object(output: list[Json], usage: Usage | None, created: int) -> Json:
    return {
        "id": new_id("resp_"),
        "object": "response.compaction",
        "created_at": created,
        "output": output,
        "usage": None if usage is None else write_responses_usage(usage),
    }


def _said(text: Any) -> Json:
    return {"role": "user", "content": text}


def _shown(message: Json) -> Json:
    """A message of the input as an item that typed clients read."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    shown = {"id": message.get("id") or new_id("msg_"), "status": "completed"}
    return {**message, **shown, "type": "message", "content": content}
