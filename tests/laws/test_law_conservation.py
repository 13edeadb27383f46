"""Law 4: what the backend said is what the client is told, no more and no less.

The script is the truth; the folds that read our bytes share no code with the product and
check on the way that deltas add up to the wholes.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.folds import Failure
from tests.laws.pairs import (
    PAIRS,
    body,
    ends,
    objects,
    plain_reply,
    sse_bytes,
    styles,
    told,
    translate,
    understood,
    understood_body,
)
from tests.laws.render_chat import ChatStyle
from tests.laws.render_responses import tells_its_end
from tests.laws.scripts import REPLIES, orderly_scripts, scripts
from translators.ir import Shape

ERRORS = {
    "chat": [
        {"error": {"message": "boom", "type": "server_error", "code": 500}},
        {"error": {"message": "boom"}, "choices": []},
        {"error_code": "INTERNAL_ERROR", "message": "boom"},
    ],
    "responses": [
        {"type": "error", "message": "boom", "code": "server_error", "param": None},
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "x", "message": "boom"}},
        },
        {"error": {"message": "boom", "type": "server_error"}},
    ],
}


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_a_streamed_reply_says_the_same(client: Shape, backend: Shape, data: st.DataObject) -> None:
    script, style = data.draw(REPLIES), data.draw(styles(backend))
    out = translate(client, backend, [sse_bytes(objects(script, style), style.done)])
    assert understood(client, out) == told(script, style)


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_a_plain_reply_says_the_same(client: Shape, backend: Shape, data: st.DataObject) -> None:
    script = data.draw(orderly_scripts() if backend == "chat" else scripts())
    style = ChatStyle() if backend == "chat" else data.draw(styles(backend))
    reply = plain_reply(client, backend, body(script, style))
    assert understood_body(client, reply) == told(script, style)


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_a_cut_reply_fails_and_keeps_its_text(client: Shape, backend: Shape, data: st.DataObject) -> None:
    script, style = data.draw(REPLIES), data.draw(styles(backend).filter(tells_its_end))
    objs = objects(script, style)
    end = next(i for i, obj in enumerate(objs) if ends(obj))
    kept = data.draw(st.integers(0, end))
    result = understood(client, translate(client, backend, [sse_bytes(objs[:kept], done=False)]))
    assert isinstance(result, Failure)
    if isinstance(style, ChatStyle) and style.thought == "tags":
        return  # half a tag may have been text
    whole = told(script, style).text
    assert whole.startswith(result.text)
    all_told = kept == end and not (isinstance(style, ChatStyle) and style.finish_delta == "last")
    # On the Responses wire text behind a call waits for the call, which waits for the end.
    if all_told and not (client == "responses" and script.calls):
        assert result.text == whole


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_an_error_in_the_stream_is_the_end(client: Shape, backend: Shape, data: st.DataObject) -> None:
    script, style = data.draw(REPLIES), data.draw(styles(backend))
    objs = objects(script, style)
    end = next(i for i, obj in enumerate(objs) if ends(obj))
    place = data.draw(st.integers(0, end))
    broken = [*objs[:place], data.draw(st.sampled_from(ERRORS[backend])), *objs[place:]]
    result = understood(client, translate(client, backend, [sse_bytes(broken)]))
    assert isinstance(result, Failure)
    assert "boom" in result.message
