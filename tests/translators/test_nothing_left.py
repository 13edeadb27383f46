"""A conversation of which a Chat backend can be told nothing is refused, in the client's own words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.chat_edits import profile
from translators.chat import ChatBackend
from translators.errors import ProxyError
from translators.ir import Call, Opaque, Shape


@pytest.mark.parametrize(
    ("shape", "items", "param", "told"),
    [
        ("responses", (), "input", "can answer: send a message"),
        (
            "responses",
            (Opaque("responses", {"type": "odd"}, "/input/0"),),
            "input",
            "(input[0]: an item of type odd",
        ),
        ("chat", (), "messages", "`messages` holds nothing"),
    ],
)
def test_it_is_a_400(shape: Shape, items: tuple[Any, ...], param: str, told: str) -> None:
    with pytest.raises(ProxyError) as refused:
        ChatBackend().encode_request(Call(shape=shape, model="m", items=items), profile())
    assert (refused.value.http_status, refused.value.param) == (400, param)
    assert told in refused.value.message
