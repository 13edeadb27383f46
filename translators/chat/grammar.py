"""The rules of a Chat stream, as a check; see `conformance.py`."""

from __future__ import annotations

from typing import Any

from ..conformance import StreamCheck
from ..ir import Closed, Delta, Finished, Grammar, ItemKind, Json, Opened, Started
from ..lenient import json_in

WHY = {
    "not_json": "the OpenAI SDKs raise on it and the stream is lost",
    "unended_frame": "SSE readers drop a frame without its blank line",
    "after_done": "clients stop reading at `[DONE]`: what follows is lost",
    "after_end": "text after the finish reason is lost in clients that stop there",
    "bad_field": "typed clients refuse the chunk (AI SDK, LangChain, serde based ones)",
    "wrong_object": "clients tell chunks from other frames by `object`",
    "changed": "SDK accumulators keep the first value; LangChain splits the message by id",
    "usage_sum": "budgets and compaction count with the total",
    "usage_place": "clients that read `choices[0]` of every chunk break, or count twice",
    "bad_index": "the SDK's accumulator files the choice under another one",
    "bad_role": "the AI SDK refuses a delta whose role is not `assistant`",
    "bad_text": "clients join strings: another type breaks or prints as it is",
    "call_index": "the SDK's accumulator raises without an index and merges calls of the same one",
    "call_opening": "a call without id and name cannot be run",
    "call_repeated": "accumulators join strings: an id or name told twice comes out doubled",
    "bad_arguments": "accumulators join strings; an object breaks them",
    "torn_arguments": "agents fail to parse the call's arguments",
    "bad_finish": "agents decide by it whether to run tools, go on or stop",
    "second_finish": "agents run the turn's end twice",
    "finish_mismatch": "agents look for tool calls when, and only when, the reason is `tool_calls`",
    "bad_error": "the SDKs raise an error only from an `error` object with a message",
    "no_reply": "an empty stream is neither an answer nor an error",
    "no_finish": "a client cannot tell a whole answer from one that was cut",
    "no_done": "older clients wait for `[DONE]`, or report a cut stream",
}
FINISHES = ("stop", "length", "tool_calls", "content_filter", "function_call")
_TEXTS: dict[str, ItemKind] = {
    "content": "text",
    "refusal": "refusal",
    "reasoning_content": "summary",
    "reasoning": "summary",
}
_USAGE = ("prompt_tokens", "completion_tokens", "total_tokens")
_DETAILS = {"prompt_tokens_details": "cached_tokens", "completion_tokens_details": "reasoning_tokens"}


class _Choice:
    """What one choice has said."""

    def __init__(self) -> None:
        self.grammar = Grammar()
        self.grammar.see(Started())
        self.texts: dict[str, int] = {}
        self.calls: dict[int, int] = {}
        self.written: dict[int, str] = {}
        self.role = self.finished = False

    def next(self) -> int:
        return len(self.texts) + len(self.calls)


class ChatCheck(StreamCheck):
    """One Chat stream."""

    why = WHY

    def __init__(self) -> None:
        super().__init__()
        self._choices: dict[int, _Choice] = {}
        self._head: Json = {}
        self._failed = self._counted = False

    def take(self, obj: Json, name: str | None) -> None:
        if obj.get("error") is not None:
            self._error(obj["error"])
            return
        if self._failed:
            self.fault("after_end", "nothing but `[DONE]` after an error")
        self._same(obj)
        if obj.get("usage") is not None:
            self._usage(obj)
        if self.fields(obj, {"choices": list}, "chunk"):
            for choice in obj["choices"]:
                self._choice(choice)
            if not obj["choices"] and obj.get("usage") is None:
                self.fault("usage_place", "a chunk without choices only for usage")

    def end(self) -> None:
        if self._failed or not self._choices:
            if not self._failed:
                self.fault("no_reply", "at least one chunk with a choice, or an error")
        elif not all(choice.finished for choice in self._choices.values()):
            self.fault("no_finish", "a finish_reason for every choice")
        if not self._marked:
            self.fault("no_done", "`data: [DONE]` as the last frame")

    def _error(self, error: Any) -> None:
        self._failed = True
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            self.fault("bad_error", "`error`: an object with a string `message`")

    def _same(self, obj: Json) -> None:
        """What every chunk has, and the same all along."""
        self.fields(obj, {"id": str, "created": int, "model": str}, "chunk")
        if obj.get("object") != "chat.completion.chunk":
            self.fault("wrong_object", "`object`: chat.completion.chunk")
        for key in ("id", "created", "model"):
            if self._head.setdefault(key, obj.get(key)) != obj.get(key):
                self.fault("changed", f"the {key} of the first chunk")

    def _usage(self, obj: Json) -> None:
        if self.fields(obj, {"usage": dict}, "chunk"):
            self.tokens(obj["usage"], _USAGE, _DETAILS)
        early = not all(choice.finished for choice in self._choices.values())
        if obj.get("choices") or early or self._counted:
            self.fault("usage_place", "usage once, after the finish reason, in a chunk with `choices: []`")
        self._counted = True

    def _choice(self, choice: Any) -> None:
        index = choice.get("index") if isinstance(choice, dict) else None
        if type(index) is not int or index < 0:
            self.fault("bad_index", "choices that are objects with an index from 0")
            return
        known = self._choices.setdefault(index, _Choice())
        if self.fields(choice, {"delta": dict}, "choice"):
            self._delta(choice["delta"], known)
        reason = choice.get("finish_reason")
        if reason is not None:
            self._finish(reason, known)

    def _delta(self, delta: Json, known: _Choice) -> None:
        role = delta.get("role")
        if role != "assistant" and (role is not None or not known.role):
            self.fault("bad_role", "role `assistant` in the first delta, no other one later")
        known.role = True
        for key, kind in _TEXTS.items():
            text = delta.get(key)
            if text is not None and not isinstance(text, str):
                self.fault("bad_text", f"`delta.{key}`: a string or null")
            elif text:
                self._say(key, kind, text, known)
        calls = delta.get("tool_calls")
        if calls is not None and self.fields(delta, {"tool_calls": list}, "delta"):
            for call in calls:
                self._call(call, known)

    def _say(self, key: str, kind: ItemKind, text: str, known: _Choice) -> None:
        if key not in known.texts and self.see(known.grammar, Opened(known.next(), kind), "after_end"):
            known.texts[key] = known.next()
        elif key in known.texts:
            self.see(known.grammar, Delta(known.texts[key], text), "after_end")

    def _call(self, call: Any, known: _Choice) -> None:
        index = call.get("index") if isinstance(call, dict) else None
        if type(index) is not int or index > len(known.calls) or index < 0:
            self.fault("call_index", f"an index from 0 to {len(known.calls)} in each tool call")
            return
        custom = "custom" in call
        function = call.get("custom" if custom else "function")
        told: Json = function if isinstance(function, dict) else {}
        if index not in known.calls:
            self._open_call(index, call, told, known)
        elif call.get("id") or told.get("name"):
            self.fault("call_repeated", "id and name in the call's first chunk only")
        arguments = told.get("input" if custom else "arguments", "")
        if not isinstance(arguments, str):
            self.fault("bad_arguments", "`function.arguments` or `custom.input`: a string")
        elif arguments and index in known.calls:
            if not custom:  # a custom tool's input is free text
                known.written[index] += arguments
            self.see(known.grammar, Delta(known.calls[index], arguments), "after_end")

    def _open_call(self, index: int, call: Json, function: Json, known: _Choice) -> None:
        id, name = call.get("id"), function.get("name")
        if not (isinstance(id, str) and id and isinstance(name, str) and name):
            self.fault("call_opening", "id and function.name in the call's first chunk")
        if self.see(known.grammar, Opened(known.next(), "tool_call"), "after_end"):
            known.calls[index] = known.next()
            known.written[index] = "{}" if "custom" in call else ""

    def _finish(self, reason: Any, known: _Choice) -> None:
        if reason not in FINISHES:
            self.fault("bad_finish", f"finish_reason: one of {', '.join(FINISHES)}")
        if known.finished:
            self.fault("second_finish", "one finish_reason for each choice")
            return
        known.finished = True
        if (reason == "tool_calls") != bool(known.calls) and reason in ("stop", "tool_calls"):
            self.fault("finish_mismatch", "`tool_calls` exactly when there are calls")
        if reason == "tool_calls" and any(json_in(text) is None for text in known.written.values()):
            self.fault("torn_arguments", "arguments that add up to JSON")
        for index in [*known.texts.values(), *known.calls.values()]:
            self.see(known.grammar, Closed(index), "after_end")
        self.see(known.grammar, Finished("stop"), "after_end")
