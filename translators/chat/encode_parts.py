"""Neutral parts as the content of a Chat message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from ..errors import ProxyError, bad_request, param_at
from ..ir import Audio, File, Image, Json, Opaque, Part, Refusal, Text

_DETAILS = frozenset({"auto", "low", "high", "original"})


def content_of(parts: Sequence[Part], at: str, separator: str = "") -> Any:
    """A string when there is only text, else a list of parts; `at` points to the parts.

    Raises 400 (`ProxyError`) for a part that has no Chat form, naming its place.
    """
    if all(isinstance(part, Text) for part in parts):
        return separator.join(part.text for part in parts if isinstance(part, Text))
    written = [_part(part, at, i) for i, part in enumerate(parts)]
    return [part for part in written if part.get("text") != ""]  # empty text blocks are refused


def _part(part: Part, at: str, i: int) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Refusal():
            return {"type": "refusal", "refusal": part.text}
        case Image():
            return _image(part, at, i)
        case File():
            return _file(part, at, i)
        case Audio():
            return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
        case Opaque():
            return _opaque(part)
        case _:
            assert_never(part)


def _image(image: Image, at: str, i: int) -> Json:
    if image.url is None:
        raise _cannot("picture by file id: send a URL or a data URL", at, i)
    spec: Json = {"url": image.url}
    if image.detail in _DETAILS:
        spec["detail"] = image.detail
    return {"type": "image_url", "image_url": spec}


def _file(file: File, at: str, i: int) -> Json:
    if file.data is None and file.file_id is None:
        raise _cannot("file by URL: send its content as `file_data`", at, i)
    fields = {"filename": file.filename, "file_data": file.data, "file_id": file.file_id}
    return {"type": "file", "file": {key: value for key, value in fields.items() if value is not None}}


def _opaque(part: Opaque) -> Json:
    if part.shape == "chat":
        return part.raw
    param = param_at(part.at)
    raise bad_request(f"`{param}`: this model's backend takes no content of type `{part.type}`.", param)


def _cannot(what: str, at: str, i: int) -> ProxyError:
    param = param_at(f"{at}/{i}")
    return bad_request(f"`{param}`: this model's backend takes no {what}.", param)
