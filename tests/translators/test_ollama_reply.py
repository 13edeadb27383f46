"""Lines of `/api/chat` and answers of `/api/embed`, one by one; streams are the laws' business."""

from __future__ import annotations

from typing import Any

import pytest

from providers.profiles import resolve
from translators.errors import ProxyError
from translators.first_call import FirstCall
from translators.framing import NdjsonFramer
from translators.images import remote_images, with_images
from translators.ir import Closed, Delta, Event, Failed, Finished, Foreign, Json, Opaque, Opened, Started
from translators.ollama import OllamaBackend
from translators.ollama.embed import from_embed, to_embed

BACKEND = OllamaBackend()
PROFILE = resolve(kind="ollama", host="", model="m", surface="ollama")


def events(*lines: Json) -> list[Event]:
    decoder = BACKEND.decoder(PROFILE)
    return [*(event for line in lines for event in decoder.feed(line)), *decoder.close()]


def message(**more: Any) -> Json:
    return {"model": "m", "message": {"role": "assistant", "content": "", **more}, "done": False}


def last(**more: Any) -> Json:
    return {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True, **more}


def test_a_line_may_hold_all_there_is() -> None:
    calls = [{"function": {"name": "f", "arguments": {"a": [1, "é"]}}}, {"function": {"name": "g"}}, 3, {}]
    found = events(
        {
            **last(done_reason="stop", eval_count=2),
            "message": {"content": "t", "thinking": "r", "tool_calls": calls},
        }
    )
    opened = [(event.kind, event.name) for event in found if isinstance(event, Opened)]
    assert opened == [("summary", ""), ("text", ""), ("tool_call", "f"), ("tool_call", "g")]
    assert [event.text for event in found if isinstance(event, Delta)] == ["r", "t", '{"a":[1,"é"]}', "{}"]
    assert isinstance(found[-1], Finished)
    assert found[-1].reason == "tool_calls"


def test_arguments_that_came_as_text_stay_as_they_are() -> None:
    call = {"function": {"name": "f", "arguments": '{"a": 1}'}}
    assert any(
        isinstance(event, Delta) and event.text == '{"a": 1}'
        for event in events(message(tool_calls=[call]), last())
    )


def test_log_probabilities() -> None:
    logprobs = [{"token": "a", "logprob": -0.5, "bytes": [97]}]
    deltas = [
        e for e in events({**message(content="a"), "logprobs": logprobs}, last()) if isinstance(e, Delta)
    ]
    assert deltas[0].logprobs is not None
    assert deltas[0].logprobs[0]["token"] == "a"


ENDS: list[tuple[Json, str | None]] = [
    ({}, "stop"),
    ({"done_reason": ""}, "stop"),
    ({"done_reason": "length"}, "length"),
    ({"done_reason": "load"}, None),
    ({"done_reason": "unload"}, None),
]


@pytest.mark.parametrize(("more", "reason"), ENDS)
def test_how_a_reply_ends(more: Json, reason: str | None) -> None:
    end = events(message(content="a"), last(**more))[-1]
    assert (end.reason if isinstance(end, Finished) else None) == reason
    assert isinstance(end, Finished | Failed)


FIGURES: list[tuple[Json, tuple[int, int] | None, dict[str, float] | None]] = [
    ({}, None, None),
    ({"eval_count": 3}, (0, 3), None),
    ({"prompt_eval_count": 4}, (4, 0), None),
    ({"total_duration": 5}, (0, 0), None),
    ({"eval_count": 3, "load_duration": 2 * 10**9, "eval_duration": True}, (0, 3), {"load": 2.0}),
]


@pytest.mark.parametrize(("more", "counts", "seconds"), FIGURES)
def test_figures_that_are_left_out_are_nought(
    more: Json, counts: tuple[int, int] | None, seconds: dict[str, float] | None
) -> None:
    end = events(last(**more))[-1]
    assert isinstance(end, Finished)
    told = end.usage
    assert ((told.input, told.output) if told else None) == counts
    assert (told.seconds if told else None) == seconds


def test_what_is_no_line_of_a_reply_says_nothing() -> None:
    assert events(
        {"status": "pulling"}, {"choices": [{"delta": {"content": "x"}}]}, {"message": None}, last()
    )[1:] == [Finished("stop")]


def test_a_torn_line_inside_calls_is_a_failure() -> None:
    decoder = BACKEND.decoder(PROFILE)
    call = {"function": {"name": "f", "arguments": {}}}
    assert list(decoder.feed(message(tool_calls=[call])))
    assert isinstance(list(decoder.lost())[-1], Failed)
    assert list(decoder.close()) == []


BODIES: list[tuple[Json, str]] = [
    ({"message": {"content": "a"}}, "stop"),
    ({"message": {"content": "a"}, "done": False}, "failed"),
    ({}, "failed"),
    ({"error": "model runner has unexpectedly stopped"}, "failed"),
]


@pytest.mark.parametrize(("body", "reason"), BODIES)
def test_a_whole_answer(body: Json, reason: str) -> None:
    end = list(BACKEND.decode_reply(body, PROFILE))[-1]
    assert (end.reason if isinstance(end, Finished) else "failed") == reason


# --- lines -----------------------------------------------------------------------------


def test_lines_are_cut_anywhere() -> None:
    text = b'\xef\xbb\xbf{"a": "\xe2\x80\xa8"}\r\n\n  \n{"b": 1}\n{"c": 2}'
    for size in range(1, len(text) + 1):
        framer = NdjsonFramer()
        found = [line for at in range(0, len(text), size) for line in framer.feed(text[at : at + size])]
        assert [*found, *framer.close()] == [b'{"a": "\xe2\x80\xa8"}', b'{"b": 1}', b'{"c": 2}']
        assert framer.close() == []


# --- one call --------------------------------------------------------------------------


class Recorder:
    def feed(self, event: Event) -> list[Event]:
        return [event]


def test_only_the_first_call_is_kept_and_places_stay_dense() -> None:
    item = Foreign(3, Opaque("responses", {"type": "x"}))
    given: list[Event] = [
        Started(),
        Opened(0, "text"),
        Delta(0, "a"),
        Closed(0),
        Opened(1, "tool_call", "c1", "f"),
        Opened(2, "tool_call", "c2", "g"),
        Delta(2, "{}"),
        Delta(1, "{}"),
        item,
        Closed(2),
        Closed(1),
        Opened(4, "text"),
        Delta(4, "b"),
        Closed(4),
        Finished("tool_calls"),
    ]
    wanted: list[Event] = [
        *given[:5],
        Delta(1, "{}"),
        Foreign(2, item.item),
        Closed(1),
        Opened(3, "text"),
        Delta(3, "b"),
        Closed(3),
        Finished("tool_calls"),
    ]
    for then in (None, Recorder()):
        first = FirstCall(then)
        assert [kept for event in given for kept in first.feed(event)] == wanted


# --- pictures --------------------------------------------------------------------------


def test_pictures_of_ollama_are_fetched_into_their_place() -> None:
    messages = [
        {"role": "user", "content": "x", "images": ["https://e.com/a.png", "aGk=", 3]},
        {"role": "user", "content": "https://e.com/no-image.png"},
        "odd",
    ]
    body: Json = {"messages": messages}
    assert remote_images(body) == {"https://e.com/a.png": "/messages/0/images/0"}
    fetched = with_images(body, {"https://e.com/a.png": "data:image/png;base64,QUJD"})
    assert fetched["messages"] == [{**messages[0], "images": ["QUJD", "aGk=", 3]}, *messages[1:]]  # type: ignore[dict-item]


# --- embeddings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"input": "a"}, {"input": ["a"], "truncate": False}),
        (
            {"input": ["a", "b"], "dimensions": 3, "user": "u"},
            {"input": ["a", "b"], "truncate": False, "dimensions": 3},
        ),
        (
            {"input": ["a"], "truncate": True, "keep_alive": "1m", "options": {"num_ctx": 1}},
            {"input": ["a"], "truncate": True, "keep_alive": "1m", "options": {"num_ctx": 1}},
        ),
    ],
)
def test_a_request_for_embeddings(given: Json, wanted: Json) -> None:
    assert to_embed({"model": "m", **given}) == {"model": "m", **wanted}


@pytest.mark.parametrize(
    "given", [{}, {"input": []}, {"input": [1, 2]}, {"input": {"a": 1}}, {"input": [["a"]]}]
)
def test_an_input_that_is_none(given: Json) -> None:
    with pytest.raises(ProxyError) as caught:
        to_embed({"model": "m", **given})
    assert caught.value.param == "input"


def test_an_encoding_that_is_none() -> None:
    with pytest.raises(ProxyError) as caught:
        to_embed({"model": "m", "input": "a", "encoding_format": "int8"})
    assert caught.value.param == "encoding_format"


def test_base64_is_float32_in_little_endian() -> None:
    asked = {"model": "m", "input": "a", "encoding_format": "base64"}
    reply = from_embed({"embeddings": [[1.0, -2]], "model": "up", "prompt_eval_count": 3}, asked)
    assert reply["data"][0]["embedding"] == "AACAPwAAAMA="
    assert (reply["model"], reply["usage"]["total_tokens"]) == ("up", 3)


@pytest.mark.parametrize("vectors", [None, [], [[1.0]], [[1.0], ["x"]], [[1.0], None], [[1.0], [True]]])
def test_an_answer_without_a_vector_for_each_input(vectors: Any) -> None:
    with pytest.raises(ProxyError, match="no vector for each input"):
        from_embed({"embeddings": vectors}, {"model": "m", "input": ["a", "b"]})


def test_an_answer_in_openais_shape() -> None:
    reply = {"embeddings": [[0.5, 1]], "prompt_eval_count": -3}
    assert from_embed(reply, {"model": "m", "input": "a"}) == {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 1]}],
        "model": "m",
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }
