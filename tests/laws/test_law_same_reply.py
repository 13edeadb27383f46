"""Law 5: the plain reply and the fold of the stream are one and the same body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.pairs import (
    BACKENDS,
    CLIENTS,
    PAIRS,
    body,
    call,
    context,
    objects,
    plain_reply,
    sse_bytes,
    styles,
)
from tests.laws.render_chat import ChatStyle
from tests.laws.scripts import orderly_scripts, scripts
from translators.ir import Shape
from translators.profile import Profile
from translators.stream import StreamTranslator

Json = dict[str, Any]


_TOLD_APART = ("id", "created", "created_at")
"""How many ids were minted before differs between the two ways, and the time may come too late."""


def nameless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: nameless(inner) for key, inner in value.items() if key not in _TOLD_APART}
    return [nameless(inner) for inner in value] if isinstance(value, list) else value


def streamed_body(client: Shape, backend: Shape, data: bytes) -> Json:
    encoder = CLIENTS[client].encoder(call(client), context())
    machine = StreamTranslator(BACKENDS[backend].decoder(Profile()), encoder)
    machine.feed(data)
    machine.close()
    return encoder.body()


@pytest.mark.parametrize(("client", "backend"), PAIRS)
@given(data=st.data())
def test_streamed_or_not_the_body_is_the_same(client: Shape, backend: Shape, data: st.DataObject) -> None:
    script = data.draw(orderly_scripts() if backend == "chat" else scripts())
    style = ChatStyle() if backend == "chat" else data.draw(styles(backend))
    streamed = streamed_body(client, backend, sse_bytes(objects(script, style)))
    plain = plain_reply(client, backend, body(script, style))
    assert nameless(streamed) == nameless(plain)
