"""Law 6: between equal shapes, passing and translating agree on what the neutral model models."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from openai import omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.laws.folds import fold_chat_body, fold_responses_body, sse_payloads
from tests.laws.pairs import (
    BACKENDS,
    CLIENTS,
    Style,
    body,
    context,
    ends,
    new_ids,
    objects,
    sse_bytes,
    styles,
    told,
    translate,
    translator,
    understood_body,
)
from tests.laws.profiles import EXAMPLES, NAMES, row
from tests.laws.render_chat import ChatStyle
from tests.laws.render_responses import tells_its_end
from tests.laws.requests import bodies
from tests.laws.scripts import REPLIES, Said, orderly_scripts, scripts
from tests.laws.test_law_round_trip import SHAPES, plain, read
from tests.laws.test_law_split import cut
from translators.chat.watch import ChatWatcher
from translators.chat.watch import tidy_reply as tidy_chat
from translators.errors import ProxyError
from translators.ir import Item, Message, Shape, Text
from translators.profile import Profile
from translators.responses.watch import ResponsesWatcher
from translators.responses.watch import tidy_reply as tidy_responses
from translators.translate import translate_request

Json = dict[str, Any]


def passed(shape: Shape, request: Json, profile: Profile) -> Json | ProxyError:
    try:
        return BACKENDS[shape].edit_request(request, profile).body
    except ProxyError as error:
        return error


def translated(shape: Shape, request: Json, profile: Profile) -> Json | ProxyError:
    call = CLIENTS[shape].decode_request(request, new_ids())
    try:
        return translate_request(call, CLIENTS[shape], BACKENDS[shape], profile).encoded.body
    except ProxyError as error:
        return error


_NUDGE = re.compile(r"\s*Respond with a JSON object\.$")


def asked(shape: Shape, request: Json) -> Any:
    """What a backend's body asks, read as a client's.

    `any` is some backends' word for `required`; how a sentence of ours is joined to the
    client's text depends on whether that was a string or a part.
    """
    choice = "required" if request.get("tool_choice") == "any" else request.get("tool_choice")
    call = read(shape, {**request, "tool_choice": choice})
    return plain(replace(call, items=tuple(_unnudged(item) for item in call.items)))


def _unnudged(item: Item) -> Item:
    if not isinstance(item, Message):
        return item
    told = tuple(
        replace(part, text=_NUDGE.sub(" ...", part.text)) if isinstance(part, Text) else part
        for part in item.parts
    )
    return replace(item, parts=told)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=EXAMPLES)
@given(name=st.sampled_from(NAMES), data=st.data())
def test_a_request_reaches_the_backend_alike(shape: Shape, name: str, data: st.DataObject) -> None:
    request, profile = data.draw(bodies(shape)), row(name, shape)
    assume(BACKENDS[shape].passes(request, profile))
    one, other = passed(shape, request, profile), translated(shape, request, profile)
    if isinstance(one, ProxyError) or isinstance(other, ProxyError):
        assert isinstance(one, ProxyError)
        assert isinstance(other, ProxyError)
        assert (one.param, one.http_status) == (other.param, other.http_status)
        return
    assert asked(shape, other) == asked(shape, one)


# --- replies ---------------------------------------------------------------------------


def sdk_chat(out: bytes) -> Said:
    """What the SDK's accumulator makes of a Chat stream, ours or a passed one."""
    state = ChatCompletionStreamState()
    usage = None
    for payload in sse_payloads(out)[:-1]:
        chunk = json.loads(payload)
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk))
        usage = chunk.get("usage") or usage
    (choice,) = state.current_completion_snapshot.to_dict(mode="json")["choices"]
    message = choice["message"]
    thought = message.pop("reasoning", None)
    message = {**message, "reasoning_content": message.get("reasoning_content") or thought}
    return fold_chat_body({"choices": [{**choice, "message": message}], "usage": usage})


def sdk_responses(out: bytes) -> Said:
    """What the SDK's accumulator makes of a Responses stream, ours or a passed one."""
    state: ResponseStreamState[Any] = ResponseStreamState(text_format=omit, input_tools=omit)
    events = [json.loads(payload) for payload in sse_payloads(out) if payload != b"[DONE]"]
    for event in events:
        state.handle_event(EVENTS.validate_python(event))
    return fold_responses_body(events[-1]["response"])


EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
WATCHERS = {"chat": ChatWatcher, "responses": ResponsesWatcher}
TIDY = {"chat": tidy_chat, "responses": tidy_responses}
READERS = {"chat": sdk_chat, "responses": sdk_responses}


def passes(style: Style) -> bool:
    """Whether a passed stream in this style can be read by a client at all.

    Tags are a backend's own text, parts that are never opened nobody may take for another's.
    """
    if isinstance(style, ChatStyle):
        return style.thought != "tags"
    return style.events != "no parts" and style.output == "full"


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_watched_stream_says_what_a_translated_one_says(shape: Shape, data: st.DataObject) -> None:
    script, style = data.draw(REPLIES), data.draw(styles(shape).filter(passes))
    upstream = sse_bytes(objects(script, style), style.done)
    places = data.draw(st.lists(st.integers(0, 5000), max_size=4))
    watcher = WATCHERS[shape](Profile(), context())
    out = b"".join([watcher.feed(piece) for piece in cut(upstream, places)]) + watcher.close()
    assert watcher.error is None
    assert READERS[shape](out) == READERS[shape](translate(shape, shape, [upstream])) == told(script, style)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_a_cut_stream_fails_in_both_lanes(shape: Shape, data: st.DataObject) -> None:
    script, style = data.draw(REPLIES), data.draw(styles(shape).filter(passes).filter(tells_its_end))
    objs = objects(script, style)
    end = next(i for i, obj in enumerate(objs) if ends(obj))
    upstream = sse_bytes(objs[: data.draw(st.integers(0, end))], done=False)
    watcher = WATCHERS[shape](Profile(), context())
    assert watcher.feed(upstream) + watcher.close()
    machine = translator(shape, shape)
    assert machine.feed(upstream) + machine.close()
    assert watcher.error is not None
    assert machine.error is not None


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_a_passed_body_says_what_a_translated_one_says(shape: Shape, data: st.DataObject) -> None:
    script = data.draw(orderly_scripts() if shape == "chat" else scripts())
    style = ChatStyle() if shape == "chat" else data.draw(styles(shape))
    tidied = TIDY[shape](body(script, style), Profile())[0]
    assert understood_body(shape, tidied) == told(script, style)
