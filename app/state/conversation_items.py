"""What goes into a conversation and how it is shown: pure, nothing waits here.

The rules and their words are OpenAI's (openai 3.57.0): at most 20 items at a time, at most 16 pairs of
metadata with keys of 64 and values of 512 characters, and parts of items that are shown to who asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson

from translators.compaction import opened
from translators.errors import ProxyError, bad_request
from translators.ir import Json
from translators.responses.decode import decode_request

from ..store.conversations import Entry
from . import chaining

NewId = Callable[[str], str]

MOST_ITEMS = 20
"""That are added at a time."""
_MOST_PAIRS, _LONGEST_KEY, _LONGEST_VALUE = 16, 64, 512
_ID = re.compile(r"[!-~]{1,256}")
"""What an id may be: databases take no NUL in a text, nor a long one in an index."""
_PASSING = "compaction_trigger"
"""The type of items that say something of their own request alone."""


def is_id(value: Any) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


# --- what is sent ----------------------------------------------------------------------


def read_metadata(value: Any) -> bytes:
    """As JSON; null is none. Raises `ProxyError` (400)."""
    if value is None:
        return b"{}"
    if not isinstance(value, dict):
        raise _mistyped("metadata", "an object", value)
    if len(value) > _MOST_PAIRS:
        message = (
            "Invalid 'metadata': too many properties. Expected an object with at most "
            f"{_MOST_PAIRS} properties, but got an object with {len(value)} properties instead."
        )
        raise bad_request(message, "metadata", "object_above_max_properties")
    for key, each in value.items():
        _check_length("metadata", "key", key, _LONGEST_KEY)
        at = f"metadata.{key}"
        if not isinstance(each, str):
            raise _mistyped(at, "a string", each)
        _check_length(at, "string", each, _LONGEST_VALUE)
    return orjson.dumps(value)


def _check_length(at: str, what: str, text: str, most: int) -> None:
    if len(text) > most:
        message = (
            f"Invalid '{at}': {what} too long. Expected a string with maximum length {most}, "
            f"but got a string with length {len(text)} instead."
        )
        raise bad_request(message, at, "string_above_max_length")


def read_items(value: Any) -> list[Json]:
    """Items that are to be added; references may be among them. Raises `ProxyError` (400)."""
    if not isinstance(value, list):
        raise _mistyped("items", "an array of objects", value)
    if len(value) > MOST_ITEMS:
        message = (
            f"Invalid 'items': array too long. Expected an array with maximum length {MOST_ITEMS}, "
            f"but got an array with length {len(value)} instead."
        )
        raise bad_request(message, "items", "array_above_max_length")
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise _mistyped(f"items[{index}]", "an object", item)
        if item.get("id") is not None and not is_id(item["id"]):
            message = f"Invalid 'items[{index}].id': it must be 1 to 256 printable ASCII characters."
            raise bad_request(message, f"items[{index}].id", "invalid_value")
    return value


def check_items(items: Sequence[Json], new_id: NewId, key: Callable[[], bytes]) -> None:
    """Whether a model can be asked with them: the same rules as for the input of a request, other places.

    `key`: of the summaries among them.
    """
    if not items:
        return
    try:
        decode_request({"model": "any", "input": items}, new_id)
        opened(list(items), key)
    except ProxyError as error:
        if error.param is not None:
            error.message = error.message.replace("`input[", "`items[")
            error.param = error.param.replace("input[", "items[", 1)
        raise


def _mistyped(at: str, wanted: str, value: Any) -> ProxyError:
    message = f"Invalid type for '{at}': expected {wanted}, but got {_TYPES[type(value)]} instead."
    return bad_request(message, at, "invalid_type")


_TYPES: Mapping[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "an integer",
    float: "a decimal number",
    bool: "a boolean",
    type(None): "null",
}


def to_entries(items: Iterable[Any], new_id: NewId, taken: Collection[str] = ()) -> list[Entry]:
    """Items with ids that differ from each other and from those `taken`: their own where that is so."""
    found: dict[str, Entry] = {}
    for item in items:
        if item.get("type") == _PASSING:
            continue
        id = item.get("id")
        if not is_id(id) or id in found or id in taken:
            item = {key: value for key, value in item.items() if key != "id"}
            id = new_id(chaining.prefix_of(item))
        found[id] = Entry(id, orjson.dumps(item))
    return list(found.values())


def items_of(entries: Iterable[Entry]) -> list[Any]:
    """As they were added."""
    found: list[Any] = orjson.loads(b"[%b]" % b",".join(entry.body for entry in entries))
    return found


def place_behind(conversation: str, entries: Sequence[Entry]) -> str:
    """What the response to a turn that began behind `entries` names as the one before it."""
    return f"{conversation}/{entries[-1].id if entries else ''}"


def until(entries: Sequence[Entry], last: str) -> Sequence[Entry] | None:
    """Those up to that place in a conversation; None: what stood there has been taken out."""
    if not last:
        return ()
    places = [place for place, entry in enumerate(entries, 1) if entry.id == last]
    return entries[: places[0]] if places else None


# --- what is shown ---------------------------------------------------------------------


def read_include(values: Iterable[str]) -> frozenset[str]:
    """Raises `ProxyError` (400)."""
    found = frozenset(values)
    for value in found - INCLUDABLE:
        message = f"Invalid value: '{value[:80]}'. Supported values are: {', '.join(sorted(INCLUDABLE))}."
        raise bad_request(message, "include", "invalid_value")
    return found


def shown(entry: Entry, include: Collection[str]) -> Json:
    """An item as typed clients read it, less what was not asked for."""
    item = chaining.shown(orjson.loads(entry.body), entry.id)
    item["id"] = entry.id
    kind = item["type"]
    if kind.endswith(_WITH_STATUS):
        item = {"status": "completed", **item}
    if kind in _LISTS and item.get(_LISTS[kind]) is None:
        item[_LISTS[kind]] = []
    for key in ("content", "output"):
        if isinstance(item.get(key), list):
            item[key] = [_part(part) for part in item[key]]
    for name, (of_kind, strip) in _INCLUDABLE.items():
        if of_kind == kind and name not in include:
            strip(item)
    return item


_WITH_STATUS = ("message", "_call", "_output")
"""Ends of the types that have a `status`."""
_LISTS: Mapping[str, str] = {"reasoning": "summary", "message": "content"}
"""Type of an item -> the list that it always has."""
_OF_PARTS: Mapping[str, Json] = {
    "input_image": {"detail": "auto"},
    "output_text": {"annotations": []},
}
"""What typed clients ask of parts and requests may leave out."""


def _part(part: Any) -> Any:
    return {**_OF_PARTS.get(str(part.get("type")), {}), **part} if isinstance(part, dict) else part


def _without(key: str) -> Callable[[Json], None]:
    def strip(item: Json) -> None:
        item.pop(key, None)

    return strip


def _nulled(key: str) -> Callable[[Json], None]:
    def strip(item: Json) -> None:
        if key in item:
            item[key] = None

    return strip


def _in_parts(kind: str, key: str) -> Callable[[Json], None]:
    def strip(item: Json) -> None:
        for part in item["content"] if isinstance(item["content"], list) else ():
            if isinstance(part, dict) and part.get("type") == kind and part.get(key):
                del part[key]

    return strip


def _in(holder: str, key: str) -> Callable[[Json], None]:
    def strip(item: Json) -> None:
        held = item.get(holder)
        if isinstance(held, dict):
            item[holder] = {name: value for name, value in held.items() if name != key}

    return strip


_INCLUDABLE: Mapping[str, tuple[str, Callable[[Json], None]]] = {
    "file_search_call.results": ("file_search_call", _nulled("results")),
    "web_search_call.results": ("web_search_call", _nulled("results")),
    "web_search_call.action.sources": ("web_search_call", _in("action", "sources")),
    "message.input_image.image_url": ("message", _in_parts("input_image", "image_url")),
    "computer_call_output.output.image_url": ("computer_call_output", _in("output", "image_url")),
    "code_interpreter_call.outputs": ("code_interpreter_call", _nulled("outputs")),
    "reasoning.encrypted_content": ("reasoning", _without("encrypted_content")),
    "message.output_text.logprobs": ("message", _in_parts("output_text", "logprobs")),
}
"""Value of `include` -> the type of item that it is about, and what takes that out."""
INCLUDABLE = frozenset(_INCLUDABLE)
