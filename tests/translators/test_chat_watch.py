"""The pass lane: what is well formed keeps its bytes, what is odd is written by the book."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from tests.laws.odd import damage, odd_objects
from translators.chat.watch import ChatWatcher, tidy_reply
from translators.dialect import ReplyContext
from translators.errors import ProxyError
from translators.ir import Usage
from translators.profile import AnswerRules, Profile

DONE = b"data: [DONE]\n\n"
EXACT = Profile(answer=AnswerRules(exact=True))
CASES = json.loads((Path(__file__).parent.parent / "cases" / "chat_streams.json").read_text())


def watcher(profile: Profile | None = None, include_usage: bool = False) -> ChatWatcher:
    numbers = itertools.count()
    context = ReplyContext(
        created=7, model="asked", new_id=lambda p: f"{p}{next(numbers)}", include_usage=include_usage
    )
    return ChatWatcher(profile or Profile(), context)


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


def calls(*entries: Any, finish: Any = None) -> dict[str, Any]:
    return chunk({"tool_calls": list(entries)}, finish)


def call(
    index: int, arguments: str | None, ident: str | None = None, name: str | None = None
) -> dict[str, Any]:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    head = {"index": index} if ident is None else {"index": index, "id": ident, "type": "function"}
    return {**head, "function": function}


USAGE = {**chunk(usage={"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}), "choices": []}
STOP = chunk({}, "stop")


def frame(obj: Any, newline: bytes = b"\n", prefix: bytes = b"data: ") -> bytes:
    data = obj if isinstance(obj, bytes) else orjson.dumps(obj)
    return prefix + data + newline * 2


def wire(*objs: Any, **form: bytes) -> bytes:
    return b"".join(frame(b"[DONE]" if obj == "[DONE]" else obj, **form) for obj in objs)


def play(data: bytes, *, size: int = 0, close: bool = True, **how: Any) -> tuple[bytes, ChatWatcher]:
    watch = watcher(**how)
    size = size or max(1, len(data))
    out = b"".join(watch.feed(data[at : at + size]) for at in range(0, len(data), size))
    return out + (watch.close() if close else b""), watch


def chunks(data: bytes) -> list[Any]:
    """The parsed data of every frame; `[DONE]` as that."""
    found = [line[6:] for line in data.split(b"\n") if line.startswith(b"data: ")]
    return [text.decode() if text == b"[DONE]" else orjson.loads(text) for text in found]


# --- what keeps its bytes --------------------------------------------------------------

WELL_FORMED: dict[str, tuple[Any, ...]] = {
    "text": (
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "He"}),
        chunk({"content": 'l"\\\\lo\n'}),
        STOP,
    ),
    "text with the same frames over and over": (chunk({"content": "a"}),) * 5
    + (chunk({"content": "\\"}), STOP),
    "reasoning": (
        chunk({"reasoning_content": "hm"}),
        chunk({"reasoning_content": "mh"}),
        chunk({"content": "a"}),
        STOP,
    ),
    "think tags": (chunk({"content": "<think>a"}), chunk({"content": "</think>b"}), STOP),
    "refusal": (chunk({"refusal": "no"}), STOP),
    "length": (chunk({"content": "a"}), chunk({}, "length")),
    "keys nobody knows": (chunk({"content": "a", "x": [1]}, provider="p", timings={"t": 1.5}), STOP),
    "several choices": (
        {
            **chunk(),
            "choices": [{"index": i, "delta": {"content": "a"}, "finish_reason": None} for i in (0, 1)],
        },
        {**chunk(), "choices": [{"index": i, "delta": {}, "finish_reason": "stop"} for i in (0, 1)]},
    ),
    "calls": (
        calls(call(0, "", "a", "f")),
        calls(call(0, '{"k')),
        calls(call(0, '":"')),
        calls(call(0, 'x\\"y')),
        calls(call(0, '"}')),
        calls(call(1, "{}", "b", "g")),
        calls(call(2, None, "c", "h")),
        calls(call(2, "{}")),
        chunk({}, "tool_calls"),
    ),
    "a call whole with its finish": (calls(call(0, "{}", "a", "f"), finish="tool_calls"),),
    "calls in one delta": (
        calls(call(0, "{}", "a", "f"), call(1, '{"a":1}', "b", "g")),
        chunk({}, "tool_calls"),
    ),
    "a call with a signature": (
        calls({**call(0, "{}", "a", "f"), "extra_content": {"google": {"thought_signature": "s"}}}),
        calls({"index": 0, "function": {"arguments": ""}, "extra_content": {"more": 1}}),
        chunk({}, "tool_calls"),
    ),
    "a custom call": (
        calls({"index": 0, "id": "a", "type": "custom", "custom": {"name": "patch", "input": ""}}),
        calls({"index": 0, "custom": {"input": "{x"}}),
        chunk({}, "tool_calls"),
    ),
    "function_call of old": (
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": "{}"}}),
        chunk({}, "function_call"),
    ),
}
FORMS: list[dict[str, bytes]] = [{}, {"newline": b"\r\n"}, {"newline": b"\r"}, {"prefix": b": hi\ndata:"}]


@pytest.mark.parametrize("form", FORMS, ids=["LF", "CRLF", "CR", "comments, no space"])
@pytest.mark.parametrize("size", [0, 1, 7, 100])
@pytest.mark.parametrize("name", WELL_FORMED)
def test_well_formed_streams_keep_their_bytes(name: str, size: int, form: dict[str, bytes]) -> None:
    body = wire(*WELL_FORMED[name], **form)
    out, watch = play(body + wire("[DONE]", **form), size=size)
    assert out == body + DONE
    assert (watch.ended, watch.error) == (True, None)


@pytest.mark.parametrize("name", WELL_FORMED)
def test_an_exact_backend_is_not_touched(name: str) -> None:
    data = wire(chunk({"content": None, "odd": []}), *WELL_FORMED[name], "[DONE]")
    assert play(data, size=9, profile=EXACT)[0] == data


def test_spaces_in_the_json_are_kept() -> None:
    spaced = [b"data: " + json.dumps(chunk({"content": text})).encode() + b"\n\n" for text in "abc"]
    data = b"".join(spaced) + wire(STOP, "[DONE]")
    assert play(data)[0] == data


def test_a_read_gives_what_it_completes() -> None:
    watch = watcher()
    first, second = frame(chunk({"content": "a"})), frame(chunk({"content": "b"}))
    assert watch.feed(first + second[:9]) == first
    assert watch.feed(second[9:]) == second


def test_ordinary_frames_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watcher()
    watch.feed(frame(chunk({"content": "a"})))
    monkeypatch.setattr(watch, "_look", None)
    for text in ("b", "\n", 'say \\"x\\"', '"quoted"', "日本", "", "\\"):
        data = frame(chunk({"content": text}))
        assert watch.feed(data) == data


def test_pieces_of_a_known_call_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = watcher()
    watch.feed(wire(calls(call(0, "", "a", "f")), calls(call(0, '{"k')), calls(call(0, '":'))))
    with monkeypatch.context() as patched:
        patched.setattr(watch, "_look", None)
        data = frame(calls(call(0, '"v"}')))
        assert watch.feed(data) == data
    # What was passed on is known all the same: the whole text told again is dropped.
    assert watch.feed(wire(calls(call(0, '{"k":"v"}')), chunk({}, "tool_calls"))) == frame(
        chunk({}, "tool_calls")
    )


TRAPS = [
    chunk({"content": 'x","tool_calls":[{"function":{"name":"f","arguments":"{}"}}],"y":"'}),
    chunk({"content": ["list"]}),
    chunk({"content": ""}, "stop"),
]


def test_a_piece_that_is_no_json_is_not_taken_for_an_ordinary_one() -> None:
    head = wire(calls(call(0, '{"a":"', "x", "f")), *[calls(call(0, "b"))] * 3)
    broken = frame(calls(call(0, "BROKEN"))).replace(b"BROKEN", rb"\q")
    tail = wire(calls(call(0, '"}')), chunk(finish="tool_calls"))
    assert chunks(play(head + broken + tail)[0]) == chunks(play(head + tail)[0])


def test_a_piece_that_looks_like_the_first_calls_may_be_of_a_later_one() -> None:
    """A backend that numbers every call 0: pieces of both calls differ in nothing but their text."""
    first = [calls(call(0, "", "a", "f")), calls(call(0, '{"x":')), calls(call(0, "1}"))]
    second = [calls(call(0, "", "b", "g")), calls(call(0, '{"y":')), calls(call(0, "2}"))]
    out, _ = play(wire(*first, *second, chunk(finish="tool_calls")) + DONE)
    told: dict[int, str] = {}
    for delta in (each["choices"][0]["delta"] for each in chunks(out) if each != "[DONE]"):
        for entry in delta.get("tool_calls") or []:
            told[entry["index"]] = told.get(entry["index"], "") + entry["function"]["arguments"]
    assert told == {0: '{"x":1}', 1: '{"y":2}'}


@pytest.mark.parametrize("trap", TRAPS, ids=str)
def test_what_differs_elsewhere_is_looked_at(trap: dict[str, Any]) -> None:
    seen: list[bytes] = []
    watch = watcher()
    watch.feed(frame(chunk({"content": "a"})))
    watch._look = lambda frame, out: seen.append(frame)  # type: ignore[method-assign]
    raw = (
        orjson.dumps(trap).replace(b'\\"', b'"')
        if b"tool_calls" in orjson.dumps(trap)
        else orjson.dumps(trap)
    )
    watch.feed(frame(raw))
    assert seen == [frame(raw)]


def test_a_stream_that_changes_all_the_time_is_not_learned_for_ever() -> None:
    watch = watcher()
    for created in range(200):
        data = frame(chunk({"content": "a"}, created=created))
        assert watch.feed(data) == data
    assert watch._pattern._lessons == 64


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


def last(*objs: Any) -> Any:
    """A finish that fits: `tool_calls` when there were calls."""
    return chunk(
        {},
        "tool_calls" if b"tool_calls" in orjson.dumps([o for o in objs if isinstance(o, dict)]) else "stop",
    )


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


# --- failures --------------------------------------------------------------------------

ERRORS: list[tuple[Any, str]] = [
    ({"error": {"message": "boom", "type": "server_error", "code": None}}, "server_error"),
    ({**USAGE, "error": {"code": 502, "message": "boom"}}, "upstream_error"),
    ({"error": "boom"}, "upstream_error"),
    ({"error_code": "INTERNAL_ERROR", "message": "boom"}, "upstream_error"),
    ({"detail": "boom"}, "upstream_error"),
    ({"base_resp": {"status_code": 1000, "status_msg": "boom"}}, "upstream_error"),
    ([{"error": {"message": "boom", "status": "INTERNAL"}}, {"error": "again"}], "upstream_error"),
    ({**chunk(), "choices": [{"index": 0, "delta": {}, "error": {"message": "boom"}}]}, "upstream_error"),
    (chunk({}, "error"), "upstream_error"),
]


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(("obj", "kind"), ERRORS, ids=str)
def test_errors_in_the_stream(obj: Any, kind: str, size: int) -> None:
    text = wire(chunk({"content": "a"}))
    out, watch = play(text + wire(obj, chunk({"content": "late"}), STOP, "[DONE]"), size=size)
    assert out.startswith(text)
    error, done = chunks(out)[1:]
    assert (error["error"]["type"], done) == (kind, "[DONE]")
    assert set(error["error"]) == {"message", "type", "param", "code"}
    assert (
        error["error"]["message"].startswith("boom") or "finish_reason 'error'" in error["error"]["message"]
    )
    assert watch.error is not None
    assert watch.ended


FIRSTS: list[tuple[Any, bool]] = [
    (chunk({"role": "assistant"}), True),
    ({"id": "c1", "choices": []}, True),
    ({"type": "ping"}, False),
    ({"id": "c1", "choices": [], "error": {"message": "boom"}}, False),
]


@pytest.mark.parametrize(("first", "begun"), FIRSTS, ids=str)
@pytest.mark.parametrize("profile", [None, EXACT])
def test_whether_a_reply_has_begun(first: Any, begun: bool, profile: Profile | None) -> None:
    assert play(wire(first), close=False, profile=profile)[1].begun is begun


def test_an_exact_backends_error_is_an_error() -> None:
    out, watch = play(wire(chunk({"content": "a"}), {"error": {"message": "boom"}}), profile=EXACT)
    assert chunks(out)[1]["error"]["message"] == "boom"
    assert watch.error is not None


ENDS = [
    ((), "without a reply"),
    ((b"[DONE]",), "without a reply"),
    ((chunk({"content": "a"}),), "middle of a reply"),
    ((calls(call(0, '{"k', "a", "f")), b"[DONE]"), "middle of a tool call"),
    ((calls(call(0, "{}", "a", "")), chunk({}, "tool_calls"), b"[DONE]"), "without a name"),
]


@pytest.mark.parametrize(("sent", "words"), ENDS, ids=[e[1] for e in ENDS])
def test_early_ends(sent: tuple[Any, ...], words: str) -> None:
    out, watch = play(b": ping\n\n" + wire(*sent))
    assert words in chunks(out)[-2]["error"]["message"]
    assert chunks(out)[-1] == "[DONE]"
    assert watch.error is not None
    assert "stop" not in [choice["finish_reason"] for c in chunks(out)[:-2] for choice in c["choices"]]


def test_a_frame_cut_by_the_end_is_dropped() -> None:
    out, _ = play(wire(chunk({"content": "a"})) + frame(chunk({"content": "b"}))[:-9])
    assert "middle of a reply" in chunks(out)[1]["error"]["message"]


def test_an_exact_backend_cut_short() -> None:
    out, watch = play(wire(chunk({"content": "a"})), profile=EXACT)
    assert "middle of a reply" in chunks(out)[1]["error"]["message"]
    assert watch.error is not None


def test_fail_from_outside() -> None:
    watch = watcher()
    watch.feed(wire(chunk({"content": "a"})))
    out = watch.fail(ProxyError("timeout", "too slow"))
    assert chunks(out) == [
        {
            "error": {
                "message": "too slow",
                "type": "timeout_error",
                "param": None,
                "code": "upstream_timeout",
            }
        },
        "[DONE]",
    ]
    assert (watch.fail(ProxyError("timeout", "again")), watch.close(), watch.feed(wire(STOP))) == (
        b"",
        b"",
        b"",
    )
    assert watch.error is not None


def test_start_and_keepalive() -> None:
    watch = watcher()
    assert watch.start() == b""
    half = frame(chunk({"content": "a"}))
    assert watch.feed(half[:10]) + watch.keepalive() + watch.feed(half[10:]) == b": keep-alive\n\n" + half
    watch.feed(wire(STOP, "[DONE]"))
    assert watch.keepalive() == b""


# --- the SDK takes whatever comes out --------------------------------------------------

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


# --- whole bodies ----------------------------------------------------------------------


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
