"""Backends whose replies the token limit cuts off, and how their clients read the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import orjson

from tests.app.test_state import events_of
from tests.backends import replies
from tests.backends.loopback import Reply, Request
from tests.backends.replies import ToolUse

Json = dict[str, Any]
ROUTES = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
_ENDS = {"length": "max_output_tokens", "content_filter": "content_filter"}


@dataclass(frozen=True, slots=True)
class Part:
    """One reply of a backend: what it says, and how it ends. `breaks`: its stream is cut after that."""

    text: str = ""
    end: str = "length"
    calls: Sequence[ToolUse] = ()
    thought: str = ""
    breaks: bool = False

    def __call__(self, request: Request) -> Reply:
        stream = bool(request.json.get("stream"))
        if request.path.endswith("responses"):
            return self._responses(stream)
        return self._chat(stream)

    def _chat(self, stream: bool) -> Reply:
        if stream:
            frames: list[Any] = [replies.chat_chunk({"role": "assistant", "content": ""})]
            if self.thought:
                frames.append(replies.chat_chunk({"reasoning_content": self.thought}))
            frames += [replies.chat_chunk({"content": piece}) for piece in replies.pieces_of(self.text, 3)]
            frames += [replies.chat_chunk(delta) for delta in replies.call_deltas(self.calls)]
            if self.breaks:
                return replies.sse_reply(frames, end="cut")
            frames += [replies.chat_chunk({}, self.end), replies.usage_chunk(), "[DONE]"]
            return replies.sse_reply(frames)
        whole = replies.chat_completion(self.text, self.calls)
        (choice,) = whole["choices"]
        choice["finish_reason"] = self.end
        if self.thought:
            choice["message"]["reasoning_content"] = self.thought
        return replies.json_reply(whole)

    def _responses(self, stream: bool) -> Reply:
        items = replies.response_items(self.text, self.calls)
        if self.thought:
            part = {"type": "reasoning_text", "text": self.thought}
            items.insert(0, {"type": "reasoning", "id": "rs_1", "summary": [], "content": [part]})
        last: Json = {**replies.response_object(items), "usage": replies.RESPONSES_USAGE}
        if self.end in _ENDS:
            last |= {"status": "incomplete", "incomplete_details": {"reason": _ENDS[self.end]}}
        if not stream:
            return replies.json_reply(last)
        frames = replies.item_stream([item for item in items if item["type"] != "reasoning"])
        frames[-1] = {**frames[-1], "type": f"response.{last['status']}", "response": last}
        if self.breaks:
            return replies.sse_reply(frames[:-3], end="cut")
        return replies.sse_reply(frames, replies.Framing(event_lines=True))


def in_turn(*parts: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
    """One after another; the last one again and again."""
    left = list(parts)
    return lambda request: (left.pop(0) if len(left) > 1 else left[0])(request)


@dataclass(frozen=True, slots=True)
class Whole:
    """A reply as its client reads it."""

    text: str
    end: str
    usage: Json
    calls: list[str]
    thoughts: str
    items: int


def read(reply: httpx.Response, shape: str, stream: bool) -> Whole:
    assert reply.status_code == 200, reply.text
    if shape == "responses":
        return _read_response(events_of(reply) if stream else [], reply)
    return _read_chat(events_of(reply) if stream else [], reply)


def _read_response(events: list[Json], reply: httpx.Response) -> Whole:
    if events:
        assert [each["sequence_number"] for each in events] == list(range(len(events)))
        ends = [
            each for each in events if each["type"].split(".")[1] in ("completed", "incomplete", "failed")
        ]
        assert ends == events[-1:]
        response = events[-1]["response"]
        deltas = "".join(each["delta"] for each in events if each["type"] == "response.output_text.delta")
        assert deltas == _said(response["output"])
        assert [each["item"] for each in events if each["type"] == "response.output_item.done"] == response[
            "output"
        ]
    else:
        response = orjson.loads(reply.content)
    output, why = response["output"], response["incomplete_details"]
    used = response["usage"]
    return Whole(
        text=_said(output),
        end="stop" if response["status"] == "completed" else why["reason"] if why else response["status"],
        usage={"in": used["input_tokens"], "out": used["output_tokens"]},
        calls=[item["name"] for item in output if item["type"] == "function_call"],
        thoughts="".join(
            part["text"]
            for item in output
            if item["type"] == "reasoning"
            for part in item.get("content") or item["summary"]
        ),
        items=sum(item["type"] == "message" for item in output),
    )


def _said(output: list[Json]) -> str:
    return "".join(part["text"] for item in output if item["type"] == "message" for part in item["content"])


def _read_chat(events: list[Json], reply: httpx.Response) -> Whole:
    if not events:
        whole = orjson.loads(reply.content)
        (choice,) = whole["choices"]
        told, finish, used = choice["message"], choice["finish_reason"], whole["usage"]
        calls = [call["function"]["name"] for call in told.get("tool_calls") or ()]
        text, thoughts = told["content"] or "", told.get("reasoning_content") or ""
    else:
        deltas = [choice["delta"] for each in events for choice in each["choices"]]
        finishes = [c["finish_reason"] for each in events for c in each["choices"] if c["finish_reason"]]
        (finish,) = finishes
        text = "".join(delta.get("content") or "" for delta in deltas)
        thoughts = "".join(delta.get("reasoning_content") or "" for delta in deltas)
        named = [call["function"].get("name") for delta in deltas for call in delta.get("tool_calls") or ()]
        calls = [name for name in named if name]
        (used,) = [each["usage"] for each in events if each.get("usage")]
        assert reply.text.count("[DONE]") == 1
        assert sum("role" in delta for delta in deltas) == 1
    end = {"tool_calls": "stop", "length": "max_output_tokens"}.get(finish, finish)
    return Whole(
        text,
        end,
        {"in": used["prompt_tokens"], "out": used["completion_tokens"]},
        calls,
        thoughts,
        bool(text),
    )
