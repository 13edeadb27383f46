"""The short way for what needs no edit gives what the long one gives."""

from __future__ import annotations

import copy
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.profiles import EXAMPLES
from tests.translators.chat_edit_profiles import PROFILES, Json
from tests.translators.chat_edits import profile
from translators.chat import edit_arrange, edit_messages
from translators.chat.edit import edit_request
from translators.chat.edit_messages import _is_plain
from translators.dialect import Encoded
from translators.errors import ProxyError

_ROLES = ("system", "developer", "user", "assistant", "tool")
_content = st.sampled_from(
    ["hi", "", " ", "\u2003", "\x1c", " hi ", None, ["x"], [{"type": "text", "text": "hi"}]]
)
_message = st.fixed_dictionaries(
    {"role": st.sampled_from(_ROLES), "content": _content},
    optional={
        "tool_call_id": st.sampled_from(["c1", "", None, 1]),
        "name": st.sampled_from(["joe", None]),
        "tool_calls": st.just(
            [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
        ),
    },
)


def _edited(body: Json, name: str) -> Encoded | str:
    try:
        return edit_request(copy.deepcopy(body), profile(**PROFILES[name]))
    except ProxyError as error:
        return str(error)


@given(messages=st.lists(_message, max_size=5), name=st.sampled_from(sorted(PROFILES)))
@settings(max_examples=EXAMPLES)
def test_the_short_way_gives_what_the_long_one_gives(messages: list[Json], name: str) -> None:
    body: Json = {"model": "m", "messages": messages}
    short = _edited(body, name)
    with (
        patch.object(edit_messages, "_is_plain", lambda message: False),
        patch.object(edit_arrange, "_bears_ids", lambda message: True),
    ):
        long = _edited(body, name)
    assert short == long


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ({"role": "user", "content": "hi"}, True),
        ({"role": "system", "content": " hi"}, True),
        ({"role": "tool", "tool_call_id": "c", "content": "hi"}, True),
        ({"role": "tool", "tool_call_id": None, "content": "hi"}, False),
        ({"role": "tool", "content": "hi"}, False),
        ({"role": "assistant", "content": "hi"}, False),
        ({"role": "user", "content": "hi", "name": "joe"}, False),
        ({"role": "user", "content": ""}, False),
        ({"role": "user", "content": "\n"}, False),
        ({"role": "user", "content": []}, False),
        ({"role": ["user"], "content": "hi"}, False),
        ("hi", False),
    ],
)
def test_plain_is_a_text_and_nothing_else(message: object, plain: bool) -> None:
    assert _is_plain(message) is plain
