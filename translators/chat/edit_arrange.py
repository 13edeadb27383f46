"""The messages of a Chat body among each other: order, system messages, the last one, call ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from itertools import takewhile

from ..ir import Json
from .content import joined, string
from .edit_draft import Draft
from .edit_messages import Places, null_content
from .history import calls_of, name_of, repair_history

_SYSTEM = ("system", "developer")


def arrange(draft: Draft, places: Places) -> None:
    """A sequence this backend takes; `places` is what `edit_each` gave.

    An exact backend judges the histories of its own shape itself, in its own words.
    """
    messages: list[Json] = draft.body["messages"]
    rules = draft.profile.messages
    calls = any(map(_bears_ids, messages))  # without any, there is nothing to repair, name or split
    if calls and (not draft.profile.answer.exact or rules.split_parallel_tool_results):
        messages, repairs = repair_history(messages, rules.media.tool_results != "keep")
        draft.repairs += repairs
    if rules.system != "many":
        messages = one_system(messages, hoist=rules.system == "hoist_all")
    if rules.trailing_assistant == "drop":
        messages = _without_prefill(draft, messages, places)
    if calls:
        messages = _short_ids(draft, messages)
    if calls and rules.tool_name:
        messages = _named_results(messages)
    if calls and rules.split_parallel_tool_results:
        messages = list(_split(draft, messages))
    draft.keep("messages", messages)


def _bears_ids(message: Json) -> bool:
    """Whether it makes calls, or gives a result."""
    return "tool_calls" in message or "tool_call_id" in message or message.get("role") == "tool"


# --- system messages -------------------------------------------------------------------


def one_system(messages: list[Json], hoist: bool) -> list[Json]:
    """The system messages at the start (or all of them, hoisted) as one.

    Texts are joined by a blank line. At the start only messages of one role are joined:
    where `developer` is kept it does not mean the same.
    """
    if hoist:
        lead = [message for message in messages if message.get("role") in _SYSTEM]
        rest = [message for message in messages if message.get("role") not in _SYSTEM]
    else:
        role = messages[0].get("role") if messages else None
        if role not in _SYSTEM:
            return messages
        lead = list(takewhile(lambda message: message.get("role") == role, messages))
        rest = messages[len(lead) :]
    if not lead or (len(lead) == 1 and messages[0] is lead[0]):
        return messages
    first = lead[0]
    for message in lead[1:]:
        first = {**first, "content": joined(first.get("content"), message.get("content"))}
    return [first, *rest]


# --- the last message ------------------------------------------------------------------


def _without_prefill(draft: Draft, messages: list[Json], places: Places) -> list[Json]:
    """No assistant text at the end ("does not support assistant message prefill").

    After a turn's results it goes into the turn's own message, where nothing is lost. Else it
    is left out, but never the only messages there are.
    """
    while len(messages) > 1 and _is_prefill(messages[-1]):
        folded = _folded(messages)
        if folded is None and all(_is_prefill(message) for message in messages):
            return messages
        if folded is None:
            _report(draft, messages[-1], places)
        messages = folded or messages[:-1]
    return messages


def _is_prefill(message: Json) -> bool:
    return message.get("role") == "assistant" and not message.get("tool_calls")


def _folded(messages: list[Json]) -> list[Json] | None:
    """The last message's text moved before the calls it was said after, if only results are between."""
    at = len(messages) - 2
    while at > 0 and messages[at].get("role") == "tool":
        at -= 1
    opener = messages[at]
    if at == len(messages) - 2 or not opener.get("tool_calls"):
        return None
    told = {**opener, "content": joined(opener.get("content"), messages[-1].get("content"))}
    return [*messages[:at], told, *messages[at + 1 : -1]]


def _report(draft: Draft, message: Json, places: Places) -> None:
    for place, known in places:
        if known is message:
            draft.lose(f"/messages/{place}", "this model does not continue an answer", "content")


# --- call ids --------------------------------------------------------------------------


def _short_ids(draft: Draft, messages: list[Json]) -> list[Json]:
    """Call ids in the backend's form, the same new one for a call and its result."""
    rule, limit = draft.profile.messages.tool_call_id, draft.profile.request.id_max_len
    longest = min(rule.max, limit or rule.max)
    fresh = {
        call_id: _fresh_id(call_id, longest)
        for call_id in _ids(messages)
        if call_id and not _fits(call_id, longest, rule.pattern)
    }
    return [_renamed(message, fresh) for message in messages] if fresh else messages


def _fits(call_id: str, longest: int, pattern: str | None) -> bool:
    return len(call_id) <= longest and (pattern is None or re.search(pattern, call_id) is not None)


def _ids(messages: list[Json]) -> Iterator[str]:
    for message in messages:
        if "tool_call_id" in message:
            yield string(message["tool_call_id"])
        else:
            yield from (string(call.get("id")) for call in calls_of(message))


def _fresh_id(call_id: str, longest: int) -> str:
    """Letters and digits, which every known rule takes; always the same for the same id."""
    return sha256(call_id.encode()).hexdigest()[: min(longest, 32)]


def _renamed(message: Json, fresh: dict[str, str]) -> Json:
    call_id = string(message.get("tool_call_id"))
    if call_id in fresh:
        return {**message, "tool_call_id": fresh[call_id]}
    calls = calls_of(message)
    if not any(string(call.get("id")) in fresh for call in calls):
        return message
    return {**message, "tool_calls": [_with_fresh_id(call, fresh) for call in calls]}


def _with_fresh_id(call: Json, fresh: dict[str, str]) -> Json:
    call_id = string(call.get("id"))
    return {**call, "id": fresh[call_id]} if call_id in fresh else call


# --- results ---------------------------------------------------------------------------


def _named_results(messages: list[Json]) -> list[Json]:
    """Every result with the name of the tool that gave it, for templates that show it."""
    names = {string(call.get("id")): name_of(call) for message in messages for call in calls_of(message)}
    return [_named(message, names.get(string(message.get("tool_call_id")))) for message in messages]


def _named(message: Json, name: str | None) -> Json:
    lacks = message.get("role") == "tool" and name and not message.get("name")
    return {**message, "name": name} if lacks else message


def _split(draft: Draft, messages: list[Json]) -> Iterator[Json]:
    """Parallel calls as one turn after the other ("Multiple tool calls are not supported.").

    Takes a legal history: as many results as calls, in the same order.
    """
    waiting: list[Json] = []
    for message in messages:
        calls = calls_of(message)
        if len(calls) > 1:
            first, *rest = calls
            yield {**message, "tool_calls": [first]}
            waiting = [_call_alone(draft, call) for call in rest]
        else:
            yield message
            if waiting:
                yield waiting.pop(0)


def _call_alone(draft: Draft, call: Json) -> Json:
    return null_content(draft, {"role": "assistant", "content": None, "tool_calls": [call]})
