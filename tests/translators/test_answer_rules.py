"""`answer.*` and `errors.shapes` of the profile: each key changes what is read of the same bytes."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
import pytest

from tests.translators.chat_edits import profile
from translators.chat.decoder import ChatDecoder
from translators.chat.reply import decode_reply
from translators.chat.watch import ChatWatcher, tidy_reply
from translators.dialect import ReplyContext
from translators.error_bodies import read_body
from translators.errors import ProxyError, decode_error
from translators.framing import sse
from translators.ir import Closed, Delta, Event, Failed, Finished, Json, Opened
from translators.profile import Profile
from translators.responses.watch import ResponsesWatcher


def chunk(delta: Json, finish: str | None = None, **more: Any) -> Json:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]}


def call(arguments: str, **more: Any) -> Json:
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"function": {"arguments": arguments, **name}, **more}


def decoded(rules: Profile, chunks: list[Json], done: bool = True) -> list[Event]:
    decoder = ChatDecoder(rules)
    events = [event for each in chunks for event in decoder.feed(each)]
    return events + list(decoder.done() if done else ()) + list(decoder.close())


def watched(
    rules: Profile, chunks: list[Json], tail: bytes = b"data: [DONE]\n\n"
) -> tuple[ChatWatcher, list[Json]]:
    """The watcher, fed byte by byte, and what a client reads."""
    numbers = itertools.count()
    context = ReplyContext(1, "m", lambda prefix: f"{prefix}{next(numbers)}")
    watcher, out = ChatWatcher(rules, context), b""
    for byte in b"".join(sse(orjson.dumps(each)) for each in chunks) + tail:
        out += watcher.feed(bytes([byte]))
    out += watcher.close()
    frames = [frame[6:] for frame in out.split(b"\n\n") if frame.startswith(b"data: {")]
    return watcher, [orjson.loads(frame) for frame in frames]


def calls_in(events: list[Event]) -> list[tuple[str, str]]:
    """Name and arguments of every call."""
    names = {event.index: event.name for event in events if isinstance(event, Opened)}
    texts = dict.fromkeys(names, "")
    for event in events:
        if isinstance(event, Delta):
            texts[event.index] += event.text
    return [(name, texts[index]) for index, name in names.items()]


def calls_read(frames: list[Json]) -> list[tuple[str, str]]:
    """The same of a stream that passed."""
    found: dict[int, list[str]] = {}
    for frame in frames:
        for entry in frame["choices"][0]["delta"].get("tool_calls", ()):
            known = found.setdefault(entry["index"], ["", ""])
            known[0] += entry["function"].get("name", "")
            known[1] += entry["function"].get("arguments", "")
    return [(name, text) for name, text in found.values()]


TWO_IDS = [
    chunk({"tool_calls": [call('{"a":1}', index=0, id="x", name="f", type="function")]}),
    chunk({"tool_calls": [call(' {"b":2}', index=0, id="y", name="g", type="function")]}),
    chunk({}, "tool_calls"),
]
TWO_WHOLE = [
    chunk({"tool_calls": [call('{"a":1}', index=0, id="x", name="f", type="function")]}),
    chunk({"tool_calls": [call('{"b":2}', index=0, id="x", name="g")]}),
    chunk({}, "tool_calls"),
]
PLACEHOLDER = [
    chunk({"tool_calls": [call("{}", index=0, id="x", name="f", type="function")]}),
    chunk({"tool_calls": [call(' {"a":1}', index=0)]}),
    chunk({}, "tool_calls"),
]


@pytest.mark.parametrize(
    ("key", "chunks", "guessed", "exact"),
    [
        ("index", TWO_IDS, [("f", '{"a":1}'), ("g", ' {"b":2}')], [("f", '{"a":1} {"b":2}')]),
        ("id", TWO_WHOLE, [("f", '{"a":1}'), ("g", '{"b":2}')], [("f", '{"a":1}{"b":2}')]),
        ("args", PLACEHOLDER, [("f", ' {"a":1}')], [("f", '{} {"a":1}')]),
    ],
)
def test_a_backend_is_taken_at_its_word_where_its_calls_are_exact(
    key: str, chunks: list[Json], guessed: list[Any], exact: list[Any]
) -> None:
    strict = profile(answer={"tool_delta": {key: "exact"}})
    assert calls_in(decoded(Profile(), chunks)) == guessed
    assert calls_in(decoded(strict, chunks)) == exact
    assert calls_read(watched(Profile(), chunks)[1]) == guessed
    assert calls_read(watched(strict, chunks)[1]) == exact


LISTED = [chunk({"content": [{"type": "text", "text": "hi"}]}), chunk({}, "stop")]
ONLY_TEXT = profile(answer={"content": "string"})


def test_content_that_is_no_text_fails_where_only_text_is_expected() -> None:
    assert [event.text for event in decoded(Profile(), LISTED) if isinstance(event, Delta)] == ["hi"]
    assert isinstance(decoded(ONLY_TEXT, LISTED)[-1], Failed)
    assert watched(Profile(), LISTED)[0].error is None
    assert "no text" in str(watched(ONLY_TEXT, LISTED)[0].error)
    plain = [chunk({"content": "hi"}), chunk({"content": None}, "stop")]
    assert isinstance(decoded(ONLY_TEXT, plain)[-1], Finished)


def test_the_same_of_a_whole_reply() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}
    body = {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert isinstance(list(decode_reply(body, Profile()))[-1], Finished)
    assert isinstance(list(decode_reply(body, ONLY_TEXT))[-1], Failed)
    assert (
        tidy_reply(orjson.loads(orjson.dumps(body)), Profile())[0]["choices"][0]["message"]["content"] == "hi"
    )
    with pytest.raises(ProxyError, match="no text"):
        tidy_reply(body, ONLY_TEXT)


def test_counts_inside_a_choice_are_not_read_where_they_come_last() -> None:
    counts = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    chunks = [chunk({"content": "hi"}), chunk({}, "stop", usage=counts)]
    final = profile(answer={"usage": "final"})
    read = [decoded(rules, chunks)[-1] for rules in (Profile(), final)]
    assert [event.usage is None for event in read if isinstance(event, Finished)] == [False, True]
    assert [watched(rules, chunks)[0].usage is None for rules in (Profile(), final)] == [False, True]
    told = decoded(final, [*chunks, {"id": "c", "choices": [], "usage": counts}])[-1]
    assert isinstance(told, Finished)
    assert told.usage is not None


def test_an_end_without_its_marker_fails_where_it_is_required() -> None:
    chunks = [chunk({"content": "hi"}), chunk({}, "stop")]
    required = profile(answer={"sse": {"done": "required"}})
    assert isinstance(decoded(Profile(), chunks, done=False)[-1], Finished)
    assert isinstance(decoded(required, chunks, done=False)[-1], Failed)
    assert isinstance(decoded(required, chunks)[-1], Finished)
    assert watched(Profile(), chunks, b"")[0].error is None
    assert watched(required, chunks, b"")[0].error is not None
    assert watched(required, chunks)[0].error is None


@pytest.mark.parametrize("made", [ChatWatcher, ResponsesWatcher])
@pytest.mark.parametrize("comments", [True, False])
def test_comments_pass_unless_told_otherwise(made: Any, comments: bool) -> None:
    context = ReplyContext(1, "m", lambda prefix: f"{prefix}1", echo={"model": "m", "input": "x"})
    watcher = made(profile(answer={"exact": True, "sse": {"comments": comments}}), context)
    created = {
        "type": "response.created",
        "sequence_number": 0,
        "response": {"id": "r", "object": "response"},
    }
    head = sse(orjson.dumps(chunk({"content": "a"}) if made is ChatWatcher else created))
    out = watcher.feed(head) + watcher.feed(b": PROCESSING\n\n")
    assert (b": PROCESSING" in out) is comments


def test_a_call_reads_as_a_call_whatever_is_exact() -> None:
    rules = profile(answer={"tool_delta": {"index": "exact", "id": "exact", "args": "exact"}})
    chunks = [
        chunk({"tool_calls": [call("", index=0, id="x", name="f", type="function")]}),
        chunk({"tool_calls": [call('{"a"', index=0)]}),
        chunk({"tool_calls": [call(":1}", index=0)]}),
        chunk({"tool_calls": [call("{}", index=1, id="y", name="f", type="function")]}),
        chunk({"tool_calls": [call("{}", id="z", name="f", type="function")]}),
        chunk({}, "tool_calls"),
    ]
    events = decoded(rules, chunks)
    assert calls_in(events) == [("f", '{"a":1}'), ("f", "{}"), ("f", "{}")]
    assert sum(isinstance(event, Closed) for event in events) == 3


# --- errors ----------------------------------------------------------------------------

WRAPPED = {
    "error": "proxy says no",
    "errors": [{"message": "cloud says why"}],
    "base_resp": {"status_code": 1004, "status_msg": "base says why"},
    "detail": "framework says why",
    "message": "top says why",
}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([], "proxy says no"),
        (["openai"], "proxy says no"),
        (["in_band"], "proxy says no"),
        (["string", "cloudflare"], "proxy says no"),
        (["cloudflare", "openai"], "cloud says why"),
        (["minimax_base_resp", "openai"], "base says why"),
        (["fastapi", "openai"], "framework says why"),
        (["databricks", "openai"], "top says why"),
    ],
)
def test_the_words_of_an_error_are_looked_for_where_the_profile_says(shapes: list[str], message: str) -> None:
    body = orjson.dumps(WRAPPED)
    assert read_body(body, shapes).message == message
    rules = profile(errors={"shapes": shapes})
    assert decode_error(400, body, {}, rules).message == message


@pytest.mark.parametrize("shape", ["cloudflare", "minimax_base_resp", "fastapi", "databricks", "google_list"])
def test_a_shape_that_is_not_met_changes_nothing(shape: str) -> None:
    assert read_body(b'{"error":{"message":"no","code":"c"}}', [shape]).message == "no"
    assert read_body(b'[{"error":{"message":"no"}}]', [shape]).message == "no"
    assert read_body(b"plain words", [shape]).message == "plain words"
