"""Law 7: a request written and read again is the same request, and an edit done twice is done once."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.pairs import BACKENDS, CLIENTS, new_ids
from tests.laws.profiles import EXACT, EXAMPLES, NAMES, row
from tests.laws.requests import bodies
from translators.errors import ProxyError
from translators.ir import Call, Image, Item, Message, Part, Shape, Text, Tool, ToolCall, ToolResult
from translators.params import idle

SHAPES: tuple[Shape, ...] = ("chat", "responses")
_PLACE = ("at", "id", "include_usage", "places")
"""Not what a call asks: places, ids, and the usage that is asked for in any case."""


def plain(value: Any) -> Any:
    """A call as nested tuples and dicts, without the places where things stood in a body."""
    if isinstance(value, list | tuple):
        return tuple(plain(entry) for entry in value)
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if hasattr(value, "__slots__"):
        fields = {name: getattr(value, name) for name in value.__slots__ if name not in _PLACE}
        return {type(value).__name__: {name: plain(inner) for name, inner in fields.items()}}
    return value


def read(shape: Shape, body: dict[str, Any]) -> Call:
    """The request as decoded, but for differences without a meaning.

    Those are values that say what their absence says, and one text cut into parts.
    """
    call = CLIENTS[shape].decode_request(body, new_ids())
    params = {name: value for name, value in call.params.items() if not idle(name, value)}
    return replace(call, params=params, items=tuple(_settled(item) for item in call.items))


def _settled(item: Item) -> Item:
    if not isinstance(item, Message):
        return item
    texts = [part.text for part in item.parts if isinstance(part, Text)]
    if len(texts) == len(item.parts):
        return replace(item, parts=(Text("".join(texts)),))
    return replace(item, parts=tuple(_told(part) for part in item.parts))


def _told(part: Part) -> Part:
    """`auto` is what an image without a detail has."""
    return replace(part, detail=None) if isinstance(part, Image) and part.detail == "auto" else part


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_decode_encode_decode(shape: Shape, data: st.DataObject) -> None:
    call = read(shape, data.draw(bodies(shape, custom=data.draw(st.booleans()))))
    again = read(shape, BACKENDS[shape].encode_request(call, EXACT).body)
    assert plain(again) == plain(call)


def conversation(call: Call) -> list[Any]:
    """What both shapes can say: who said what, which tools were called, what they answered.

    Leading system messages are one text: Responses has one place for them, `instructions`.
    """
    said: list[Any] = []
    lead: list[str] = []
    for item in call.items:
        if isinstance(item, Message):
            if item.role in ("system", "developer") and not said:
                lead += [part.text for part in item.parts if isinstance(part, Text)]
            else:
                role = "system" if item.role == "developer" else item.role
                said.append((role, plain(item.parts)))
        elif isinstance(item, ToolCall):
            said.append(("call", item.call_id, item.name, item.arguments))
        elif isinstance(item, ToolResult):
            said.append(("result", item.call_id, plain(item.parts)))
    return ["\n\n".join(lead), *said]


def offered(call: Call) -> list[Any]:
    """The tools; not to be strict is what a Chat tool is that does not say."""
    return [plain(replace(tool, strict=bool(tool.strict))) for tool in call.tools if isinstance(tool, Tool)]


COMMON = ("temperature", "top_p", "effort", "verbosity", "format", "max_tokens", "parallel_tool_calls")


@pytest.mark.parametrize(("client", "backend"), [("chat", "responses"), ("responses", "chat")])
@given(data=st.data())
def test_across_the_shapes(client: Shape, backend: Shape, data: st.DataObject) -> None:
    body = data.draw(bodies(client))
    body = {key: value for key, value in body.items() if key not in ("metadata", "store", "service_tier")}
    call = read(client, body)
    try:
        encoded = BACKENDS[backend].encode_request(call, EXACT)
    except ProxyError as error:
        assert error.param is not None  # noqa: PT017 - a part the other shape has no form for
        return
    again = read(backend, encoded.body)
    assert conversation(again) == conversation(call)
    assert offered(again) == offered(call)
    kept = {name: again.params[name] for name in COMMON if name in again.params}
    assert kept == {name: call.params[name] for name in COMMON if name in call.params}


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=EXAMPLES)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_an_edit_is_idempotent_and_leaves_its_input_alone(
    shape: Shape, name: str, data: st.DataObject
) -> None:
    body, profile = data.draw(bodies(shape, custom=data.draw(st.booleans()))), row(name, shape)
    kept = copy.deepcopy(body)
    try:
        once = BACKENDS[shape].edit_request(body, profile)
    except ProxyError as error:
        assert error.http_status == 400  # noqa: PT017 - what the backend cannot be asked
        return
    assert body == kept
    assert once.changed == (once.body != body)
    twice = BACKENDS[shape].edit_request(once.body, profile)
    assert (twice.body, twice.changed, twice.losses) == (once.body, False, [])
