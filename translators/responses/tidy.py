"""Odd response objects written by the book: for replies that pass.

Typed clients refuse a response object with a hole in it, and Codex asks again for a turn whose
usage it cannot read. What a backend told stays; what it left out is filled in, and what it told
in another form is put in the right one. The same object comes back when nothing was odd.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from ..ir import Json, Usage
from ..profile import Profile
from ..timestamps import whole_seconds
from ..usage import read_responses_usage, write_responses_usage
from .decoder import reply_error
from .flat import text_of
from .ids import made_id
from .reply import unfinished

_STAND_INS: Mapping[str, Any] = {
    "object": "response",
    "created_at": 0,
    "model": "",
    "status": "completed",
    "parallel_tool_calls": True,
    "tools": [],
    "tool_choice": "auto",
}
"""Keys that every response has, and what stands in for one that is told nowhere."""
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "id": str,
    "object": str,
    "created_at": int,
    "model": str,
    "status": str,
    "output": list,
    "parallel_tool_calls": bool,
    "tools": list,
    "tool_choice": (str, dict),
}

CALLS = frozenset({"function_call", "custom_tool_call"})
_PREFIXES = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_"}
_LACKING: Mapping[str, Json] = {
    "message": {"role": "assistant", "status": "completed", "content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": "{}", "status": "completed"},
    "custom_tool_call": {"input": ""},
}
"""Keys that every item of a type has, and what stands in for one that is told nowhere."""


def tidy_reply(body: Json, profile: Profile) -> tuple[Json, Usage | None]:
    """A whole response that passes, and its usage; raises the `ProxyError` it carries or is."""
    error, status = unfinished(body), body.get("status")
    if error is None and (status in ("failed", "cancelled") or body.get("error")):
        error = reply_error(body, str(status))
    if error is not None:
        raise error
    tidy = body if profile.answer.exact else tidy_response(body)
    return tidy, read_responses_usage(tidy.get("usage"))


def is_whole(response: Any) -> bool:
    """Whether a snapshot has every key, each of its type."""
    return isinstance(response, dict) and not list(_odd_keys(response)) and bool(response["id"])


def tidy_response(response: Json, begun: Json | None = None) -> Json:
    """`response` whole; `begun` is the snapshot its stream began with, whose id and time it keeps."""
    base = begun or {}
    fixed: Json = {key: _stand_in(key, response, base) for key in _odd_keys(response)}
    fixed |= {key: base[key] for key in ("id", "created_at") if base and response.get(key) != base[key]}
    if not fixed.get("id", response.get("id")):
        fixed["id"] = made_id("resp_", orjson.dumps(response).decode())
    output: list[Any] = fixed["output"] if "output" in fixed else response["output"]
    items = _apart([tidy_item(item, at) for at, item in enumerate(output) if isinstance(item, dict)])
    if any(new is not old for new, old in zip(items, output, strict=False)) or len(items) < len(output):
        fixed["output"] = items
    usage = response.get("usage")
    if usage is not None and not _is_usage(usage):
        fixed["usage"] = _whole_usage(usage)
    return {**base, **response, **fixed} if fixed else response


def _odd_keys(response: Json) -> Iterator[str]:
    for key, types in _TYPES.items():
        value = response.get(key)
        if not isinstance(value, types) or (types is int and isinstance(value, bool)):
            yield key


def _stand_in(key: str, response: Json, base: Json) -> Any:
    """What is told elsewhere for a key that is missing or of another type."""
    if key == "created_at" and (told := whole_seconds(response.get(key))) is not None:
        return told  # typed float in the SDK, whose users pass it on so
    return base.get(key, _STAND_INS.get(key, "" if key == "id" else []))


# --- items -----------------------------------------------------------------------------


def tidy_item(item: Json, at: int) -> Json:
    """An output item with the keys of its type; `at` is its place, which an id is made of."""
    kind = str(item.get("type") or "message")
    fixed: Json = {} if kind == item.get("type") else {"type": kind}
    fixed |= {key: value for key, value in _LACKING.get(kind, {}).items() if item.get(key) is None}
    if not isinstance(item.get("id"), str) or not item["id"]:
        fixed["id"] = made_id(_PREFIXES.get(kind, "item_"), str(at), orjson.dumps(item).decode())
    if kind == "message" and "content" not in fixed:
        content = _tidy_content(item["content"])
        fixed |= {} if content is item["content"] else {"content": content}
    if kind in CALLS and not isinstance(item.get("call_id"), str):
        fixed["call_id"] = fixed.get("id") or item["id"]
    if kind == "function_call" and "arguments" not in fixed:
        written = written_arguments(item["arguments"])
        fixed |= {} if written is item["arguments"] else {"arguments": written}
    return {**item, **fixed} if fixed else item


def written_arguments(told: Any) -> str:
    """A function call's arguments as text; none at all are `{}`, which is JSON while "" is not."""
    if isinstance(told, str):
        return told if told.strip() else "{}"
    return "{}" if told is None else orjson.dumps(told).decode()


def _apart(items: list[Json]) -> list[Json]:
    """The items, and no call under the id of an earlier one: both results would come back under it."""
    seen: set[str] = set()
    kept: list[Json] = []
    for at, item in enumerate(items):
        call_id = text_of(item.get("call_id")) if item["type"] in CALLS else None
        if call_id in seen:
            item = {**item, "call_id": made_id("call_", call_id, str(at))}
        elif call_id:
            seen.add(call_id)
        kept.append(item)
    return kept


def _tidy_content(content: Any) -> Any:
    parts = content if isinstance(content, list) else [content]
    tidy = [_tidy_part(part) for part in parts]
    same = parts is content and all(new is old for new, old in zip(tidy, parts, strict=True))
    return content if same else tidy


def _tidy_part(part: Any) -> Any:
    if isinstance(part, str):
        return {"type": "output_text", "text": part, "annotations": [], "logprobs": []}
    if not isinstance(part, dict) or part.get("type") not in ("output_text", "text"):
        return part
    lacking = {"text": "", "annotations": []}
    fixed: Json = {key: value for key, value in lacking.items() if part.get(key) is None}
    fixed |= {} if part["type"] == "output_text" else {"type": "output_text"}
    return {**part, **fixed} if fixed else part


def untold(output: Any, finished: Sequence[Json]) -> list[Json]:
    """Items of the last event that the stream did not tell: known by no id, call id, or place and type."""
    known = {text_of(item.get(key)) for item in finished for key in ("id", "call_id")} - {None}
    listed = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    kinds = [item.get("type") for item in finished]
    return [
        item
        for at, item in enumerate(listed)
        if text_of(item.get("id")) not in known
        and text_of(item.get("call_id")) not in known
        and kinds[at : at + 1] != [item.get("type")]
    ]


# --- usage -----------------------------------------------------------------------------


def _is_usage(usage: Any) -> bool:
    """Whether all counts are there and add up. `cache_write_tokens` is too new to be missed."""
    if not isinstance(usage, dict):
        return False
    counts = [usage.get(key) for key in ("input_tokens", "output_tokens", "total_tokens")]
    counts += [_inside(usage, "input_tokens_details", "cached_tokens")]
    counts += [_inside(usage, "output_tokens_details", "reasoning_tokens")]
    return all(type(count) is int for count in counts) and usage["total_tokens"] == sum(
        usage[key] for key in ("input_tokens", "output_tokens")
    )


def _inside(usage: Json, key: str, name: str) -> Any:
    details = usage.get(key)
    return details.get(name) if isinstance(details, dict) else None


def _whole_usage(told: Any) -> Json | None:
    usage = read_responses_usage(told)
    return None if usage is None else {**told, **write_responses_usage(usage)}
