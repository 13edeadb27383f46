"""Whatever a Chat backend streams, the client gets chunks that its SDK takes, and an end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from tests.laws.odd import odd_objects
from tests.translators.chat_streams import CASES, chunks, play, wire

NOT_IN_THE_SDK = {
    "a custom call": "its chunk type has no custom calls",
    "annotations": "its helper wants an index on every entry of a list it does not know",
    "reasoning details": "the same",
    "logprobs": "tokens without top_logprobs, which it requires",
    "logprobs of thinking": "the same",
    "several choices": "its helper wants choice 0 first",
}


@pytest.mark.parametrize("size", [0, 1, 64])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_official_sdk_takes_every_stream(case: dict[str, Any], size: int) -> None:
    """All odd streams of the decoder's table: legal chunks, one id, calls that add up, an end."""
    data = wire(*case["upstream"])
    out, watch = play(data, size=size)
    assert out == play(data)[0]
    found = chunks(out)
    assert found[-1] == "[DONE]"
    parsed = [obj for obj in found[:-1] if "error" not in obj]
    assert (watch.error is None) == (len(parsed) == len(found) - 1)
    assert len({obj["id"] for obj in parsed}) <= 1
    reasons = [
        c["finish_reason"]
        for obj in parsed
        for c in obj["choices"]
        if c["index"] == 0 and c.get("finish_reason")
    ]
    assert len(reasons) == (watch.error is None)
    if case["id"] not in NOT_IN_THE_SDK:
        accumulate(parsed, whole=reasons in (["stop"], ["tool_calls"]))


def accumulate(parsed: list[Any], whole: bool) -> None:
    state = ChatCompletionStreamState()
    for obj in parsed:
        state.handle_chunk(ChatCompletionChunk.model_validate(obj, strict=True))
    if whole:  # else the helper raises, on purpose
        for one in state.get_final_completion().choices[0].message.tool_calls or []:
            assert one.id
            assert one.function.name


@settings(max_examples=300)
@given(st.data())
def test_whatever_comes_the_client_gets_chunks_and_an_end(data: st.DataObject) -> None:
    sent = data.draw(odd_objects("chat"))
    ends = data.draw(st.sampled_from([(), ("[DONE]",)]))
    out, watch = play(wire(*sent, *ends), size=data.draw(st.integers(1, 99)))
    assert out == play(wire(*sent, *ends))[0]
    *found, last = chunks(out)
    assert last == "[DONE]"
    assert [obj for obj in found if obj.get("error")] == ([] if watch.error is None else found[-1:])
    for obj in found if watch.error is None else found[:-1]:
        assert isinstance(obj["choices"], list)
        assert (isinstance(obj["id"], str), type(obj["created"])) == (True, int)
        assert isinstance(obj["model"], str)
        for choice in obj["choices"]:
            assert isinstance(choice["delta"], dict)
            assert isinstance(choice["delta"].get("content", ""), str | None)
