"""Odd frames of a Chat stream are written by the book: chunks, finishes, usage, roles."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.translators.chat_streams import (
    DONE,
    EXACT,
    STOP,
    USAGE,
    call,
    calls,
    chunk,
    chunks,
    frame,
    last,
    play,
    watcher,
    wire,
)
from translators.ir import Usage
from translators.profile import Profile

# --- what is written anew --------------------------------------------------------------

A_F = {"index": 0, "id": "a", "type": "function"}
ODD: dict[str, tuple[list[Any], list[Any]]] = {
    "list content": (
        [
            chunk({"content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "p"}]}]}),
            chunk({"content": [{"type": "text", "text": "a"}]}),
        ],
        [chunk({"content": "", "reasoning_content": "p"}), chunk({"content": "a"})],
    ),
    "list content beside a reasoning field": (
        [
            chunk(
                {
                    "reasoning": "p",
                    "content": [{"type": "thinking", "thinking": "p"}, {"type": "refusal", "refusal": "no"}],
                }
            )
        ],
        [chunk({"reasoning": "p", "content": "", "refusal": "no"})],
    ),
    "cited list content": (
        [chunk({"content": [{"type": "text", "text": "a", "citations": [{"url": "u"}]}]})],
        [
            chunk(
                {
                    "content": "a",
                    "annotations": [
                        {
                            "type": "url_citation",
                            "url_citation": {"start_index": 0, "end_index": 0, "title": "", "url": "u"},
                        }
                    ],
                }
            )
        ],
    ),
    "reasoning as an object": (
        [chunk({"reasoning": {"text": "p"}}), chunk({"reasoning": [5]})],
        [chunk({"reasoning": "p"}), chunk({"reasoning": ""})],
    ),
    "content a number": ([chunk({"content": 5})], [chunk({"content": ""})]),
    "role empty": ([chunk({"role": "", "content": "a"})], [chunk({"content": "a"})]),
    "choices null": ([{**chunk(), "choices": None}, chunk({"content": "a"})], [chunk({"content": "a"})]),
    "choice without index": (
        [{**chunk(), "choices": [{"delta": {"content": "a"}}, 5]}],
        [{**chunk(), "choices": [{"index": 0, "delta": {"content": "a"}}]}],
    ),
    "delta null": (
        [{**chunk(), "choices": [{"index": 0, "delta": None}]}],
        [{**chunk(), "choices": [{"index": 0, "delta": {}}]}],
    ),
    "message for delta": (
        [{**chunk(), "choices": [{"index": 0, "message": {"content": "a"}}]}] * 2,
        [{**chunk(), "choices": [{"index": 0, "delta": {"content": "a"}}]}] * 2,
    ),
    "message that sums up": (
        [
            chunk({"content": "a"}),
            {**chunk(), "choices": [{"index": 0, "delta": {}, "message": {"content": "a"}}]},
        ],
        [chunk({"content": "a"}), {**chunk(), "choices": [{"index": 0, "delta": {}}]}],
    ),
    "head missing": (
        [{"choices": chunk({"content": "a"})["choices"]}],
        [chunk({"content": "a"}, id="chatcmpl-0", created=7, model="asked")],
    ),
    "head odd": (
        [
            chunk({"content": "a"}, created=1.5),
            chunk({"content": "b"}, id="c2", object="chat.completion", model=None),
        ],
        [chunk({"content": "a"}), chunk({"content": "b"})],
    ),
    "finish empty": ([chunk({"content": "a"}, "")], [chunk({"content": "a"})]),
    "not JSON": ([b"{", b"17", b"[]", b"", chunk({"content": "a"})], [chunk({"content": "a"})]),
    "usage inside the choice": (
        [{**chunk(), "choices": [{"index": 0, "delta": {}, "usage": {"prompt_tokens": 3}}]}],
        [
            {
                **chunk(),
                "choices": [{"index": 0, "delta": {}}],
                "usage": {
                    "prompt_tokens": 3,
                    "completion_tokens": 0,
                    "total_tokens": 3,
                    "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                    "completion_tokens_details": {"reasoning_tokens": 0},
                },
            }
        ],
    ),
    "usage that tells nothing": ([chunk({"content": "a"}, usage={})], [chunk({"content": "a"}, usage=None)]),
    "call without index": (
        [
            calls({"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"k"'}}),
            calls({"function": {"arguments": ":1}"}}),
        ],
        [calls(call(0, '{"k"', "a", "f")), calls(call(0, ":1}"))],
    ),
    "call without id or type": (
        [calls({"index": 0, "function": {"name": "f", "arguments": "{}"}})],
        [calls(call(0, "{}", "call_0", "f"))],
    ),
    "id and name again": (
        [calls(call(0, "", "a", "f")), calls(call(0, "{", "a", "f")), calls(call(0, "}", "", ""))],
        [calls(call(0, "{", "a", "f")), calls(call(0, "}"))],
    ),
    "name in pieces": (
        [calls(call(0, "", "a", "get_")), calls(call(0, "{}", None, "it"))],
        [calls(call(0, "{}", "a", "get_it"))],
    ),
    "arguments as an object": (
        [calls({**A_F, "function": {"name": "f", "arguments": {"k": 1}}})],
        [calls(call(0, '{"k":1}', "a", "f"))],
    ),
    "arguments again whole": (
        [calls(call(0, '{"k":1}', "a", "f")), calls(call(0, '{"k":1}'))],
        [calls(call(0, '{"k":1}', "a", "f"))],
    ),
    "{} before the arguments": (
        [calls(call(0, "{}", "a", "f")), calls(call(0, '{"k":1}'))],
        [calls(call(0, '{"k":1}', "a", "f"))],
    ),
    "index 0 for all": (
        [calls(call(0, '{"k":1}', "a", "f")), calls(call(0, '{"k":', "b", "g")), calls(call(0, "2}"))],
        [calls(call(0, '{"k":1}', "a", "f")), calls(call(1, '{"k":', "b", "g")), calls(call(1, "2}"))],
    ),
    "indices from 1": (
        [calls(call(1, "{", "a", "f")), calls(call(1, "}"))],
        [calls(call(0, "{", "a", "f")), calls(call(0, "}"))],
    ),
    "calls as one object": (
        [chunk({"tool_calls": call(0, "{}", "a", "f")})],
        [calls(call(0, "{}", "a", "f"))],
    ),
    "text in a held frame": (
        [chunk({"content": "a", "tool_calls": [call(1, "", "a", "f")]}), calls(call(1, "{}"))],
        [chunk({"content": "a"}), calls(call(0, "{}", "a", "f"))],
    ),
    "a signature on a mended call": (
        [
            calls({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "sig": "s"}),
            calls({"sig": "t"}),
        ],
        [calls({**call(0, "{}", "a", "f"), "sig": "t"})],
    ),
    "a signature after a mended call": (
        [
            calls({"id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}),
            calls({"sig": "t"}),
            calls(call(0, "}")),
        ],
        [calls(call(0, "{", "a", "f")), calls({**call(0, ""), "sig": "t"}), calls(call(0, "}"))],
    ),
}


@pytest.mark.parametrize("size", [0, 1, 50])
@pytest.mark.parametrize("name", ODD)
def test_odd_frames_are_written_by_the_book(name: str, size: int) -> None:
    sent, wanted = ODD[name]
    end = last(*sent)
    out, watch = play(wire(*sent, end, "[DONE]"), size=size)
    assert chunks(out)[:-2] == wanted
    assert watch.error is None
    assert chunks(out)[-2:] == [{**end, "id": chunks(out)[0]["id"]}, "[DONE]"]


FINISHES = [
    ("end_turn", "stop"),
    ("max_tokens", "length"),
    ("SAFETY", "content_filter"),
    ("whatever", "stop"),
    ("tool_calls", "stop"),
]


@pytest.mark.parametrize(("told", "wanted"), FINISHES)
def test_finish_reasons(told: str, wanted: str) -> None:
    out, _ = play(wire(chunk({"content": "a"}), chunk({}, told), "[DONE]"))
    assert chunks(out)[1:] == [chunk({}, wanted), "[DONE]"]


def test_stop_over_calls_is_tool_calls() -> None:
    out, _ = play(wire(calls(call(0, "{}", "a", "f")), STOP, "[DONE]"))
    assert chunks(out)[1:] == [chunk({}, "tool_calls"), "[DONE]"]


def test_a_second_finish_is_none() -> None:
    out, _ = play(wire(chunk({"content": "a"}), STOP, STOP, "[DONE]"))
    assert chunks(out)[1:] == [STOP, chunk({}), "[DONE]"]


def test_done_without_finish_gets_one() -> None:
    text = play(wire(chunk({"content": "hi"}), "[DONE]"))[0]
    called = play(wire(calls(call(0, '{"k":1}', "a", "f")), "[DONE]"))[0]
    assert chunks(text)[1:] == [{**STOP, "created": 7}, "[DONE]"]
    assert chunks(called)[1:] == [{**chunk({}, "tool_calls"), "created": 7}, "[DONE]"]


def test_finish_without_done_gets_one() -> None:
    data = wire(chunk({"content": "a"}), STOP)
    out, watch = play(data)
    assert (out, watch.error, watch.ended) == (data + DONE, None, True)


def test_the_last_frame_may_lack_its_blank_line() -> None:
    data = wire(chunk({"content": "a"}), STOP)
    assert play(data[:-2])[0] == data + DONE
    assert play(data + b"data: [DONE]")[0] == data + DONE


# --- usage -----------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [None, EXACT])
def test_the_usage_chunk_goes_to_who_asked(profile: Profile | None) -> None:
    body = wire(chunk({"content": "a"}), STOP)
    data = body + wire(USAGE, "[DONE]")
    for asked, wanted in ((True, data), (False, body + DONE)):
        out, watch = play(data, profile=profile, include_usage=asked)
        assert (out, watch.usage) == (wanted, Usage(3, 2))


def test_choices_null_in_a_usage_chunk() -> None:
    out, watch = play(
        wire(chunk({"content": "a"}), STOP, {**USAGE, "choices": None}, "[DONE]"), include_usage=True
    )
    assert chunks(out)[2] == USAGE
    assert watch.usage == Usage(3, 2)


def test_signs_of_life_are_no_chunks() -> None:
    """Pings are dropped; an empty chunk of the backend's own (Azure) goes to who takes such."""
    filtered = {**USAGE, "usage": None, "prompt_filter_results": []}
    sent = wire({"type": "ping"}, {}, filtered, chunk({"content": "a"}), STOP, "[DONE]")
    assert play(sent, include_usage=True)[0] == wire(filtered, chunk({"content": "a"}), STOP, "[DONE]")
    assert play(sent)[0] == wire(chunk({"content": "a"}), STOP, "[DONE]")


def test_usage_beside_choices_stays() -> None:
    data = wire(chunk({"content": "a"}), chunk({}, "stop", usage=USAGE["usage"]), "[DONE]")
    out, watch = play(data)
    assert (out, watch.usage) == (data, Usage(3, 2))


# --- roles -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "deltas",
    [
        [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}],
        [{"role": "assistant", "content": ""}, *({"role": "assistant", "content": c} for c in 'b"c')],
        [{"content": "a", "role": "assistant"}, *({"content": c, "role": "assistant"} for c in "bc")],
        [{"role": "assistant", "content": "a"}, {"content": "b"}, {"role": "assistant", "content": "c"}],
        [
            {"role": "assistant", "content": '"role"'},
            *[{"role": "assistant", "content": '"role":"assistant",'}] * 2,
        ],
        [{"role": "assistant", "reasoning_content": "a"}, {"role": "assistant", "content": "b"}],
    ],
)
def test_a_role_is_told_once(deltas: list[dict[str, Any]]) -> None:
    watch = watcher()
    got = b"".join(watch.feed(frame(chunk(delta))) for delta in deltas)
    told = [orjson.loads(line[6:])["choices"][0]["delta"] for line in got.splitlines() if line]
    assert [delta.pop("role", None) for delta in told] == ["assistant"] + [None] * (len(deltas) - 1)
    assert told == [{key: text for key, text in delta.items() if key != "role"} for delta in deltas]


def test_each_choice_tells_its_role_once() -> None:
    watch = watcher()
    both = {"choices": [{"index": i, "delta": {"role": "assistant", "content": "x"}} for i in (0, 1)]}
    first = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    got = watch.feed(frame({**first, **both}) * 2)
    assert got.count(b'"role"') == 2


def test_a_role_that_bytes_do_not_tell_is_taken_out_all_the_same() -> None:
    watch = watcher()
    said = chunk({"role": "assistant", "content": "x"})
    odd = frame({"role": 1, **said})
    got = watch.feed(odd) + watch.feed(odd)
    assert got.count(b'"role":"assistant"') == 1
    assert got.count(b'"content":"x"') == 2
