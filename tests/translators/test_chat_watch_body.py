"""Chat bodies that pass: a good one is the same object, an odd one is mended."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.odd import damage
from tests.translators.chat_streams import USAGE
from translators.chat.watch import tidy_reply
from translators.errors import ProxyError
from translators.ir import Usage
from translators.profile import Profile


def body(message: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **more}


def said(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def entry(ident: Any = "a", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": ident, "type": "function", "function": {"name": "f", "arguments": arguments}, **more}


GOOD = [
    body(said("a"), usage=USAGE["usage"]),
    body(said("<think>x</think>a", reasoning_content="r")),
    body(said(None, tool_calls=[entry(), entry("b")]), "tool_calls"),
    body(
        said(None, tool_calls=[{"id": "a", "type": "custom", "custom": {"name": "p", "input": "x"}}]),
        "tool_calls",
    ),
    body(said(None, function_call={"name": "f", "arguments": "{}"}), "function_call"),
    body(said("a", tool_calls=[]), "length"),
]


@pytest.mark.parametrize("good", GOOD, ids=str)
def test_a_good_body_is_the_same_object(good: dict[str, Any]) -> None:
    before = orjson.dumps(good)
    assert tidy_reply(good, Profile())[0] is good
    assert orjson.dumps(good) == before


CITED = {
    "type": "url_citation",
    "url_citation": {"url": "u", "title": "", "start_index": 0, "end_index": 0},
}
PLAN = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "plan", "signature": "s"}]}
ODD_BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "list content": (
        body(said([PLAN, {"type": "text", "text": "Hello"}])),
        body(said("Hello", reasoning_content="plan")),
    ),
    "role missing": (body({"content": "a"}), body(said("a"))),
    "role odd": (body({"role": "model", "content": "a"}), body(said("a"))),
    "content missing": (
        body({"role": "assistant", "tool_calls": [entry()]}, "tool_calls"),
        body(said(None, tool_calls=[entry()]), "tool_calls"),
    ),
    "delta for message": (
        {**body(said("a")), "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]},
        body(said("a")),
    ),
    "no message": ({**body(said("a")), "choices": [{"finish_reason": "stop"}]}, body(said(None))),
    "head odd": (body(said("a"), object="x", created=1.5, model=None), body(said("a"), model="")),
    "created missing": (
        {k: v for k, v in body(said("a")).items() if k != "created"},
        body(said("a"), created=0),
    ),
    "finish odd": (body(said("a"), "end_turn"), body(said("a"))),
    "finish missing": (body(said("a"), None), body(said("a"))),
    "finish empty over calls": (
        body(said(None, tool_calls=[entry()]), ""),
        body(said(None, tool_calls=[entry()]), "tool_calls"),
    ),
    "arguments as an object": (
        body(said(None, tool_calls=[entry(arguments={"k": 1})]), "tool_calls"),
        body(said(None, tool_calls=[entry(arguments='{"k":1}')]), "tool_calls"),
    ),
    "arguments null": (
        body(said(None, tool_calls=[entry(arguments=None)]), "tool_calls"),
        body(said(None, tool_calls=[entry()]), "tool_calls"),
    ),
    "type missing, signature kept": (
        body(
            said(None, tool_calls=[{"id": "a", "function": {"name": "f", "arguments": "{}"}, "sig": "s"}, 5]),
            "tool_calls",
        ),
        body(said(None, tool_calls=[entry(sig="s")]), "tool_calls"),
    ),
    "citations as Responses has them": (
        body(said("a", annotations=[{"type": "url_citation", "url": "u"}, 4])),
        body(said("a", annotations=[CITED])),
    ),
    "one citation, no list": (
        body(said("a", annotations={"type": "url_citation", "url_citation": {"url": "u"}})),
        body(said("a", annotations=[CITED])),
    ),
    "one call, no list": (
        body(said(None, tool_calls=entry()), "tool_calls"),
        body(said(None, tool_calls=[entry()]), "tool_calls"),
    ),
}


@pytest.mark.parametrize("name", ODD_BODIES)
def test_odd_bodies_are_written_by_the_book(name: str) -> None:
    sent, wanted = ODD_BODIES[name]
    assert tidy_reply(sent, Profile())[0] == wanted


def test_usage_of_a_body() -> None:
    assert tidy_reply(body(said("a"), usage={"prompt_tokens": "3"}), Profile())[1] == Usage(3, 0)
    tidy, usage = tidy_reply(body(said("a"), usage={"prompt_tokens": "3"}), Profile())
    assert usage == Usage(3, 0)
    assert tidy["usage"]["total_tokens"] == 3
    assert tidy_reply(body(said("a")), Profile())[1] is None
    tidy, usage = tidy_reply(body(said("a"), usage={}), Profile())
    assert ("usage" in tidy, usage) == (False, None)


@pytest.mark.parametrize("idents", [("", ""), (None, None), ("f", "f"), (5, 5)])
def test_calls_without_ids_of_their_own_get_some(idents: tuple[Any, Any]) -> None:
    sent = body(said(None, tool_calls=[entry(ident) for ident in idents]), "tool_calls")
    given = [c["id"] for c in tidy_reply(sent, Profile())[0]["choices"][0]["message"]["tool_calls"]]
    assert len(set(given)) == 2
    assert all(isinstance(ident, str) and ident for ident in given)


def test_a_body_without_id_gets_one_made_of_it() -> None:
    first, second = (tidy_reply(body(said(text), id=None), Profile())[0]["id"] for text in "ab")
    assert first.startswith("chatcmpl-")
    assert first != second


BAD_BODIES = [
    ({"error": {"message": "quota", "code": 429}}, "quota", 502),
    ({"error": {"message": "maximum context length is 5 tokens"}}, "context", 400),
    ({"id": "c1", "choices": []}, "no choices", 502),
    ({"id": "c1"}, "no choices", 502),
    (body(said("a"), "error"), "finish_reason 'error'", 502),
    (body(said(None, tool_calls=[{"id": "a"}])), "without a name", 502),
]


@settings(max_examples=300)
@given(st.data())
def test_whatever_a_body_is_it_is_mended_or_a_failure(data: st.DataObject) -> None:
    sent = data.draw(st.sampled_from(GOOD).map(copy.deepcopy))
    damage(data.draw, sent)
    try:
        tidy, _ = tidy_reply(sent, Profile())
    except ProxyError:
        return
    assert isinstance(tidy["id"], str)
    for choice in tidy["choices"]:
        assert isinstance(choice["finish_reason"], str)
        assert isinstance(choice["message"]["content"], str | None)
    again = orjson.loads(orjson.dumps(tidy))
    assert tidy_reply(again, Profile())[0] is again


@pytest.mark.parametrize(("sent", "words", "status"), BAD_BODIES, ids=str)
def test_bodies_that_are_failures(sent: dict[str, Any], words: str, status: int) -> None:
    with pytest.raises(ProxyError, match=words) as raised:
        tidy_reply(sent, Profile())
    assert raised.value.http_status == status
