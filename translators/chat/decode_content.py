"""Content of Chat messages: a string or a list of parts, into neutral parts.

The Responses names of parts (`input_text`, `output_text`, `input_image`, `input_file`) are
read too: clients that speak both shapes mix them up. A part with no neutral meaning stays
whole as `Opaque`; whether it can be carried is known only when the backend is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ProxyError, bad_request, param_at
from ..ir import Audio, File, Image, Json, Opaque, Part, Refusal, Text


def decode_content(content: Any, at: str) -> tuple[Part, ...]:
    """Parts of a message's `content`: a string or a list, as `check` has seen; none for null and empty.

    `at` points to the content.
    """
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple(decode_part(raw, f"{at}/{i}") for i, raw in enumerate(content or ()))


def decode_part(raw: Any, at: str) -> Part:
    """One part; raises 400 (`ProxyError`) for what is none."""
    if isinstance(raw, str):
        return Text(raw)
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise bad_request(f"`{param_at(at)}` must be an object with a `type`.", param_at(at))
    reader = _READERS.get(raw["type"])
    return reader(raw, at) if reader else Opaque("chat", raw, at)


def _text(raw: Json, at: str) -> Part:
    mark = raw.get("cache_control")
    return Text(_string(raw, "text", at), mark=mark if isinstance(mark, dict) else None)


def _refusal(raw: Json, at: str) -> Part:
    return Refusal(_string(raw, "refusal", at))


def _image(raw: Json, at: str) -> Part:
    """`image_url: {url, detail}`; a bare string for the object is common and unmistakable."""
    image = raw.get("image_url")
    spec = image if isinstance(image, dict) else {**raw, "url": image}
    url, file_id = _optional(spec, "url"), _optional(spec, "file_id")
    if url is None and file_id is None:
        raise _missing(f"{at}/image_url/url")
    return Image(url, file_id, _optional(spec, "detail"))


def _audio(raw: Json, at: str) -> Part:
    spec = raw.get("input_audio")
    if not isinstance(spec, dict):
        raise _missing(f"{at}/input_audio")
    return Audio(_string(spec, "data", f"{at}/input_audio"), _string(spec, "format", f"{at}/input_audio"))


def _file(raw: Json, at: str) -> Part:
    spec = raw.get("file")
    spec = spec if isinstance(spec, dict) else raw
    data, file_id, url = (_optional(spec, key) for key in ("file_data", "file_id", "file_url"))
    if data is None and file_id is None and url is None:
        raise _missing(f"{at}/file/file_data")
    return File(data, file_id, url, _optional(spec, "filename"))


_READERS: Mapping[str, Callable[[Json, str], Part]] = {
    "text": _text,
    "input_text": _text,
    "output_text": _text,
    "refusal": _refusal,
    "image_url": _image,
    "input_image": _image,
    "input_audio": _audio,
    "file": _file,
    "input_file": _file,
}


def _string(holder: Json, key: str, at: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str):
        raise _missing(f"{at}/{key}")
    return value


def _optional(holder: Json, key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) and value else None


def _missing(at: str) -> ProxyError:
    param = param_at(at)
    return bad_request(f"`{param}` is required.", param)
