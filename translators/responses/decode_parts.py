"""Content parts of a Responses request: messages' `content`, and `output` of tool results.

Chat spellings of a part (`text`, `image_url`, `file`) are read as well, since clients mix
them. A part of another type is kept whole; whether it can be carried is for the encoders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from ..errors import ProxyError, bad_request, param_at
from ..ir import Audio, File, Image, Json, Opaque, Part, Refusal, Text
from .flat import text_of


def wrong(at: str, words: str) -> ProxyError:
    """A 400 for the value at pointer `at`, which must be `words`."""
    param = param_at(at)
    return bad_request(f"`{param}` must be {words}.", param)


def missing(at: str, words: str) -> ProxyError:
    """A 400 for something required that is not there."""
    param = param_at(at)
    return bad_request(f"`{param}` is required: {words}.", param)


def string(holder: Json, key: str, at: str) -> str | None:
    """The string at `key`, None when absent; raises a 400 for any other type."""
    value = holder.get(key)
    if value is None or isinstance(value, str):
        return value
    raise wrong(f"{at}/{key}", "a string")


def objects(value: Any, at: str) -> list[Json]:
    """A list of objects, empty when absent; raises a 400 naming the entry that is none."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong(at, "a list")
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise wrong(f"{at}/{index}", "an object")
    return value


def decode_content(content: Any, at: str) -> tuple[Part, ...]:
    """A message's content: a string, a list of parts, or nothing."""
    if isinstance(content, str):
        return (Text(content),)
    if content is not None and not isinstance(content, list):
        raise wrong(at, "a string or a list of parts")
    return tuple(decode_part(part, f"{at}/{index}") for index, part in enumerate(objects(content, at)))


def decode_output(output: Any, at: str) -> tuple[Part, ...]:
    """A tool result's output: text, a list of parts, or any JSON value, which becomes its text."""
    if output is None or isinstance(output, str):
        return (Text(output or ""),)
    if isinstance(output, list) and all(isinstance(p, dict) and text_of(p.get("type")) for p in output):
        return decode_content(output, at)
    return (Text(orjson.dumps(output).decode()),)


def decode_part(raw: Json, at: str) -> Part:
    """One part; raises 400 (`ProxyError`) for what is none."""
    kind = raw.get("type")
    if kind is None and "text" in raw:
        kind = "text"
    if not isinstance(kind, str) or not kind:
        raise wrong(f"{at}/type", "a string")
    read = _READERS.get(kind)
    return read(raw, at) if read else Opaque("responses", raw, at)


def _text(raw: Json, at: str) -> Text:
    annotations = raw.get("annotations")
    cited = annotations if isinstance(annotations, list) else []
    return Text(string(raw, "text", at) or "", tuple(note for note in cited if isinstance(note, dict)))


def _refusal(raw: Json, at: str) -> Refusal:
    return Refusal(string(raw, "refusal", at) or string(raw, "text", at) or "")


def _image(raw: Json, at: str) -> Image:
    """`image_url` is a string on this wire; `{url, detail}` is the Chat spelling."""
    nested = raw.get("image_url")
    if isinstance(nested, dict):
        raw = {**nested, "image_url": nested.get("url"), **_set(raw, "file_id", "detail")}
    url, file_id = string(raw, "image_url", at), string(raw, "file_id", at)
    if not url and not file_id:
        raise missing(f"{at}/image_url", "an image needs a URL (http or data) or a `file_id`")
    return Image(url or None, file_id or None, string(raw, "detail", at) or None)


def _file(raw: Json, at: str) -> File:
    nested = raw.get("file")
    fields, at = (nested, f"{at}/file") if isinstance(nested, dict) else (raw, at)
    file = File(
        data=string(fields, "file_data", at) or None,
        file_id=string(fields, "file_id", at) or None,
        url=string(fields, "file_url", at) or None,
        filename=string(fields, "filename", at) or None,
        detail=string(fields, "detail", at) or None,
    )
    if not (file.data or file.file_id or file.url):
        raise missing(f"{at}/file_data", "a file needs `file_data`, `file_id` or `file_url`")
    return file


def _set(raw: Json, *keys: str) -> Json:
    return {key: raw[key] for key in keys if raw.get(key) is not None}


def _audio(raw: Json, at: str) -> Audio:
    nested = raw.get("input_audio")
    fields, at = (nested, f"{at}/input_audio") if isinstance(nested, dict) else (raw, at)
    data, form = string(fields, "data", at), string(fields, "format", at)
    if not data or not form:
        raise missing(f"{at}/{'format' if data else 'data'}", "audio needs `data` (base64) and `format`")
    return Audio(data, form)


_READERS: Mapping[str, Callable[[Json, str], Part]] = {
    **dict.fromkeys(("input_text", "output_text", "text", "summary_text"), _text),
    "refusal": _refusal,
    **dict.fromkeys(("input_image", "image_url"), _image),
    **dict.fromkeys(("input_file", "file"), _file),
    "input_audio": _audio,
}
PART_TYPES = frozenset(_READERS)
"""Types of content parts, which stand inside an item."""
