"""Messages of a Chat body in Ollama's words.

    {role, content: text, images: [base64], thinking, tool_calls: [{id, function: {index, name, arguments}}],
     tool_name, tool_call_id}

Content is text alone, pictures stand beside it, arguments are an object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import bad_request
from ..images import bare_base64, is_remote
from ..ir import Json
from ..lenient import json_in
from ..profile import Profile


def to_messages(messages: Sequence[Json], profile: Profile) -> list[Json]:
    """`messages`, which have been edited for `profile`.

    Raises 400 (`ProxyError`) for a part that Ollama has no form for.
    """
    names: dict[str, str] = {}
    return [_message(message, names, profile) for message in messages]


def arguments_object(text: Any) -> Json | None:
    """The arguments of a call as an object, None when they are none; no text at all is `{}`."""
    value = json_in(text) if isinstance(text, str) and text.strip() else {}
    return value if isinstance(value, dict) else None


def _message(message: Json, names: dict[str, str], profile: Profile) -> Json:
    role = message["role"]
    text, images = _content(message.get("content"), profile.messages.remote_images == "inline")
    out: Json = {"role": role, "content": text}
    if images:
        out["images"] = images
    if role == "assistant":
        _add_turn(out, message, names, profile.reasoning.replay_field)
    elif role == "tool":
        out |= _origin(str(message.get("tool_call_id") or ""), message.get("name"), names)
    return out


def _add_turn(out: Json, message: Json, names: dict[str, str], thought_field: str) -> None:
    """What an assistant's message has beside its content."""
    thought = message.get(thought_field)
    if isinstance(thought, str) and thought:
        out["thinking"] = thought
    calls = [call for call in message.get("tool_calls") or () if call.get("type", "function") == "function"]
    if calls:
        out["tool_calls"] = [_call(call, place, names) for place, call in enumerate(calls)]


def _call(call: Json, place: int, names: dict[str, str]) -> Json:
    function = call["function"]
    names[call["id"]] = function["name"]
    arguments = arguments_object(function.get("arguments"))
    return {
        "id": call["id"],
        "function": {"index": place, "name": function["name"], "arguments": arguments or {}},
    }


def _origin(call_id: str, name: Any, names: Mapping[str, str]) -> Json:
    """Whose result it is; older servers know the name only."""
    told = names.get(call_id) or name
    return {"tool_call_id": call_id} | ({"tool_name": told} if told else {})


def _content(content: Any, fetches: bool) -> tuple[str, list[str]]:
    """Text and media of a message; parts of text are joined as they are."""
    if not isinstance(content, list):
        return content or "", []
    texts: list[str] = []
    images: list[str] = []
    for part in content:
        if part.get("type") == "text":
            texts.append(part["text"])
        else:
            images.append(_medium(part, fetches))
    return "".join(texts), images


def _medium(part: Json, fetches: bool) -> str:
    """Base64 of a picture or of sound, which Ollama takes in the same list.

    `fetches`: whatever sends the body puts the picture itself in the place of a remote address.
    """
    kind = str(part.get("type"))
    if kind == "input_audio":
        return str(part["input_audio"]["data"])
    if kind != "image_url":
        words = f"This model's backend takes no `{kind}`: leave it out, or send its text."
        raise bad_request(words, "messages")
    image = part["image_url"]
    url = str(image["url"] if isinstance(image, dict) else image)
    data = None if is_remote(url) and not fetches else bare_base64(url)
    if data is None:
        words = "This model takes an image as base64 only: send `data:image/png;base64,...`."
        raise bad_request(words, "messages")
    return data


def add_system(messages: list[Json], words: str) -> None:
    """Add to the first system message, or put one at the start; in place."""
    first = messages[0] if messages else {}
    if first.get("role") == "system":
        messages[0] = {**first, "content": "\n\n".join(_filled((first["content"], words)))}
    else:
        messages.insert(0, {"role": "system", "content": words})


def _filled(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if text]
