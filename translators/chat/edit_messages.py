"""Each message of a Chat body by itself: keys, names, parts, refusals, calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ..errors import bad_request
from ..images import refuse_remote_images
from ..ir import Json
from .content import as_text, is_blank, is_marked, joined
from .edit_draft import Draft
from .edit_keys import CALL_KEYS, MESSAGE_KEYS, known_only
from .edit_media import edit_media
from .edit_parts import edit_part
from .edit_replay import edit_replay

Places: TypeAlias = list[tuple[int, Json]]
"""Messages, each with its place in the client's list, which losses point to."""


def edit_each(draft: Draft) -> Places:
    """Edit every message by itself; gives the messages that are left, each with its old place.

    Raises 400 (`ProxyError`) for messages that are no objects, and for remote pictures where
    the backend does not fetch them.
    """
    messages = draft.body.get("messages")
    if not isinstance(messages, list):
        raise bad_request("`messages` is required and must be a list.", "messages")
    edit_media(draft)
    messages = draft.body["messages"]
    if draft.profile.messages.remote_images == "reject":
        refuse_remote_images(draft.body)
    edited = list(enumerate(messages))
    odd = [i for i, message in edited if not _is_plain(message)]
    for i in odd:
        edited[i] = i, _message(draft, messages[i], i)
    gone = {i for i in odd if _is_dropped(draft, edited[i][1], i)}
    kept = [each for each in edited if each[0] not in gone] if gone else edited
    if not kept:  # an empty list is refused everywhere
        kept = [(i, message) for i, message in edited if message.get("role") != "reasoning"][-1:]
    if odd:
        draft.keep("messages", [message for _, message in kept])
    return kept


_PLAIN: Mapping[str, frozenset[str]] = {
    "user": frozenset({"role", "content"}),
    "system": frozenset({"role", "content"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
"""Roles and their keys, in which no profile has anything to edit while `content` is words."""


def _is_plain(message: Any) -> bool:
    """Whether it is one of those: most of a history is, and the rules below would give it back as it is."""
    role = message.get("role") if type(message) is dict else None
    if type(role) is not str or message.keys() != _PLAIN.get(role):
        return False
    content = message["content"]
    if type(content) is not str or not content or content.isspace():
        return False
    return role != "tool" or message["tool_call_id"] is not None


def _message(draft: Draft, message: Any, at: int) -> Json:
    if not isinstance(message, dict):
        raise bad_request(f"`messages[{at}]` must be an object.", f"messages[{at}]")
    role = message.get("role")
    if not isinstance(role, str):
        raise bad_request(f"`messages[{at}].role` is required.", f"messages[{at}].role")
    if role == "developer" and draft.profile.messages.developer != "keep":
        message = {**message, "role": draft.profile.messages.developer}
    if role == "assistant":
        message = _assistant(draft, message, at)
    elif not draft.profile.answer.exact:
        message = _without_nulls(message)
        if message.get("content") is None:
            message = {**message, "content": ""}
    if message.get("content") == [] and not draft.profile.answer.exact:
        message = {**message, "content": None if message.get("tool_calls") else ""}
    return _content(draft, _keys(draft, message, at), at)


# --- assistant messages ----------------------------------------------------------------


def _assistant(draft: Draft, message: Json, at: int) -> Json:
    message = edit_replay(draft, message, at)
    if not message.get("tool_calls", True):  # [] and null: "List should have at least 1 item"
        message = _less(message, ("tool_calls",))
    if draft.profile.answer.exact:
        return message
    return _refusal_as_text(_without_nulls(message))


def _without_nulls(message: Json) -> Json:
    """A null says what an absent key says, and strict backends refuse it; `content` has rules of its own."""
    return _less(message, [key for key, value in message.items() if value is None and key != "content"])


def _refusal_as_text(message: Json) -> Json:
    """Only OpenAI knows refusals in the history; elsewhere they are what the assistant said."""
    content = message.get("content")
    if isinstance(content, list) and any(_is_refusal(part) for part in content):
        parts = [{"type": "text", "text": part["refusal"]} if _is_refusal(part) else part for part in content]
        message = {**message, "content": parts if is_marked(parts) else as_text(parts) or parts}
    refusal = message.get("refusal")
    if not isinstance(refusal, str):
        return message
    return {**_less(message, ("refusal",)), "content": joined(message.get("content"), refusal)}


def _is_refusal(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "refusal" and isinstance(part.get("refusal"), str)


# --- keys ------------------------------------------------------------------------------


def _keys(draft: Draft, message: Json, at: int) -> Json:
    """Participants' names, parts, and the keys that backends with a closed schema take."""
    name_goes = draft.profile.messages.user_name == "drop" and message.get("role") != "tool"
    if name_goes and "name" in message:
        draft.lose(f"/messages/{at}/name", "this backend takes no names of participants", "bookkeeping")
        message = _less(message, ("name",))
    content = message.get("content")
    if isinstance(content, list) and not draft.profile.answer.exact:
        parts = [edit_part(draft, part, f"/messages/{at}/content/{i}") for i, part in enumerate(content)]
        message = _with(message, "content", parts)
    if draft.profile.request.extra_keys is None:
        return message
    message = known_only(draft, message, _known_keys(draft, message), f"/messages/{at}")
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        calls = [_call_keys(draft, call, f"/messages/{at}/tool_calls/{i}") for i, call in enumerate(calls)]
        message = _with(message, "tool_calls", calls)
    return message


def _known_keys(draft: Draft, message: Json) -> tuple[str, ...]:
    profile = draft.profile
    known = MESSAGE_KEYS.get(message["role"], ("role", "content"))
    if message["role"] == "tool" and profile.messages.tool_name:
        return (*known, "name")
    replay = profile.reasoning.replay
    if message["role"] == "assistant" and replay in ("field", "details"):
        fields = profile.reasoning.fields if replay == "field" else ()
        return (*known, profile.reasoning.replay_field, *fields)
    return known


def _call_keys(draft: Draft, call: Any, pointer: str) -> Any:
    """`index` and the like come from clients that keep the deltas of a stream."""
    if not isinstance(call, dict):
        return call
    signature = draft.profile.reasoning.signature or ""
    place, _, path = signature.partition("[].")
    signed = (path.partition(".")[0],) if place == "tool_calls" else ()
    call = known_only(draft, call, ("id", "type", *CALL_KEYS, *signed), pointer)
    for kind, known in CALL_KEYS.items():
        if isinstance(call.get(kind), dict):
            spec = known_only(draft, call[kind], known, f"{pointer}/{kind}")
            call = call if spec is call[kind] else {**call, kind: spec}
    return call


# --- content ---------------------------------------------------------------------------


def _content(draft: Draft, message: Json, at: int) -> Json:
    """Text as a string, no blank text, no null: what the profile says of content."""
    rules, role = draft.profile.messages, message.get("role")
    content = message.get("content")
    if rules.drop_empty_text and isinstance(content, list):
        parts = [part for part in content if not is_blank([part])]
        message = _with(message, "content", parts)
        if not parts:
            message = {**message, "content": None if role == "assistant" else ""}
        content = message["content"]
    if rules.text_parts == "string" and isinstance(content, list):
        text = as_text(content, "\n" if role == "tool" else "")
        if text is not None:
            _report_keys(draft, content, at)
            message = {**message, "content": text}
    return null_content(draft, message) if role == "assistant" else message


def _report_keys(draft: Draft, parts: list[Json], at: int) -> None:
    """What parts say beside their text (`cache_control`, say) is lost in a string."""
    for i, part in enumerate(parts if is_marked(parts) else ()):
        for key in sorted(part.keys() - {"type", "text"}):
            if part[key] is not None:
                reason = "this backend takes content as one string"
                draft.lose(f"/messages/{at}/content/{i}/{key}", reason, "bookkeeping")


def null_content(draft: Draft, message: Json) -> Json:
    """Null is for messages that only make calls, where the backend takes it there."""
    rules = draft.profile.messages
    content = message.get("content")
    if not message.get("tool_calls"):
        keeps = content is not None or draft.profile.answer.exact or "function_call" in message
        return message if keeps else {**message, "content": ""}
    if rules.null_content == "keep" or not (content is None or (rules.drop_empty_text and is_blank(content))):
        return message
    if rules.null_content == "omit":
        return _less(message, ("content",))
    stand_in = "" if rules.null_content == "empty" else " "
    return message if content == stand_in else {**message, "content": stand_in}


# --- messages that are left out --------------------------------------------------------

_CARRIERS = ("tool_calls", "function_call", "audio", "refusal")
"""Keys that make an assistant message worth sending without content."""


def _is_dropped(draft: Draft, message: Json, at: int) -> bool:
    """Nothing in it, or nothing but reasoning: null without calls is refused by OpenAI itself."""
    rules, role = draft.profile.messages, message.get("role")
    if role == "reasoning":
        draft.lose(f"/messages/{at}", "no backend takes messages of this role", "bookkeeping")
        return True
    if not is_blank(message.get("content")):
        return False
    if role == "assistant":
        held = (*_CARRIERS, draft.profile.reasoning.replay_field)
        return rules.drop_bare_assistant and not any(message.get(key) for key in held)
    return rules.drop_empty_text and role != "tool"


def _less(message: Json, keys: Iterable[str]) -> Json:
    gone = [key for key in keys if key in message]
    return {key: value for key, value in message.items() if key not in gone} if gone else message


def _with(message: Json, key: str, entries: list[Any]) -> Json:
    """`message` with this list, the same object when the list holds the same objects."""
    old = message[key]
    same = len(old) == len(entries) and all(a is b for a, b in zip(old, entries, strict=True))
    return message if same else {**message, key: entries}
