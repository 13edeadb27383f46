"""The Responses event stream: event logs in, golden frames out, every oracle over every one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.responses_golden import HEAD, ITEMS, Case
from tests.translators.responses_golden_ends import ENDS
from tests.translators.responses_oracle import check, events
from tests.translators.responses_player import START, STOP, brief, call, encoder, play, text
from translators.errors import ProxyError
from translators.ir import Annotated, Closed, Delta, Failed, Finished, Foreign, Opaque, Opened, Started, Usage

CASES = [*ITEMS, *ENDS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden(case: Case) -> None:
    found = check(play(case.log, **(case.context or {})))
    golden = [line.strip() for line in (HEAD + case.golden).splitlines() if line.strip()]
    assert [brief(event) for event in found] == golden


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_reply(case: Case) -> None:
    """The body is the response of the stream's last event, streamed or not; a failure is raised."""
    context = case.context or {}
    quiet, loud = encoder(stream=False, **context), encoder(**context)
    streamed = b"".join(loud.feed(event) for event in case.log)
    assert b"".join(quiet.feed(event) for event in case.log) == b""
    assert (quiet.start(), quiet.keepalive()) == (b"", b"")
    assert quiet.usage == loud.usage == case.log[-1].usage  # type: ignore[union-attr]
    if isinstance(case.log[-1], Failed):
        for each in (quiet, loud):
            with pytest.raises(ProxyError) as caught:
                each.body()
            assert caught.value is case.log[-1].error
        return
    assert quiet.body() == loud.body() == check(streamed)[-1]["response"]


# --- starting, keeping alive, ending --------------------------------------------------------


def test_start_is_idempotent_and_comes_before_the_first_word() -> None:
    machine = encoder()
    opening = machine.start()
    assert [event["type"] for event in events(opening)] == ["response.created", "response.in_progress"]
    assert machine.start() == b""
    assert machine.feed(Started(service_tier="priority")) == b""
    rest = b"".join(machine.feed(event) for event in [*text(0, "a"), STOP])
    assert check(opening + rest)[-1]["response"]["service_tier"] == "priority"


def test_keepalive_repeats_the_same_snapshot() -> None:
    machine = encoder()
    first = machine.keepalive()
    assert [event["type"] for event in events(first)] == ["response.created", "response.in_progress"]
    out = first + machine.feed(Started()) + machine.keepalive()
    out += b"".join(machine.feed(event) for event in text(0, "a")[:2]) + machine.keepalive()
    out += machine.feed(Closed(0)) + machine.feed(STOP)
    snapshots = [event["response"] for event in check(out) if event["type"] == "response.in_progress"]
    assert len(snapshots) == 3
    assert all(snapshot == snapshots[0] for snapshot in snapshots)


def test_nothing_of_a_call_is_done_before_the_reply_is() -> None:
    machine = encoder()
    before = b"".join(machine.feed(event) for event in [START, *call(0, "{}"), *call(1, "{}")])
    assert b".done" not in before
    assert machine.feed(Finished("tool_calls")).count(b"response.output_item.done") == 2 * 2


def test_a_foreign_item_leaves_whole_at_once() -> None:
    machine = encoder()
    machine.feed(START)
    raw = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAA"}
    kinds = [event["type"] for event in events(machine.feed(Foreign(0, Opaque("responses", raw))))]
    assert kinds == ["response.output_item.added", "response.output_item.done"]


def test_a_delta_leaves_at_once_in_one_frame() -> None:
    machine = encoder()
    for event in (START, Opened(0, "text")):
        machine.feed(event)
    assert machine.feed(Delta(0, 'é"\n\u2028')) == (
        b"event: response.output_text.delta\n"
        b'data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,'
        b'"sequence_number":4,"delta":"' + 'é\\"\\n\u2028'.encode() + b'","logprobs":[]}\n\n'
    )


def test_the_clock_is_only_read_for_the_end() -> None:
    response = check(play([START, STOP], now=None))[-1]["response"]
    assert (response["created_at"], response["completed_at"]) == (1700000000, 1700000000)
    assert check(play([START, STOP], now=lambda: 1))[-1]["response"]["completed_at"] == 1700000000


def test_failure_says_what_and_how_much() -> None:
    error = ProxyError("rate_limit", "slow down", retry_after=3)
    response = check(play([START, Failed(error, Usage(4, 0))]))[-1]["response"]
    assert response["error"] == {
        "code": "rate_limit_exceeded",
        "message": "slow down. Please try again in 3s.",
    }
    assert response["usage"]["total_tokens"] == 4


# --- usage, ids, logprobs, annotations, corrected texts ----------------------------------------


def test_usage_is_whole_or_null() -> None:
    told = check(play([START, Finished("stop", Usage(7, 3, cached=2, cache_write=1, reasoning=1))]))
    assert told[-1]["response"]["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 1},
        "output_tokens": 3,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 10,
    }
    assert check(play([START, Finished("stop")]))[-1]["response"]["usage"] is None


def test_missing_and_repeated_call_ids_are_minted() -> None:
    log = [
        START,
        *call(0, "{}", call_id="toolu_1"),
        *call(1, "{}", call_id="toolu_1"),
        *call(2, "{}", call_id=""),
        Finished("tool_calls"),
    ]
    output = check(play(log))[-1]["response"]["output"]
    assert [item["call_id"] for item in output] == ["toolu_1", "call_1", "call_2"]


def test_logprobs_reach_deltas_done_and_part() -> None:
    raw = {"token": "é", "logprob": -0.5, "bytes": None, "top_logprobs": [{"token": "e", "logprob": -2}]}
    whole = {
        "token": "é",
        "logprob": -0.5,
        "bytes": [195, 169],
        "top_logprobs": [{"token": "e", "logprob": -2, "bytes": [101]}],
    }
    log = [
        START,
        Opened(0, "text"),
        Delta(0, "é", [raw]),
        Delta(0, "", [raw]),
        Delta(0, "!"),
        Closed(0),
        STOP,
    ]
    found = check(play(log))
    assert [event["logprobs"] for event in found if event["type"].endswith("text.delta")] == [[whole], []]
    (done,) = [event for event in found if event["type"].endswith("text.done")]
    assert done["logprobs"] == found[-1]["response"]["output"][0]["content"][0]["logprobs"] == [whole, whole]


def test_logprobs_wait_with_their_text() -> None:
    raw = {"token": "a", "logprob": -1, "bytes": [97], "top_logprobs": None}
    log = [START, *call(0, "{}"), Opened(1, "text"), Delta(1, "a", [raw]), Closed(1), Finished("tool_calls")]
    (delta,) = [event for event in check(play(log)) if event["type"].endswith("text.delta")]
    assert delta["logprobs"] == [{**raw, "top_logprobs": []}]


def test_annotations_are_whole_and_only_on_text() -> None:
    cited = {"type": "url_citation", "url": "https://a", "title": None}
    log = [
        START,
        *(
            Opened(0, "text"),
            Delta(0, "x"),
            Annotated(0, cited),
            Annotated(0, {**cited, "title": "A"}),
            Closed(0),
        ),
        *(Opened(1, "refusal", joins=True), Delta(1, "no"), Annotated(1, cited), Closed(1), STOP),
    ]
    found = check(play(log))
    added = [event for event in found if event["type"].endswith("annotation.added")]
    whole = {"type": "url_citation", "url": "https://a", "title": "", "start_index": 0, "end_index": 0}
    assert [(each["annotation_index"], each["annotation"]) for each in added] == [
        (0, whole),
        (1, {**whole, "title": "A"}),
    ]
    (message,) = found[-1]["response"]["output"]
    assert message["content"][0]["annotations"] == [whole, {**whole, "title": "A"}]
    assert message["content"][1] == {"type": "refusal", "refusal": "no"}


CORRECTED = [
    ("more than was streamed", ["ab"], "abc", "abc"),
    ("the same", ["ab"], "ab", "ab"),
    ("all of it", [], "abc", "abc"),
    ("nothing", [], "", ""),
    ("something else than was streamed", ["ab"], "xy", "ab"),
]


@pytest.mark.parametrize(
    ("said", "whole", "final"), [row[1:] for row in CORRECTED], ids=[r[0] for r in CORRECTED]
)
@pytest.mark.parametrize("kind", ["text", "summary"])
def test_the_last_word_extends_what_was_streamed(kind: Any, said: list[str], whole: str, final: str) -> None:
    log = [START, Opened(0, kind), *(Delta(0, each) for each in said), Closed(0, text=whole), STOP]
    (item,) = check(play(log))[-1]["response"]["output"]
    texts = [part["text"] for part in item["content" if kind == "text" else "summary"]]
    assert texts == ([final] if final or kind == "text" else [])


def test_the_last_word_replaces_what_still_waits() -> None:
    log = [
        START,
        *call(0, "{}"),
        Opened(1, "text"),
        Delta(1, "ab"),
        Closed(1, text="xy"),
        Finished("tool_calls"),
    ]
    output = check(play(log))[-1]["response"]["output"]
    assert output[1]["content"][0]["text"] == "xy"


def test_a_reasoning_part_opens_late_also_while_it_waits() -> None:
    log = [
        START,
        *call(0, "{}"),
        *(Opened(1, "summary"), Closed(1)),
        *(Opened(2, "summary", joins=True), Delta(2, "b"), Closed(2)),
        Finished("tool_calls"),
    ]
    output = check(play(log))[-1]["response"]["output"]
    assert output[1]["summary"] == [{"type": "summary_text", "text": "b"}]
