"""What a client understands of a reply, read by code that shares nothing with the product.

Each fold is strict: it fails where the bytes break the rules of their wire, and where a whole
told later is not the sum of what was told before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.laws.scripts import Called, Counts, Said

Json = dict[str, Any]


@dataclass
class Failure:
    """A reply that ended as failed, and the text that had come by then."""

    message: str
    text: str


def sse_payloads(out: bytes) -> list[bytes]:
    """Payloads of a stream we wrote: LF only, one data line each, comments between."""
    assert not out or out.endswith(b"\n\n"), "the last frame is not closed"
    assert b"\r" not in out
    payloads = []
    for block in out.split(b"\n\n")[:-1]:
        lines = block.split(b"\n")
        data = [line[6:] for line in lines if line.startswith(b"data: ")]
        assert all(line.startswith((b"data: ", b"event: ", b":")) for line in lines), block
        assert len(data) == 1 or block.startswith(b":"), block
        payloads += data
    return payloads


# --- Chat ------------------------------------------------------------------------------


@dataclass
class _ChatCall:
    id: str
    name: str
    arguments: str = ""


@dataclass
class _ChatFold:
    content: str = ""
    refusal: str = ""
    reasoning_content: str = ""
    calls: list[_ChatCall] = field(default_factory=list)
    finish: str | None = None
    usage: Json | None = None

    def add(self, delta: Json) -> None:
        assert self.finish is None, "something after the finish reason"
        for key in ("content", "refusal", "reasoning_content"):
            setattr(self, key, getattr(self, key) + (delta.get(key) or ""))
        for entry in delta.get("tool_calls") or []:
            function = entry["function"]
            if entry["index"] == len(self.calls):
                assert entry["id"]
                assert entry["type"] == "function"
                assert function["name"]
                self.calls.append(_ChatCall(entry["id"], function["name"]))
            else:
                assert not {"id", "type"} & set(entry)
                assert "name" not in function
            self.calls[entry["index"]].arguments += function["arguments"]


def fold_chat_stream(out: bytes, include_usage: bool = True) -> Said | Failure:
    """Read a Chat stream as a careful client does."""
    *payloads, last = sse_payloads(out)
    assert last == b"[DONE]"
    chunks = [json.loads(payload) for payload in payloads]
    if "error" in chunks[-1]:
        return _chat_failure(chunks)
    for key in ("id", "created", "model", "object"):
        assert len({chunk[key] for chunk in chunks}) == 1, key
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    fold = _ChatFold()
    for number, chunk in enumerate(chunks):
        if chunk.get("usage") is not None:
            assert include_usage
            assert number == len(chunks) - 1
            assert chunk["choices"] == []
            fold.usage = chunk["usage"]
            continue
        (choice,) = chunk["choices"]
        fold.add(choice["delta"])
        fold.finish = choice["finish_reason"]
    assert fold.finish is not None
    calls = tuple(Called(call.id, call.name, call.arguments) for call in fold.calls)
    texts = (fold.content, fold.refusal, fold.reasoning_content)
    return Said(*texts, calls, fold.finish, _chat_counts(fold.usage))


def _chat_failure(chunks: list[Json]) -> Failure:
    *before, error = chunks
    assert set(error) == {"error"}
    assert set(error["error"]) == {"message", "type", "param", "code"}
    choices = [choice for chunk in before for choice in chunk["choices"]]
    assert all(choice["finish_reason"] is None for choice in choices)
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    return Failure(error["error"]["message"], text)


def fold_chat_body(body: Json) -> Said:
    (choice,) = body["choices"]
    message = choice["message"]
    calls = tuple(
        Called(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or []
    )
    texts = [message.get(key) or "" for key in ("content", "refusal", "reasoning_content")]
    return Said(texts[0], texts[1], texts[2], calls, choice["finish_reason"], _chat_counts(body.get("usage")))


def _chat_counts(usage: Json | None) -> Counts | None:
    if usage is None:
        return None
    prompt, completion = usage["prompt_tokens_details"], usage["completion_tokens_details"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    return Counts(
        *(usage["prompt_tokens"], usage["completion_tokens"], prompt["cached_tokens"]),
        *(prompt["cache_write_tokens"], completion["reasoning_tokens"]),
    )


# --- Responses -------------------------------------------------------------------------


@dataclass
class _ResponsesFold:
    """Replays the events on an output of its own; `open` is the index of the item under way."""

    output: list[Json] = field(default_factory=list)
    open: int | None = None
    final: Json | None = None
    calls_done_at: list[int] = field(default_factory=list)

    def take(self, event: Json) -> None:
        kind = event["type"].removeprefix("response.")
        assert self.final is None, "something after the end"
        if kind in ("created", "in_progress"):
            assert event["response"]["status"] == "in_progress"
            assert event["response"]["output"] == []
        elif kind in ("completed", "incomplete", "failed"):
            assert self.open is None or kind == "failed"
            assert event["response"]["status"] == kind
            self.final = event["response"]
        elif kind == "output_item.added":
            assert self.open is None, "items overlap"
            assert event["output_index"] == len(self.output)
            self.open = event["output_index"]
            self.output.append(json.loads(json.dumps(event["item"])))
        else:
            assert event["output_index"] == self.open
            self._inside(kind, event, self.output[self.open])

    def _inside(self, kind: str, event: Json, item: Json) -> None:
        if kind == "output_item.done":
            self._item_done(event["item"], item)
            return
        assert event["item_id"] == item["id"]
        if kind.startswith(f"{item['type']}."):
            return  # progress of a hosted tool
        name, _, step = kind.rpartition(".")
        match name, step:
            case (("content_part" | "reasoning_summary_part"), "added"):
                parts, index = _parts(name, event, item)
                assert index == len(parts)
                parts.append(dict(event["part"]))
            case (("content_part" | "reasoning_summary_part"), "done"):
                parts, index = _parts(name, event, item)
                assert _plain(parts[index]) == _plain(event["part"])
            case _, "delta":
                holder, key = _holder(name, event, item)
                holder[key] += event["delta"]
            case "output_text.annotation", "added":
                notes = item["content"][event["content_index"]]["annotations"]
                assert event["annotation_index"] == len(notes)
                notes.append(event["annotation"])
            case _, "done":
                holder, key = _holder(name, event, item)
                assert holder[key] == event[_DONE_KEY.get(name, "text")]
            case _:
                raise AssertionError(f"unknown event {kind}")

    def _item_done(self, whole: Json, item: Json) -> None:
        late = ["status", "encrypted_content"]
        if whole["type"] == "tool_search_call":
            late.append("arguments")  # no event tells them piece by piece
        kept = {key: value for key, value in whole.items() if key not in late}
        seen = {key: value for key, value in item.items() if key not in late}
        assert json.dumps(_plain(kept), sort_keys=True) == json.dumps(_plain(seen), sort_keys=True)
        assert whole.get("status") != "in_progress"
        self.output[-1] = whole
        self.open = None


_DONE_KEY = {"refusal": "refusal", "function_call_arguments": "arguments", "custom_tool_call_input": "input"}


def _holder(name: str, event: Json, item: Json) -> tuple[Json, str]:
    match name:
        case "output_text" | "reasoning_text":
            return item["content"][event["content_index"]], "text"
        case "refusal":
            return item["content"][event["content_index"]], "refusal"
        case "reasoning_summary_text":
            return item["summary"][event["summary_index"]], "text"
        case "function_call_arguments":
            return item, "arguments"
        case "custom_tool_call_input":
            return item, "input"
    raise AssertionError(f"unknown event {name}")


def _parts(name: str, event: Json, item: Json) -> tuple[list[Json], int]:
    if name == "reasoning_summary_part":
        return item["summary"], event["summary_index"]
    return item.setdefault("content", []), event["content_index"]


def _plain(value: Any) -> Any:
    """Without logprobs, which deltas and wholes may spread differently."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if key != "logprobs"}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def read_responses_stream(out: bytes) -> list[Json]:
    """The events, after the checks that hold for every stream of ours."""
    *payloads, last = sse_payloads(out)
    assert last == b"[DONE]"
    events = [json.loads(payload) for payload in payloads]
    named = [line[7:].decode() for line in out.split(b"\n") if line.startswith(b"event: ")]
    assert named == [event["type"] for event in events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    return events


def fold_responses_stream(out: bytes) -> Said | Failure:
    """Read a Responses stream as a careful client does."""
    fold = _ResponsesFold()
    for event in read_responses_stream(out):
        fold.take(event)
    assert fold.final is not None
    if fold.final["status"] == "failed":
        return Failure(fold.final["error"]["message"], _items_text(fold.output))
    assert fold.final["output"] == fold.output
    return fold_responses_body(fold.final)


def fold_responses_body(response: Json) -> Said:
    output = response["output"]
    calls = tuple(
        Called(item["call_id"], item["name"], item["arguments"])
        for item in output
        if item["type"] == "function_call"
    )
    ids = [item["id"] for item in output]
    assert len(set(ids)) == len(ids)
    assert all(item.get("status") in ("completed", "incomplete", None) for item in output)
    reason = "tool_calls" if calls else "stop"
    if response["status"] == "incomplete":
        reason = {"max_output_tokens": "length"}.get(*(response["incomplete_details"]["reason"],) * 2)
    refusal = "".join(part["refusal"] for part in _content(output) if part["type"] == "refusal")
    return Said(
        *(_items_text(output), refusal, _items_thought(output), calls, reason),
        _responses_counts(response["usage"]),
    )


def _content(output: list[Json]) -> list[Json]:
    return [part for item in output if item["type"] == "message" for part in item["content"]]


def _items_text(output: list[Json]) -> str:
    return "".join(part["text"] for part in _content(output) if part["type"] == "output_text")


def _items_thought(output: list[Json]) -> str:
    thoughts = [item for item in output if item["type"] == "reasoning"]
    return "".join(
        "\n\n".join(part["text"] for part in [*item["summary"], *(item.get("content") or [])])
        for item in thoughts
    )


def _responses_counts(usage: Json | None) -> Counts | None:
    if usage is None:
        return None
    read, wrote = usage["input_tokens_details"], usage["output_tokens_details"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    return Counts(
        *(usage["input_tokens"], usage["output_tokens"], read["cached_tokens"]),
        *(read["cache_write_tokens"], wrote["reasoning_tokens"]),
    )
