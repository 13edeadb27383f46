"""What is learned of backends: remembered, forgotten in time, kept in a file."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from providers.openai import OpenAIProvider, Settings
from providers.quirks import KEPT_S, MAX_LEARNED, REFRESH_S, Quirks, newest
from providers.quirks_file import Learned, QuirksFile, UnreadableQuirks, state_file
from tests.providers.conftest import Clock
from translators.rejections import Rejection

HOST = "h:443"
HOT = Rejection(("temperature",))
STRICT = Rejection(("tools", "*", "function", "strict"))
VALUES = (
    Rejection(("background",), value=False),
    Rejection(("n",), value=1),
    Rejection(("reasoning", "effort"), value="max", instead="high"),
    Rejection(("temperature",), bounds=(0, 1)),
    Rejection(("max_tokens",), name="max_completion_tokens"),
)


@pytest.fixture
def file(tmp_path: Path) -> QuirksFile:
    return QuirksFile(tmp_path / "state" / "quirks.json")


def test_it_is_known_of_that_host_model_and_surface_only(clock: Clock) -> None:
    quirks = Quirks(clock=clock)
    assert quirks.known(HOST, "m", "chat") == ()
    quirks.learn(HOST, "m", "chat", [HOT])
    quirks.learn(HOST, "m", "chat", [STRICT, HOT])
    assert quirks.known(HOST, "m", "chat") == [HOT, STRICT]
    for place in (("other:443", "m", "chat"), (HOST, "n", "chat"), (HOST, "m", "responses")):
        assert quirks.known(*place) == ()  # type: ignore[arg-type]


def test_it_expires(clock: Clock) -> None:
    quirks = Quirks(clock=clock)
    quirks.learn(HOST, "m", "chat", [HOT])
    clock.now += KEPT_S - 1
    quirks.learn(HOST, "m", "chat", [STRICT])
    clock.now += 1
    assert quirks.known(HOST, "m", "chat") == [STRICT]


def test_there_is_a_bound_and_the_oldest_go_first() -> None:
    entries = [Learned(HOST, f"m{at}", "chat", HOT, 100 + at) for at in range(5)]
    assert newest(entries, 0, 3) == entries[2:]
    assert newest(entries, 101, 9) == entries[2:]
    again = Learned(HOST, "m0", "chat", HOT, 900)
    assert newest([*entries, again], 0, 3) == [again, *entries[3:]]
    quirks = Quirks(clock=lambda: 0)
    quirks.learn(HOST, "m", "chat", [Rejection((f"k{at}",)) for at in range(MAX_LEARNED + 9)])
    assert len(quirks.known(HOST, "m", "chat")) == MAX_LEARNED


# --- the file --------------------------------------------------------------------------


def test_it_outlives_the_process(file: QuirksFile, clock: Clock) -> None:
    quirks = Quirks(file, clock)
    quirks.learn(HOST, "m", "chat", [HOT, STRICT])
    quirks.learn(HOST, "m", "responses", VALUES)
    again = Quirks(QuirksFile(file.path), clock)
    assert again.known(HOST, "m", "chat") == [HOT, STRICT]
    assert again.known(HOST, "m", "responses") == list(VALUES)
    assert [type(each.value) for each in again.known(HOST, "m", "responses")[:2]] == [bool, int]
    clock.now += KEPT_S
    assert Quirks(QuirksFile(file.path), clock).known(HOST, "m", "chat") == ()
    assert [path.name for path in file.path.parent.iterdir()] == ["quirks.json"]
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700


async def test_inside_an_event_loop_it_is_written_by_a_thread(file: QuirksFile, clock: Clock) -> None:
    quirks = Quirks(file, clock)
    quirks.learn(HOST, "m", "chat", [HOT])
    assert quirks.known(HOST, "m", "chat") == [HOT]
    await asyncio.get_running_loop().shutdown_default_executor()
    assert [each.rejection for each in file.read()] == [HOT]


def test_what_others_add_and_take_away_is_seen(file: QuirksFile, clock: Clock) -> None:
    one, other = Quirks(file, clock), Quirks(QuirksFile(file.path), clock)
    one.learn(HOST, "m", "chat", [HOT])
    other.learn(HOST, "m", "chat", [STRICT])
    clock.now += REFRESH_S
    assert one.known(HOST, "m", "chat") == [HOT, STRICT]
    QuirksFile(file.path).update(lambda _: [])
    assert one.known(HOST, "m", "chat") == [HOT, STRICT]  # looked at a moment ago
    clock.now += REFRESH_S
    assert one.known(HOST, "m", "chat") == []
    other.learn(HOST, "n", "chat", [HOT])
    assert [each.model for each in file.read()] == ["n"]  # what was forgotten is not written again
    file.path.unlink()
    clock.now += REFRESH_S
    assert other.known(HOST, "n", "chat") == []


def entry(**change: Any) -> dict[str, Any]:
    return {"host": HOST, "model": "m", "surface": "chat", "path": ["seed"], "until": 2e9, **change}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"version": 2, "learned": []}',
        b'{"version": 1, "learned": 5}',
        b'{"version": 1, "learned": [{}]}',
        *(
            orjson.dumps({"version": 1, "learned": [entry(**change)]})
            for change in (
                {"surface": "embeddings"},
                {"surface": "x"},
                {"path": 5},
                {"until": "x"},
                {"odd": 1},
            )
        ),
    ],
)
def test_a_broken_file_is_no_reason_not_to_serve(file: QuirksFile, content: bytes) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(content)
    with pytest.raises(UnreadableQuirks):
        file.read()
    with capture_logs() as said:
        quirks = Quirks(file, lambda: 0)
    assert [(line["event"], line["log_level"]) for line in said] == [("quirks_unreadable", "warning")]
    quirks.learn(HOST, "m", "chat", [HOT])
    assert [each.rejection for each in file.read()] == [HOT]


def test_a_file_cannot_take_away_what_a_refusal_could_not(file: QuirksFile) -> None:
    paths = (["messages"], ["tools", "*", "name"], ["tool_choice"], [], ["seed"])
    file.path.parent.mkdir()
    learned = [entry(path=path) for path in paths]
    file.path.write_bytes(orjson.dumps({"version": 1, "learned": learned}))
    assert Quirks(file, lambda: 0).known(HOST, "m", "chat") == [Rejection(("seed",))]


def test_where_nothing_can_be_written_it_ends_with_the_process(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    quirks = Quirks(None, clock)
    with capture_logs() as said:
        quirks = Quirks(QuirksFile(tmp_path / "state" / "quirks.json"), clock)
        quirks.learn(HOST, "m", "chat", [HOT])
        quirks.learn(HOST, "m", "chat", [STRICT])
    assert [line["event"] for line in said] == ["quirks_unreadable", "quirks_unwritable"]
    clock.now += REFRESH_S
    assert quirks.known(HOST, "m", "chat") == [HOT, STRICT]


def test_a_write_that_fails_leaves_the_old_file(file: QuirksFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.update(lambda _: [Learned(HOST, "m", "chat", HOT, 2e9)])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        file.update(lambda _: [])
    assert len(file.read()) == 1
    assert [path.name for path in file.path.parent.iterdir()] == ["quirks.json"]


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/dragoman/quirks.json"),
        ({"HOME": "/h"}, "/h/.local/state/dragoman/quirks.json"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/dragoman/quirks.json"),
        ({}, None),
    ],
)
def test_where_the_file_is(environ: dict[str, str], expected: str | None) -> None:
    assert state_file(environ) == (None if expected is None else Path(expected))


# --- the provider ----------------------------------------------------------------------


def provider(
    base_url: str, quirks: Quirks | None, make: Callable[..., Any] = OpenAIProvider
) -> OpenAIProvider:
    return make(Settings("p", base_url), None, quirks=quirks)  # type: ignore[no-any-return]


def test_providers_of_one_host_share_what_was_learned() -> None:
    quirks = Quirks()
    one, two = provider("https://h/v1", quirks), provider("https://h:443/other/v1", quirks)
    one.learn_rejections("m", "chat", [HOT])
    assert two.known_rejections("m", "chat") == [HOT]
    assert provider("http://h/v1", quirks).known_rejections("m", "chat") == ()
    assert provider("https://h/v1", None).known_rejections("m", "chat") == ()


def test_an_untouched_request_pays_next_to_nothing() -> None:
    quirks = Quirks()
    asked = provider("https://h/v1", quirks)
    quirks.learn(HOST, "another", "chat", [HOT])
    began = os.times().user
    for _ in range(20_000):
        asked.known_rejections("m", "chat")
    assert (os.times().user - began) / 20_000 < 2e-6
