"""What a chunk of a Chat stream holds, as far as that is no business of one reader alone."""

from __future__ import annotations

from typing import Any

from ..dialect import ReplyContext
from ..ir import Json
from ..lenient import read_json
from ..timestamps import whole_seconds

_OBJECT = "chat.completion.chunk"


def objects_in(data: bytes) -> tuple[list[Json], bool]:
    """The objects of a frame: one, or those of a list (Google's errors), or none (no JSON).

    And whether it took mending to read them, so that the frame is written anew.
    """
    value, plain = read_json(data)
    told = value if isinstance(value, list) else [value]
    return [each for each in told if isinstance(each, dict)], not plain


def says_something(obj: Json) -> bool:
    return any(choice["delta"] or choice.get("finish_reason") for choice in obj["choices"])


def plain_text(obj: Json) -> str | None:
    """The text of a chunk that holds a text delta and nothing else."""
    choices = obj.get("choices")
    if type(choices) is not list or len(choices) != 1 or obj.get("usage") or "error" in obj:
        return None
    choice = choices[0]
    if (
        type(choice) is not dict
        or choice.get("finish_reason")
        or choice.get("logprobs")
        or choice.get("index")
    ):
        return None
    delta = choice.get("delta")
    if type(delta) is not dict or len(delta) != 1 or "error" in choice or "usage" in choice:
        return None
    text = delta.get("content")
    return text if type(text) is str else None


def first_choice(choices: Any, place: int | None = None) -> Json | None:
    """The choice with the index `place`; None: choice 0, or where there is none the first that is told.

    Further ones (n > 1) have no place in the neutral model.
    """
    if isinstance(choices, dict):
        choices = [choices]
    if not isinstance(choices, list):
        return None
    if len(choices) == 1 and isinstance(choices[0], dict) and choices[0].get("index") == (place or 0):
        return choices[0]
    told = [each for each in choices if isinstance(each, dict)]
    found = next((each for each in told if place_of(each) == (place or 0)), None)
    return found or (told[0] if told and place is None else None)


def place_of(choice: Json) -> int:
    """Its index; 0 where none is told."""
    index = choice.get("index")
    return index if type(index) is int else 0


def call_entries(delta: Json) -> list[Any] | None:
    entries = delta.get("tool_calls")
    if isinstance(entries, list):
        return entries
    if isinstance(entries, dict):
        return [entries]
    legacy = delta.get("function_call")
    return [{"index": 0, "type": "function", "function": legacy}] if isinstance(legacy, dict) else None


class ChunkHead:
    """The keys that every chunk of a stream has: one id, one object type and one model all along."""

    __slots__ = ("_context", "_id", "_model")

    def __init__(self, context: ReplyContext) -> None:
        self._context, self._id, self._model = context, "", ""

    def tidy(self, obj: Json) -> bool:
        """Whether something had to be mended."""
        told, created = obj.get("id"), obj.get("created")
        if not self._id:
            self._id = told if isinstance(told, str) and told else self._context.new_id("chatcmpl-")
        if not self._model:
            model = obj.get("model")
            self._model = model if isinstance(model, str) and model else self._context.model
        if (
            told == self._id
            and type(created) is int
            and obj.get("object") == _OBJECT
            and isinstance(obj.get("model"), str)
        ):
            return False
        if type(created) is not int:
            obj["created"] = whole_seconds(created) or self._context.created
        if not isinstance(obj.get("model"), str):
            obj["model"] = self._model
        obj |= {"id": self._id, "object": _OBJECT}
        return True
