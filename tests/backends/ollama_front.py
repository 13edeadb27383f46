"""An Ollama-shaped front on a real llama.cpp: real tokens and real calls behind the wire of `/api/chat`.

The front is ours (the double, strict as ever), the model behind it is not.
Like the original's llama-server path, it tells all calls on the line that ends the reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import orjson

from .llamacpp import MODEL, LlamaServer
from .loopback import Reply
from .ollama_double import Json, Model, OllamaDouble, json_reply, line

NAME = f"{MODEL}:latest"


class OllamaFront(OllamaDouble):
    """`/api/*` in front of `llama`, which must be running."""

    def __init__(self, llama: LlamaServer) -> None:
        super().__init__([Model(NAME, ("completion", "tools"), context=4096, family="llama")])
        self._url = f"{llama.origin}/v1/chat/completions"
        self.answer = self._ask

    def _ask(self, body: Json) -> Reply:
        told = self._told(_as_chat(body))
        if body["stream"]:
            pieces = (orjson.dumps(each) + b"\n" for each in told)
            return Reply(200, {"content-type": "application/x-ndjson"}, pieces)
        return json_reply(_joined(list(told)))

    def _told(self, body: Json) -> Iterator[Json]:
        """The lines, one for each piece of text."""
        calls: dict[int, Json] = {}
        last: Json = {}
        with httpx.stream("POST", self._url, json=body, trust_env=False, timeout=30) as answer:
            for row in answer.iter_lines():
                if not row.startswith("data: {"):
                    continue
                chunk = orjson.loads(row[6:])
                last = {**last, **_figures(chunk)}
                for choice in chunk["choices"]:
                    _collect(calls, choice["delta"])
                    if choice["delta"].get("content"):
                        yield line({"content": choice["delta"]["content"]}, NAME)
                    if choice.get("finish_reason"):
                        last["done_reason"] = "length" if choice["finish_reason"] == "length" else "stop"
        whole = [_whole(call) for call in calls.values()]
        yield line({"tool_calls": whole} if whole else {}, NAME, done=True, **last)


def _as_chat(body: Json) -> Json:
    options = body["options"]
    said = {"temperature": options.get("temperature"), "max_tokens": options.get("num_predict")}
    chat: Json = {
        "model": MODEL,
        "messages": [_message(message) for message in body["messages"]],
        "stream": True,
        "stream_options": {"include_usage": True},
        **{key: value for key, value in said.items() if value is not None},
    }
    if "tools" in body:
        chat["tools"] = body["tools"]
    if isinstance(body.get("format"), dict):
        spec = {"name": "reply", "schema": body["format"]}
        chat["response_format"] = {"type": "json_schema", "json_schema": spec}
    return chat


def _message(message: Json) -> Json:
    out: Json = {key: message[key] for key in ("role", "content", "tool_call_id") if key in message}
    if "tool_calls" in message:
        out["tool_calls"] = [_as_text(call) for call in message["tool_calls"]]
    return out


def _as_text(call: Json) -> Json:
    function = call["function"]
    arguments = orjson.dumps(function["arguments"]).decode()
    return {
        "id": call["id"],
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def _collect(calls: dict[int, Json], delta: Json) -> None:
    for piece in delta.get("tool_calls") or []:
        call = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
        call["id"] = piece.get("id") or call["id"]
        for key in ("name", "arguments"):
            call[key] += piece["function"].get(key) or ""


def _whole(call: Json) -> Json:
    function = {"index": 0, "name": call["name"], "arguments": orjson.loads(call["arguments"])}
    return {"id": call["id"], "function": function}


def _figures(chunk: Json) -> Json:
    usage: Any = chunk.get("usage") or {}
    named = {"prompt_eval_count": "prompt_tokens", "eval_count": "completion_tokens"}
    return {key: usage[name] for key, name in named.items() if usage.get(name)}


def _joined(lines: list[Json]) -> Json:
    text = "".join(each["message"]["content"] for each in lines)
    return {**lines[-1], "message": {**lines[-1]["message"], "content": text}}
