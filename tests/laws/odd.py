"""Streams as they should not be: legal ones with damage, and objects made of nothing but known words."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from tests.laws.pairs import objects, styles
from tests.laws.scripts import REPLIES
from translators.ir import Shape

Json = dict[str, Any]

_KEYS = st.sampled_from(
    [
        *(
            "choices",
            "delta",
            "content",
            "tool_calls",
            "function",
            "index",
            "id",
            "name",
            "arguments",
            "type",
        ),
        *("finish_reason", "usage", "message", "refusal", "reasoning_content", "reasoning", "role", "error"),
        *("annotations", "logprobs", "response", "item", "part", "output", "output_index", "content_index"),
        *("item_id", "summary_index", "summary", "text", "status", "code", "incomplete_details", "model"),
        *("created", "error_code", "service_tier", "call_id", "input", "detail", "reasoning_details"),
    ]
)
_TYPES = st.sampled_from(
    [
        *("response.created", "response.completed", "response.failed", "response.incomplete", "error"),
        *("response.output_item.added", "response.output_item.done", "response.content_part.added"),
        *("response.output_text.delta", "response.output_text.done", "response.refusal.delta"),
        *("response.reasoning_summary_text.delta", "response.reasoning_text.done"),
        *("response.function_call_arguments.delta", "response.function_call_arguments.done"),
        *("response.custom_tool_call_input.delta", "response.output_text.annotation.added", "message"),
        *(
            "function_call",
            "custom_tool_call",
            "reasoning",
            "output_text",
            "text",
            "function",
            "web_search_call",
        ),
    ]
)
_LEAVES = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        -1,
        7,
        1.5,
        2**60,
        "",
        "x",
        "{}",
        "stop",
        "length",
        "tool_calls",
        "<think>",
        "call_0x",
    ]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    _LEAVES | _TYPES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def odd_objects(draw: st.DrawFn, backend: Shape) -> list[Json]:
    """A stream's objects with zero to five things wrong."""
    objs = draw(REPLIES.flatmap(lambda script: styles(backend).map(lambda style: objects(script, style))))
    objs = copy.deepcopy(objs)
    for _ in range(draw(st.integers(0, 5))):
        place = draw(st.integers(0, len(objs) - 1)) if objs else 0
        match draw(st.sampled_from(["replace", "replace", "replace", "drop", "double", "move", "insert"])):
            case "insert":
                objs.insert(place, draw(st.dictionaries(_KEYS, VALUES, max_size=4)))
            case "replace" if objs:
                damage(draw, objs[place])
            case "drop" if objs:
                del objs[place]
            case "double" if objs:
                objs.insert(place, copy.deepcopy(objs[place]))
            case "move" if objs:
                objs.insert(draw(st.integers(0, len(objs) - 1)), objs.pop(place))
    return objs


def damage(draw: st.DrawFn, obj: Json) -> None:
    """Put something else in one place of `obj`, or nothing."""
    places = list(_places(obj))
    if places:
        holder, key = draw(st.sampled_from(places))
        if isinstance(holder, dict) and draw(st.booleans()):
            del holder[key]
        else:
            holder[key] = draw(VALUES)


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *_places(value[key])]]
