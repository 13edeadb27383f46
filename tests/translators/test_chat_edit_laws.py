"""Laws of `edit_request`: twice is once, every call is answered, and nothing else is raised."""

from __future__ import annotations

import copy

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.translators.chat_edit_profiles import CUSTOM, FUNCTION, PROFILES, SCHEMA, Json
from tests.translators.chat_edits import USER, profile
from translators.chat.edit import edit_request, passes
from translators.errors import ProxyError

_ids = st.sampled_from(["a", "b", "c" * 70, ""])
_texts = st.sampled_from(["", " ", "x", "say json"])
_parts = st.lists(
    st.sampled_from(
        [
            {"type": "text", "text": "t"},
            {"type": "text", "text": ""},
            {"type": "text", "text": "m", "cache_control": {}},
            {"type": "image_url", "image_url": {"url": "data:,"}},
            {"type": "thinking", "thinking": "w"},
            {"type": "refusal", "refusal": "no"},
        ]
    ),
    max_size=3,
)
_content = st.one_of(st.none(), _texts, _parts)
_call = st.fixed_dictionaries(
    {
        "id": _ids,
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {"name": st.just("f"), "arguments": st.sampled_from(["", "{}", "{", {"x": 1}])}
        ),
    }
)
_optional = {
    "name": st.just("n"),
    "reasoning_content": _texts,
    "reasoning": _texts,
    "refusal": st.one_of(st.none(), _texts),
    "tool_calls": st.lists(_call, max_size=3),
}
_message = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "developer", "user", "reasoning"]), "content": _content}
    ),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": _content}, optional=_optional),
    st.fixed_dictionaries({"role": st.just("tool"), "content": _content, "tool_call_id": _ids}),
)
_tool = st.sampled_from(
    [
        FUNCTION,
        {"type": "function", "name": "flat", "strict": True},
        {
            "type": "function",
            "function": {"name": "g", "strict": None, "parameters": {"oneOf": [{"$ref": "#"}]}},
        },
        CUSTOM,
    ]
)
_body = st.fixed_dictionaries(
    {"model": st.just("m"), "messages": st.lists(_message, max_size=7).map(lambda drawn: [USER, *drawn])},
    optional={
        "tools": st.lists(_tool, max_size=3, unique_by=str),
        "tool_choice": st.sampled_from(["auto", "none", "required", "any", None]),
        "parallel_tool_calls": st.booleans(),
        "response_format": st.sampled_from([{"type": "json_object"}, SCHEMA, {"type": "text"}, None]),
        "reasoning_effort": st.sampled_from(["none", "minimal", "xhigh", "?", None]),
        "reasoning": st.sampled_from([{"effort": "low"}, {"effort": "high", "exclude": True}]),
        "stream": st.sampled_from([True, False, None]),
        "stream_options": st.sampled_from([{"include_usage": False}, None]),
        "max_tokens": st.sampled_from([5, 50000, None]),
        "max_completion_tokens": st.just(7),
        "temperature": st.just(0.5),
        "seed": st.just(3),
        "odd": st.just({"x": 1}),
    },
)


_CALLS = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
_TWO_TURNS = [{"role": "assistant", "content": said, "tool_calls": _CALLS} for said in (None, "")]


@settings(max_examples=150, deadline=None)
@given(body=_body, name=st.sampled_from(sorted(PROFILES)))
@example(body={"model": "m", "messages": [USER, *_TWO_TURNS]}, name="oss")
def test_a_second_edit_finds_nothing_and_the_input_is_never_touched(body: Json, name: str) -> None:
    rules = profile(**PROFILES[name])
    before = copy.deepcopy(body)
    try:
        edited = edit_request(body, rules)
    except ProxyError:  # a choice of a tool that is not there
        return
    assert body == before
    assert edited.changed == (edited.body != body)
    again = edit_request(edited.body, rules)
    assert (again.body, again.repairs) == (edited.body, [])
    assert not again.changed


@settings(max_examples=150, deadline=None)
@given(body=_body, name=st.sampled_from([name for name in PROFILES if name != "openai"]))
def test_every_call_is_answered_right_after_it(body: Json, name: str) -> None:
    try:
        messages = edit_request(body, profile(**PROFILES[name])).body["messages"]
    except ProxyError:
        return
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        assert len(waiting) == len(set(waiting))
        assert seen.isdisjoint(waiting)
        seen.update(waiting)
        assert message["role"] in ("system", "user", "assistant")
        assert message.get("content") is not None or message.get("tool_calls")
    assert waiting == []


_leaf = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "function", "text", "#"])
)
_key = st.sampled_from(
    [
        *("role", "content", "type", "text", "function", "custom", "name", "id", "parameters"),
        *("allowed_tools", "tools", "effort", "anyOf", "$ref", "properties", "required"),
        *("image_url", "refusal", "json_schema", "summary"),
    ]
)
_junk = st.recursive(
    _leaf,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_key, inner, max_size=4)),
    max_leaves=10,
)
_odd_message = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "odd"])},
    optional=dict.fromkeys(
        ["content", "tool_calls", "tool_call_id", "name", "reasoning", "refusal", "function_call"], _junk
    ),
)
_odd_tool = st.fixed_dictionaries(
    {"type": st.sampled_from(["function", "custom", "odd"])},
    optional=dict.fromkeys(["function", "custom", "name", "parameters"], _junk),
)
_odd_body = st.fixed_dictionaries(
    {"messages": st.one_of(_junk, st.lists(st.one_of(_junk, _odd_message), max_size=4))},
    optional={
        "tools": st.one_of(_junk, st.lists(_odd_tool, max_size=3)),
        **dict.fromkeys(
            ["tool_choice", "response_format", "reasoning_effort", "reasoning", "thinking", "stream"], _junk
        ),
        **dict.fromkeys(["stream_options", "max_tokens", "temperature", "n", "parallel_tool_calls"], _junk),
    },
)


@settings(max_examples=200, deadline=None)
@given(body=_odd_body, name=st.sampled_from(sorted(PROFILES)))
def test_whatever_a_client_sends_is_edited_or_refused(body: Json, name: str) -> None:
    rules = profile(**PROFILES[name])
    passes(body, rules)
    try:
        edit_request(body, rules)
    except ProxyError as error:
        status = error.http_status
        assert status == 400
