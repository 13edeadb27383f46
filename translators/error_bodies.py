"""Error bodies of every shape met in the field, read into one.

OpenAI's `{error: {...}}` is the minority: Databricks says `{error_code, message}` with JSON
text inside the message, FastAPI `{detail}`, Google a list, Cloudflare `{errors: [...]}`,
Anthropic `{type: error, error}`, MiniMax `base_resp` inside a 200, LM Studio a bare string,
and proxies in between a page of HTML.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .lenient import read_json


@dataclass(slots=True)
class Told:
    """What an error body says; `status` is one that the body itself names."""

    message: str = ""
    type: str | None = None
    code: str | None = None
    param: str | None = None
    status: int | None = None


_MESSAGE = (
    "message",
    "msg",
    "error_msg",
    "error_message",
    "errorMessage",
    "status_msg",
    "detail",
    "reason",
    "title",
)
_CODE = ("code", "error_code", "status_code", "statusCode", "http_code", "status")
_SUCCESS = ("choices", "output")
"""Keys of a reply: where one of them holds something, a mere `message` or `detail` is no error."""

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_HTML_HEAD = 4096
"""Characters of a page that are searched for its title: the pattern costs the square of them."""


_PLACES = ("error", "errors", "base_resp")
"""Where an object tells its error, when nothing better is known of its sender."""
_PLACE_OF = {
    "cloudflare": "errors",
    "minimax_base_resp": "base_resp",
    "databricks": "message",
    "fastapi": "detail",
}
"""Shape of `errors.shapes` -> the key it is told by; the shapes left out have `error`."""


def read_body(body: bytes, shapes: Sequence[str] = ()) -> Told:
    """The error that a response body (JSON, text, HTML or nothing) tells.

    `shapes` (`errors.shapes` of the profile) are tried first, in their order: where a proxy wraps
    a backend's error in one of its own, they say whose words count.
    """
    text = body.decode("utf-8", "replace").strip()
    if is_html(body):
        title = _TITLE.search(text, 0, _HTML_HEAD)
        return Told(_TAG.sub("", title.group(1)).strip() if title else "")
    return _from_text(text, (*(_PLACE_OF.get(shape, "error") for shape in shapes), *_PLACES))


def is_html(body: bytes) -> bool:
    return body.lstrip()[:1] == b"<"


def told_in(obj: dict[str, Any]) -> Told | None:
    """The error inside an object of a 200 reply or stream; None: it is no error."""
    if _names_error(obj):
        return _read(obj)
    if any(obj.get(key) for key in _SUCCESS):
        return None
    if obj.get("error") is not None:
        return Told()
    said = any(isinstance(obj.get(key), str) for key in _MESSAGE) and "id" not in obj
    return _read(obj) if said or "detail" in obj else None


def _names_error(obj: dict[str, Any]) -> bool:
    if obj.get("error") or obj.get("errors") or obj.get("error_code"):
        return True
    if obj.get("type") == "error" or obj.get("object") == "error":
        return True
    base = obj.get("base_resp")
    return isinstance(base, dict) and base.get("status_code") not in (0, None)


def _from_text(text: str, places: Sequence[str] = _PLACES) -> Told:
    """A text that may itself be JSON (Databricks puts its model's error body in `message`)."""
    if text[:1] in ("{", "["):
        value, _ = read_json(text.encode("utf-8", "replace"))
        if value is not None:
            return _read(value, places)
    return Told(text)


def _read(value: Any, places: Sequence[str] = _PLACES) -> Told:
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, list):
        return _of_list(value)
    if not isinstance(value, dict):
        return Told()
    for key in places:
        inner = value.get(key)
        if inner:
            return _filled(_read(inner), value)
    return _filled(Told(), value)


def _filled(told: Told, table: dict[str, Any]) -> Told:
    """Complete an inner error with what the object around it says."""
    if not told.message:
        message = next((value for key in _MESSAGE if (value := table.get(key))), "")
        inner = _read(message)
        told.message = inner.message
        told = _merged(inner, told)
    told.message = _with_cause(told.message, table.get("metadata"))
    told.type = told.type or _type_of(table)
    told.param = told.param or _text(table.get("param"))
    for value in map(table.get, _CODE):
        _take_code(told, value)
    return told


def _merged(first: Told, second: Told) -> Told:
    return Told(
        first.message or second.message,
        first.type or second.type,
        first.code or second.code,
        first.param or second.param,
        first.status or second.status,
    )


def _take_code(told: Told, value: Any) -> None:
    """A numeric code is a status, or no code that a client could act on."""
    if isinstance(value, str) and not value.strip().isdigit():
        told.code = told.code or value or None
        return
    try:
        number = int(value)
    except (TypeError, ValueError):
        return
    if told.status is None and 400 <= number < 600:
        told.status = number


def _with_cause(message: str, metadata: Any) -> str:
    """OpenRouter says "Provider returned error" and keeps the provider's words in `metadata.raw`."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    cause = _read(raw).message if raw else ""
    return f"{message}: {cause}" if cause and cause not in message else message


def _of_list(entries: list[Any]) -> Told:
    """Google's one-entry list, Cloudflare's `errors`, FastAPI's list of faults."""
    faults = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("loc"), list)]
    if not faults:
        return _read(entries[0]) if entries else Told()
    first = faults[0]
    told = Told(param=_path(first["loc"]))
    told.message = "; ".join(f"{_path(fault['loc'])}: {fault.get('msg', 'invalid')}" for fault in faults[:5])
    return told


def _path(loc: list[Any]) -> str:
    """`["body", "messages", 0, "role"]` as `messages.0.role`."""
    steps = loc[1:] if loc[:1] == ["body"] and len(loc) > 1 else loc
    return ".".join(str(step) for step in steps)


def _type_of(table: dict[str, Any]) -> str | None:
    kind = _text(table.get("type"))
    return None if kind == "error" else kind


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
