"""Images by URL: where a request of any shape holds them, and what takes their place.

    Chat        messages[].content[]            {image_url: {url}}, or the URL alone
    Ollama      messages[].images[]             base64 alone; the URL of one that is still to be fetched
    Responses   input[].content[], .output[]    {image_url: URL}, or {url} as in Chat
                input[].output                  {type: computer_screenshot, image_url: URL}

Remote are http and https: everything else is either in the body already or something that
nobody but the backend can read. Fetching and making smaller is not done here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import bad_request, param_at
from .ir import Json

_LISTS = ("messages", "input")
_HOLDERS = ("content", "output")
_ANY_DATA = "data:"
_DATA = "data:image/"
_REMOTE = re.compile(r"\s*https?://", re.IGNORECASE)


def remote_images(body: Json) -> dict[str, str]:
    """Every remote image URL of `body`, in order, with a JSON pointer to the first part that holds it."""
    found: dict[str, str] = {}
    for at, part in _parts(body):
        url = _url(part)
        if url is not None and _REMOTE.match(url):
            found.setdefault(url, at)
    for at, text in _bare(body):
        if is_remote(text):
            found.setdefault(text, at)
    return found


def is_remote(url: str) -> bool:
    return _REMOTE.match(url) is not None


def bare_base64(url: str) -> str | None:
    """What a `data:` URL holds, None for one that does not hold base64; any other address unchanged."""
    if url[: len(_ANY_DATA)].lower() != _ANY_DATA:
        return url
    head, found, data = url.partition(";base64,")
    return data if found and "," not in head else None


def data_images(body: Json) -> dict[str, list[str]]:
    """Every image in `body` itself, by its `data:` URL, with JSON pointers to all parts that hold it."""
    found: dict[str, list[str]] = {}
    for at, part in _parts(body):
        url = _url(part)
        if url is not None and url[: len(_DATA)].lower() == _DATA:
            found.setdefault(url, []).append(at)
    return found


def with_images(body: Json, data_urls: Mapping[str, str]) -> Json:
    """A copy of `body` with each image URL in `data_urls` replaced by what it stands for there."""
    lists = {key: body[key] for key in _LISTS if isinstance(body.get(key), list)}
    return {**body, **{key: [_item(item, data_urls) for item in items] for key, items in lists.items()}}


def refuse_remote_images(body: Json) -> None:
    """Raises a 400 naming the first remote image of `body`, for a backend that fetches none."""
    for at in remote_images(body).values():
        raise bad_request("This model takes no image URLs: send the image as a data URL.", param_at(at))


def _parts(body: Json) -> Iterator[tuple[str, Any]]:
    """Whatever may hold an image, each with its pointer."""
    for key in _LISTS:
        items = body.get(key)
        for i, item in enumerate(items if isinstance(items, list) else ()):
            for holder in _HOLDERS:
                value = item.get(holder) if isinstance(item, dict) else None
                if isinstance(value, list):
                    yield from ((f"/{key}/{i}/{holder}/{j}", part) for j, part in enumerate(value))
                else:
                    yield f"/{key}/{i}/{holder}", value


def _bare(body: Json) -> Iterator[tuple[str, str]]:
    """Ollama's images, each with its pointer."""
    messages = body.get("messages")
    for i, message in enumerate(messages if isinstance(messages, list) else ()):
        images = message.get("images") if isinstance(message, dict) else None
        for j, text in enumerate(images if isinstance(images, list) else ()):
            if isinstance(text, str):
                yield f"/messages/{i}/images/{j}", text


def _url(part: Any) -> str | None:
    image = part.get("image_url") if isinstance(part, dict) else None
    url = image.get("url") if isinstance(image, dict) else image
    return url if isinstance(url, str) else None


def _item(item: Any, data_urls: Mapping[str, str]) -> Any:
    if not isinstance(item, dict):
        return item
    held = {key: item[key] for key in _HOLDERS if isinstance(item.get(key), list | dict)}
    edited = {**item, **{key: _replaced(value, data_urls) for key, value in held.items()}}
    if isinstance(item.get("images"), list):
        edited["images"] = [_fetched(image, data_urls) for image in item["images"]]
    return edited


def _fetched(image: Any, data_urls: Mapping[str, str]) -> Any:
    data = data_urls.get(image) if isinstance(image, str) else None
    return image if data is None else bare_base64(data)


def _replaced(value: Any, data_urls: Mapping[str, str]) -> Any:
    """A part, or a list of them, with its image."""
    if isinstance(value, list):
        return [_replaced(part, data_urls) for part in value]
    data = data_urls.get(_url(value) or "")
    if data is None:
        return value
    image = value["image_url"]
    return {**value, "image_url": {**image, "url": data} if isinstance(image, dict) else data}
