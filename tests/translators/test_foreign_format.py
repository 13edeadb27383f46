"""An output format that only its own wire knows is never sent as if another wire knew it."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from translators.chat import ChatBackend, ChatClient
from translators.dialect import BackendDialect, ClientDialect
from translators.errors import ProxyError
from translators.profile import Profile
from translators.responses import ResponsesBackend, ResponsesClient
from translators.translate import translate_request

GRAMMAR = {"type": "grammar", "grammar": "root ::= 'a'"}
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("client", "backend", "body", "param"),
    [
        (ChatClient(), ResponsesBackend(), {**CHAT, "response_format": GRAMMAR}, "response_format"),
        (
            ResponsesClient(),
            ChatBackend(),
            {"model": "m", "input": "x", "text": {"format": GRAMMAR}},
            "text.format",
        ),
    ],
)
def test_refused_between_shapes(
    client: ClientDialect, backend: BackendDialect, body: Any, param: str
) -> None:
    ids = count()
    call = client.decode_request(body, lambda prefix: f"{prefix}{next(ids)}")
    with pytest.raises(ProxyError, match="grammar") as refused:
        translate_request(call, client, backend, Profile())
    assert (refused.value.http_status, refused.value.param) == (400, param)


def test_kept_on_its_own_wire() -> None:
    call = ChatClient().decode_request({**CHAT, "response_format": GRAMMAR}, str)
    sent = translate_request(call, ChatClient(), ChatBackend(), Profile()).encoded.body
    assert sent["response_format"] == GRAMMAR
