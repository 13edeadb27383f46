"""Content parts in their Chat form, also when a client wrote them in the Responses one.

    input_text, output_text {text}            -> text {text}
    input_image {image_url: str, detail}      -> image_url {image_url: {url, detail}}
    input_file {file_data, file_id, filename} -> file {file: {...}}

Clients that speak both shapes mix them up, and no Chat backend takes the others.
"""

from __future__ import annotations

from typing import Any

from ..ir import Json
from .content import MARK, string
from .edit_draft import Draft
from .edit_keys import known_only

_INNER = {
    "image_url": ("url", "detail"),
    "file": ("file_data", "file_id", "filename"),
    "input_audio": ("data", "format"),
}
"""Type of a part -> the keys of the object it holds under the same name."""


def edit_part(draft: Draft, part: Any, pointer: str) -> Any:
    """A part as this backend takes it; what is no object, or of an unknown type, stays as it is."""
    if not isinstance(part, dict):
        return part
    part = _known_detail(_official(part))
    kind = string(part.get("type"))
    if draft.profile.request.extra_keys is None or kind not in ("text", *_INNER):
        return part
    marks = (MARK,) if draft.profile.messages.cache_marks else ()
    part = known_only(draft, part, ("type", kind, *marks), pointer)
    inner = part.get(kind)
    if not isinstance(inner, dict) or kind not in _INNER:
        return part
    known = known_only(draft, inner, _INNER[kind], f"{pointer}/{kind}")
    return part if known is inner else {**part, kind: known}


def _official(part: Json) -> Json:
    match part:
        case {"type": "input_text" | "output_text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "input_image" | "image_url", "image_url": str(url)}:
            return {"type": "image_url", "image_url": {"url": url} | _some(part, "detail")}
        case {"type": "input_image", "image_url": dict(image)}:
            return {"type": "image_url", "image_url": image}
        case {"type": "input_file"}:
            return {"type": "file", "file": _some(part, *_INNER["file"])}
        case _:
            return part


def _known_detail(part: Json) -> Json:
    """OpenAI has `original` (S openai 3.57.0) and Codex asks for it; elsewhere `high` is the most."""
    match part:
        case {"type": "image_url", "image_url": {"detail": "original"} as image}:
            return {**part, "image_url": {**image, "detail": "high"}}
        case _:
            return part


def _some(part: Json, *keys: str) -> Json:
    return {key: part[key] for key in keys if part.get(key) is not None}
