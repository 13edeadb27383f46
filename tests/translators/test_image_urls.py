"""Where images by address are found in a request of either shape, and what takes their place."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from translators.errors import ProxyError
from translators.images import refuse_remote_images, remote_images, with_images

URL, OTHER = "https://x.test/a.png", "http://x.test/b.png"
DATA = "data:image/png;base64,AAAA"


def chat(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": role, "content": list(parts)}]}


def responses(*parts: Any) -> dict[str, Any]:
    return {"model": "m", "input": [{"role": "user", "content": list(parts)}]}


def output(value: Any) -> dict[str, Any]:
    return {"model": "m", "input": [{"type": "function_call_output", "call_id": "c", "output": value}]}


TEXT = {"type": "text", "text": URL}
PART = {"type": "image_url", "image_url": {"url": URL, "detail": "low"}}
FLAT = {"type": "input_image", "image_url": URL, "detail": "low"}
SHOT = {"type": "computer_screenshot", "image_url": URL}

HELD = {
    "a chat part": (chat(TEXT, PART), {URL: "/messages/0/content/1"}),
    "the URL alone": (chat({"type": "image_url", "image_url": URL}), {URL: "/messages/0/content/0"}),
    "a tool's message": (chat(PART, role="tool"), {URL: "/messages/0/content/0"}),
    "a responses part": (responses({"type": "input_text", "text": URL}, FLAT), {URL: "/input/0/content/1"}),
    "a chat part in a responses body": (responses(PART), {URL: "/input/0/content/0"}),
    "a tool's output": (output([FLAT]), {URL: "/input/0/output/0"}),
    "a screenshot": (output(SHOT), {URL: "/input/0/output"}),
    "several, one of them twice": (
        {"messages": [*chat(PART)["messages"], *chat({**FLAT, "image_url": OTHER}, PART)["messages"]]},
        {URL: "/messages/0/content/0", OTHER: "/messages/1/content/0"},
    ),
    "scheme in capitals, blanks": (
        responses({**FLAT, "image_url": " HTTPS://X"}),
        {" HTTPS://X": "/input/0/content/0"},
    ),
}
NOTHING = {
    "words": chat(TEXT, "odd", None, {"type": "image_url"}),
    "text": {"messages": [{"role": "user", "content": URL}, "odd", {"role": "assistant", "content": None}]},
    "an image in the body": chat({"type": "image_url", "image_url": {"url": DATA}}),
    "a file id": responses({"type": "input_image", "file_id": "f"}),
    "other schemes": responses(
        *(
            {**FLAT, "image_url": url}
            for url in ("file:///etc/passwd", "gs://b/o", "//x.test/a", "ftp://x/a", 1)
        )
    ),
    "an input of one text": {"input": URL},
    "lists that are none": {"messages": None, "input": {"content": [FLAT]}},
    "a result in words": output(URL),
    "tools": {"messages": [], "tools": [{"content": [PART]}]},
}


@pytest.mark.parametrize(("body", "found"), HELD.values(), ids=HELD.keys())
def test_remote_images_are_found_and_replaced(body: Any, found: dict[str, str]) -> None:
    assert remote_images(body) == found
    before = copy.deepcopy(body)
    replaced = with_images(body, dict.fromkeys(found, DATA))
    assert body == before, "the input is not touched"
    assert remote_images(replaced) == {}
    assert replaced == _swapped(body, found)


@pytest.mark.parametrize("body", NOTHING.values(), ids=NOTHING.keys())
def test_everything_else_stays(body: Any) -> None:
    assert remote_images(body) == {}
    assert with_images(body, {URL: DATA}) == body
    refuse_remote_images(body)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (chat(TEXT, PART), "messages[0].content[1]"),
        (chat({**FLAT, "image_url": "HTTP://x"}), "messages[0].content[0]"),
        (output([FLAT]), "input[0].output[0]"),
        (output(SHOT), "input[0].output"),
    ],
)
def test_a_refusal_names_the_part(body: Any, param: str) -> None:
    with pytest.raises(ProxyError, match="data URL") as caught:
        refuse_remote_images(body)
    assert (caught.value.http_status, caught.value.param) == (400, param)


def _swapped(value: Any, urls: dict[str, str]) -> Any:
    """An independent account of the same: every image's URL is `DATA`, and no text is."""
    if isinstance(value, list):
        return [_swapped(entry, urls) for entry in value]
    if not isinstance(value, dict):
        return value
    swapped = {key: _swapped(entry, urls) for key, entry in value.items()}
    for key in ("image_url", "url"):
        if swapped.get(key) in urls if isinstance(swapped.get(key), str) else False:
            swapped[key] = DATA
    return swapped
