"""Databricks as a strict character: Claude on the Chat surface."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from . import replies
from .character import SECRET_THOUGHT, Character, Json, edited, signature, wire_call
from .long_task import Turn
from .loopback import Reply, Request
from .strict_chat import Fault, first_fault


class DatabricksClaude(Character):
    """Unknown keys at any level, nulls, blank text, `strict`, unions at a schema's root: all 400.

    Text is a list of parts both ways; a thought carries a signature in its last piece. A thought
    that comes back must be the one that was given; one that is left out is not missed.
    """

    model = "databricks-claude-long-5"
    _EXTRA = ("thinking", "output_config")

    def provider(self) -> Json:
        base = {"name": "up", "kind": "databricks", "base_url": self.origin, "api_key": "k"}
        return {**base, "models": [self.model]}

    def listing(self, request: Request) -> Reply:
        if request.path.startswith("/api/2.0/serving-endpoints"):
            entry = {"name": self.model, "task": "llm/v1/chat", "state": {"ready": "READY"}}
            return replies.json_reply({"endpoints": [entry]})
        return self.error(404, f"No API found for 'GET {request.path}'")

    def error(self, status: int, message: str) -> Reply:
        code = "ENDPOINT_NOT_FOUND" if status == 404 else "BAD_REQUEST"
        inner = orjson.dumps({"message": message}).decode()
        return replies.json_reply({"error_code": code, "message": inner}, status)

    def fault(self, body: Json) -> Fault | None:
        own = next(self._own_faults(body), None)
        if own is not None:
            return own
        plain = {key: value for key, value in body.items() if key not in self._EXTRA}
        return first_fault(edited(plain, _without_thoughts))

    def _own_faults(self, body: Json) -> Iterator[Fault]:
        for key in ("reasoning_effort", "response_format"):
            if key in body:
                yield Fault(key, "Extra inputs are not permitted")
        for at, tool in enumerate(body.get("tools") or []):
            yield from _claude_tool(tool.get("function") or {}, f"tools.{at}")
        if (body.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
            yield from _claude_thinking(body)
        for at, message in enumerate(body.get("messages") or []):
            yield from _claude_content(message, f"messages.{at}.content")

    def deltas(self, turn: Turn) -> Iterator[Json]:
        thought = self._thought(turn)
        *first, last = replies.pieces_of(thought, 12)
        for piece, signed in [*((piece, "") for piece in first), (last, signature(thought))]:
            yield {"content": [_thought_part(piece, signed)]}
        for piece in replies.pieces_of(turn.text, 12):
            yield {"content": [{"type": "text", "text": piece}]}
        for index, call in enumerate(turn.calls):
            begun = wire_call(call, f"toolu_bdrk_{call.key}")
            begun["function"] = {"name": call.name, "arguments": "{}"}
            yield {"tool_calls": [{"index": index, **begun}]}
            for piece in replies.pieces_of(call.arguments, 15):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def message(self, turn: Turn) -> Json:
        thought = self._thought(turn)
        content = [_thought_part(thought, signature(thought))]
        content += [{"type": "text", "text": turn.text}] if turn.text else []
        calls = [wire_call(call, f"toolu_bdrk_{call.key}") for call in turn.calls]
        return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}

    @staticmethod
    def _thought(turn: Turn) -> str:
        return SECRET_THOUGHT.format(key=turn.calls[0].key if turn.calls else "last")


def _thought_part(text: str, signed: str) -> Json:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text, "signature": signed}]}


def _without_thoughts(message: Json) -> Json:
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, list):
        return message
    rest = [part for part in content if part.get("type") != "reasoning"]
    return {**message, "content": rest} if rest else {k: v for k, v in message.items() if k != "content"}


def _claude_tool(function: Json, at: str) -> Iterator[Fault]:
    if "strict" in function:
        yield Fault(f"{at}.custom.strict", "Extra inputs are not permitted")
    if {"oneOf", "anyOf", "allOf"} & set(function.get("parameters") or {}):
        words = "input_schema does not support oneOf, allOf, or anyOf at the top level"
        yield Fault(f"{at}.custom.input_schema", words)


def _claude_thinking(body: Json) -> Iterator[Fault]:
    if body.get("tool_choice") not in (None, "auto", "none"):
        yield Fault("tool_choice", "Thinking may not be enabled when tool_choice forces tool use.")
    for key in ("temperature", "top_p", "top_k"):
        if key in body:
            yield Fault(key, "may not be set when thinking is enabled")
    budget = body["thinking"].get("budget_tokens")
    if budget is not None and not 1024 <= budget < (body.get("max_tokens") or 0):
        yield Fault("max_tokens", "must be greater than `thinking.budget_tokens`")


def _claude_content(message: Json, at: str) -> Iterator[Fault]:
    content = message.get("content", "")
    if content is None:
        yield Fault(at, "Input should not be null")
    if isinstance(content, str) and message.get("role") != "assistant" and not content.strip():
        yield Fault(at, "text content blocks must contain non-whitespace text")
    for number, part in enumerate(content if isinstance(content, list) else []):
        if part.get("type") == "text" and not part.get("text", "").strip():
            yield Fault(f"{at}.{number}", "text content blocks must contain non-whitespace text")
        if part.get("type") == "image_url" and not part["image_url"]["url"].startswith("data:"):
            yield Fault(f"{at}.{number}", "Only base64 data URLs are supported")
        if part.get("type") == "reasoning":
            told = part["summary"][0]
            if told.get("signature") != signature(told["text"]):
                yield Fault(f"{at}.{number}", "Invalid `signature` in `thinking` block")
