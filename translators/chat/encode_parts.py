"""Neutral parts as the content of a Chat message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from ..ir import Audio, File, Image, Json, Opaque, Part, Refusal, Text
from ..media import MediaPolicy

_DETAILS = frozenset({"auto", "low", "high", "original"})


def content_of(parts: Sequence[Part], at: str, media: MediaPolicy, in_result: bool = False) -> Any:
    """A string when there is only text and no cache mark, else a list of parts; `at` points to the parts.

    The texts of a tool's result (`in_result`) are lines. Raises 400 (`ProxyError`) for a part that has no
    Chat form, or that the backend refuses, naming its place.
    """
    if all(map(_is_plain, parts)):
        return _joined(parts, "\n" if in_result else "")
    carried = [
        _carried(part, f"{at}/{i}", media) for i, part in enumerate(media.lowered(parts, at, in_result))
    ]
    if all(map(_is_plain, carried)):  # what was a picture stands on a line of its own
        return _joined(carried, "\n")
    written = [_part(part) for part in carried]
    return [part for part in written if part.get("text") != ""]  # empty text blocks are refused


def _is_plain(part: Part) -> bool:
    return isinstance(part, Text) and part.mark is None


def _joined(parts: Sequence[Part], separator: str) -> str:
    return separator.join(part.text for part in parts if isinstance(part, Text))


def _carried(part: Part, at: str, media: MediaPolicy) -> Part:
    """The part, or the words for it where this wire has no form for it."""
    match part:
        case Image(url=None):
            return media.unsaid(part, at, "picture by file id: send a URL or a data URL")
        case File(data=None, file_id=None):
            return media.unsaid(part, at, "file by URL: send its content as `file_data`")
        case Opaque(shape=shape) if shape != "chat":
            return media.unsaid(part, at, f"content of type `{part.type}`")
        case _:
            return part


def _part(part: Part) -> Json:
    match part:
        case Text(mark=None):
            return {"type": "text", "text": part.text}
        case Text():
            return {"type": "text", "text": part.text, "cache_control": part.mark}
        case Refusal():
            return {"type": "refusal", "refusal": part.text}
        case Image():
            return _image(part)
        case File():
            return _file(part)
        case Audio():
            return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
        case Opaque():
            return part.raw
        case _:
            assert_never(part)


def _image(image: Image) -> Json:
    spec: Json = {"url": image.url}
    if image.detail in _DETAILS:
        spec["detail"] = image.detail
    return {"type": "image_url", "image_url": spec}


def _file(file: File) -> Json:
    fields = {"filename": file.filename, "file_data": file.data, "file_id": file.file_id}
    return {"type": "file", "file": {key: value for key, value in fields.items() if value is not None}}
