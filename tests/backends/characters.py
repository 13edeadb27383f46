"""Four backends of a strict character each, playing the long task (long_task.py) on the Chat wire.

Tolerant servers hide a gateway's mistakes. Each character refuses, in the words that its model
server was seen to use, what that server refuses, and answers with that server's oddities.

What a backend gave with a call and wants back (reasoning text, a signature) is made from the
call itself, so that no state is kept: whether the right text comes back with the right call,
byte for byte, can be judged from one request.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import orjson

from . import replies
from .long_task import Called, Turn, next_turn, place_of
from .loopback import Loopback, Reply, Request
from .strict_chat import Fault, first_fault

Json = dict[str, Any]
FULL, USUAL = 90_000, 3_000
"""Prompt tokens that a reply reports: over and under the limit at which a client compacts."""
SECRET_THOUGHT = "Почему? “Because”\n\tstep {key} needs \\u2028 care…   "


@dataclass(slots=True)
class Exchange:
    """One request and what became of it."""

    body: Json
    turn: Turn | None = None
    refusal: str | None = None


class Character:
    """A strict backend. `exchanges` tells what happened; nothing here depends on it."""

    model: ClassVar[str]

    def __init__(self, *, cuts: frozenset[int] = frozenset()) -> None:
        """`cuts`: requests, counted from 1, whose stream breaks off before it says how it ended."""
        self._cuts = cuts
        self._lock = threading.Lock()
        self.exchanges: list[Exchange] = []
        self.elsewhere: list[str] = []
        """Paths that were asked for and are not here."""
        self.server = Loopback(self._answer)

    def __enter__(self) -> Self:
        self.server.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        self.server.__exit__(*args)

    def provider(self) -> Json:
        """A gateway's configuration for it."""
        raise NotImplementedError

    def fault(self, body: Json) -> Fault | None:
        raise NotImplementedError

    def error(self, status: int, message: str) -> Reply:
        kind = "invalid_request_error"
        return replies.json_reply({"error": {"message": message, "type": kind, "code": kind}}, status)

    def deltas(self, turn: Turn) -> Iterator[Json]:
        """Everything between the role and the finish reason."""
        raise NotImplementedError

    def message(self, turn: Turn) -> Json:
        """The same, not streamed."""
        raise NotImplementedError

    def finish(self, turn: Turn) -> str:
        return "tool_calls" if turn.calls else "stop"

    @property
    def refusals(self) -> list[str]:
        return [exchange.refusal for exchange in self.exchanges if exchange.refusal]

    @property
    def steps(self) -> list[int | None]:
        """The steps played, in order; None for a last word or a summary."""
        return [exchange.turn.step for exchange in self.exchanges if exchange.turn]

    def _answer(self, request: Request) -> Reply:
        if request.method == "GET":
            return self.listing(request)
        if not request.path.endswith("/chat/completions"):
            self.elsewhere.append(request.path)
            return self.error(404, f"No API found for '{request.path}'")
        exchange = Exchange(request.json)
        with self._lock:
            self.exchanges.append(exchange)
            number = len(self.exchanges)
        fault = self.fault(exchange.body)
        if fault is not None:
            exchange.refusal = str(fault)
            return self.error(400, self.words(fault))
        exchange.turn = next_turn(exchange.body)
        return self._reply(exchange, exchange.turn, cut=number in self._cuts)

    def words(self, fault: Fault) -> str:
        return str(fault)

    def listing(self, request: Request) -> Reply:
        if request.path.endswith("/models"):
            return replies.json_reply(replies.model_list([self.model]))
        return self.error(404, f"No API found for '{request.path}'")

    def _reply(self, exchange: Exchange, turn: Turn, cut: bool) -> Reply:
        body = exchange.body
        usage = self.usage(turn)
        if not body.get("stream"):
            choice = {"index": 0, "message": self.message(turn), "finish_reason": self.finish(turn)}
            whole = {**replies.chat_completion("", model=self.model), "choices": [choice], "usage": usage}
            return replies.json_reply(whole)
        frames: list[Any] = [replies.chat_chunk({"role": "assistant", "content": ""}, model=self.model)]
        frames += [replies.chat_chunk(delta, model=self.model) for delta in self.deltas(turn)]
        if cut:
            return replies.sse_reply(frames, end="cut")
        frames.append(replies.chat_chunk({}, self.finish(turn), self.model))
        if (body.get("stream_options") or {}).get("include_usage"):
            frames.append({**replies.usage_chunk(self.model), "usage": usage})
        return replies.sse_reply([*frames, "[DONE]"])

    def usage(self, turn: Turn) -> Json:
        prompt = FULL if turn.full else USUAL
        return {"prompt_tokens": prompt, "completion_tokens": 20, "total_tokens": prompt + 20}

    def _openai(self, profile: str | None = None) -> Json:
        base = {"name": "up", "kind": "openai", "base_url": f"{self.server.origin}/v1", "api_key": "k"}
        return {**base, "models": [self.model], **({"profile": profile} if profile else {})}


def _signature(*of: str) -> str:
    """Bytes that nobody can guess or mend, as base64 with its padding."""
    return base64.b64encode(hashlib.sha512("\0".join(of).encode()).digest()).decode()


def _wire_call(call: Called, call_id: str) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call_id, "type": "function", "function": function}


def _assistants(messages: Sequence[Json]) -> Iterator[tuple[int, Json]]:
    for at, message in enumerate(messages):
        if message.get("role") == "assistant":
            yield at, message


def _edited(body: Json, edit: Callable[[Json], Json]) -> Json:
    """A copy of the request whose messages went through `edit`."""
    return {**body, "messages": [edit(message) for message in body.get("messages") or []]}


# --- Databricks: Claude on the Chat surface ------------------------------------------------


class DatabricksClaude(Character):
    """Unknown keys at any level, nulls, blank text, `strict`, unions at a schema's root: all 400.

    Text is a list of parts both ways; a thought carries a signature in its last piece. A thought
    that comes back must be the one that was given; one that is left out is not missed.
    """

    model = "databricks-claude-long-5"
    _EXTRA = ("thinking", "output_config")

    def provider(self) -> Json:
        base = {"name": "up", "kind": "databricks", "base_url": self.server.origin, "api_key": "k"}
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
        return first_fault(_edited(plain, _without_thoughts))

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
        for piece, signature in [*((piece, "") for piece in first), (last, _signature(thought))]:
            yield {"content": [_thought_part(piece, signature)]}
        for piece in replies.pieces_of(turn.text, 12):
            yield {"content": [{"type": "text", "text": piece}]}
        for index, call in enumerate(turn.calls):
            begun = _wire_call(call, f"toolu_bdrk_{call.key}")
            begun["function"] = {"name": call.name, "arguments": "{}"}
            yield {"tool_calls": [{"index": index, **begun}]}
            for piece in replies.pieces_of(call.arguments, 15):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def message(self, turn: Turn) -> Json:
        thought = self._thought(turn)
        content = [_thought_part(thought, _signature(thought))]
        content += [{"type": "text", "text": turn.text}] if turn.text else []
        calls = [_wire_call(call, f"toolu_bdrk_{call.key}") for call in turn.calls]
        return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}

    @staticmethod
    def _thought(turn: Turn) -> str:
        return SECRET_THOUGHT.format(key=turn.calls[0].key if turn.calls else "last")


def _thought_part(text: str, signature: str) -> Json:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text, "signature": signature}]}


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
            if told.get("signature") != _signature(told["text"]):
                yield Fault(f"{at}.{number}", "Invalid `signature` in `thinking` block")


# --- DeepSeek --------------------------------------------------------------------------


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
        return first_fault(_edited(plain, _without("reasoning_content")), later_system=True, prefill=True)

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
        now = len(messages) - _since_prompt(messages)
        for at, message in _assistants(messages):
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

    def words(self, fault: Fault) -> str:
        return fault.why if not fault.path else str(fault)

    def deltas(self, turn: Turn) -> Iterator[Json]:
        for piece in replies.pieces_of(self._thought_of(turn), 10):
            yield {"content": None, "reasoning_content": piece}
        for piece in replies.pieces_of(turn.text):
            yield {"content": piece, "reasoning_content": None}
        yield from replies.call_deltas(
            [replies.ToolUse(f"call_00_{call.key}", call.name, call.arguments) for call in turn.calls]
        )

    def message(self, turn: Turn) -> Json:
        calls = [_wire_call(call, f"call_00_{call.key}") for call in turn.calls]
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


def _since_prompt(messages: Sequence[Json]) -> int:
    """How many messages came since the last prompt; all where there is none."""
    place = place_of(messages)
    asked = messages[-1].get("role") == "user" and place is not None and place.since
    if asked and not _is_lifted(messages[-1]):
        return 1
    return len(place.since) if place else len(messages)


def _is_lifted(message: Json) -> bool:
    """Whether a user message only holds what a tool's result held."""
    content = message.get("content")
    return isinstance(content, list) and any(part.get("type") == "image_url" for part in content)


# --- Gemini on its OpenAI-compatible surface -----------------------------------------------


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

    def words(self, fault: Fault) -> str:
        return fault.why if not fault.path else str(fault)

    def fault(self, body: Json) -> Fault | None:
        own = next(self._own_faults(body), None)
        if own is not None:
            return own
        dropped = ("parallel_tool_calls", "max_completion_tokens", "extra_body")
        plain = {key: value for key, value in body.items() if key not in dropped}
        return first_fault(_edited(plain, _without_extra), later_system=True, prefill=True)

    def _own_faults(self, body: Json) -> Iterator[Fault]:
        for key in body:
            if key not in self._KEYS:
                words = f'Invalid JSON payload received. Unknown name "{key}": Cannot find field.'
                yield Fault("", words)
        messages = body.get("messages") or []
        now = len(messages) - _since_prompt(messages)
        for at, message in _assistants(messages):
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
            made = _wire_call(call, "" if (turn.step or 0) % 2 else given.format(call.key))
            if number == 0:
                google = {"thought_signature": _call_signature(made["function"])}
                made["extra_content"] = {"google": google}
            yield made


def _call_signature(function: Mapping[str, Any]) -> str:
    """Of what is called with what; the spelling of the arguments does not count."""
    arguments = orjson.dumps(orjson.loads(function["arguments"]), option=orjson.OPT_SORT_KEYS)
    return _signature(function["name"], arguments.decode())


def _without_extra(message: Json) -> Json:
    calls = message.get("tool_calls")
    if not calls:
        return message
    bare = [{key: value for key, value in call.items() if key != "extra_content"} for call in calls]
    return {**message, "tool_calls": bare}


# --- vLLM with a template that wants one system message --------------------------------------


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

    def words(self, fault: Fault) -> str:
        return fault.why if not fault.path else str(fault)

    def deltas(self, turn: Turn) -> Iterator[Json]:
        for piece in replies.pieces_of("Hm. Step by step.", 5):
            yield {"reasoning": piece}
        for piece in replies.pieces_of(turn.text):
            yield {"content": piece}
        yield from replies.call_deltas(
            [replies.ToolUse(f"chatcmpl-tool-{call.key}", call.name, call.arguments) for call in turn.calls]
        )

    def message(self, turn: Turn) -> Json:
        calls = [_wire_call(call, f"chatcmpl-tool-{call.key}") for call in turn.calls]
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
