"""Acceptance: whatever a retry before the first byte can save is saved, and the log says how."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from tests.app.conftest import Serve, Served
from tests.app.fleet import MODEL, SAID, Answer, ask_all, running
from tests.app.test_streams import events, types, wait_for_log, whole_text

COUNT = 2000
NAMES = ("fleet", "chat-balanced", "lead")
"""A group, a class, and a name with fallbacks."""
ALL = ["down", "slow", "limited", "odd", "shaky"]


def text_of(answer: Answer) -> str:
    """What was said; empty where the answer is no success to its end."""
    chat = answer.path.endswith("completions")
    told: list[Any] = events(answer.text) if answer.stream else []
    if answer.stream and chat:
        if told[-1] != "[DONE]" or any(isinstance(each, dict) and "error" in each for each in told):
            return ""
        chunks = [each for each in told if isinstance(each, dict)]
        return "".join(c["delta"].get("content") or "" for each in chunks for c in each["choices"])
    if answer.stream:
        return whole_text(answer.text) if types(answer.text)[-1] == "response.completed" else ""
    return SAID if SAID in answer.text else ""


def died_cleanly(answer: Answer) -> bool:
    """An error the client can read, and no end that looks like success."""
    told = events(answer.text)
    if answer.path.endswith("completions"):
        finished = [
            c.get("finish_reason") for each in told if isinstance(each, dict) for c in each.get("choices", ())
        ]
        return any(isinstance(each, dict) and "error" in each for each in told) and not any(finished)
    kinds = [each["type"] for each in told if isinstance(each, dict)]
    return kinds[-1] == "response.failed" and "response.completed" not in kinds


def check_explained(line: dict[str, Any]) -> None:
    """The line of one request says who was considered, who was asked, and what came of each."""
    assert line["source"] in ("group", "class", "exact")
    assert sorted(each["target"].split("/")[0] for each in line["candidates"]) == sorted(ALL)
    tries = line.get("tries") or [{"target": line["target"], "outcome": "ok"}]
    assert tries[-1]["target"] == line["target"]
    assert all(each["outcome"] != "ok" for each in tries[:-1])
    first = line["candidates"][0]["target"]
    assert tries[0]["target"] == first
    for each in tries[:-1]:
        assert each["outcome"] in ("unavailable", "timeout", "rate_limit", "upstream", "overloaded"), each
        assert each["ms"] >= 0


def left_over(served: Served) -> tuple[int, int]:
    """Tasks and connections in use, once all is told."""
    found: list[tuple[int, int]] = []
    done = threading.Event()

    def look() -> None:
        pool = served.gateway.catalog.providers[0]._client._connector  # type: ignore[attr-defined]
        found.append((len(asyncio.all_tasks()), len(pool._acquired)))
        done.set()

    served.call_soon(look)
    assert done.wait(5)
    return found[0]


async def test_a_fleet_with_faults_fails_nobody_that_can_be_served(serve: Serve) -> None:
    with running() as (fleet, providers):
        members = [{"model": f"{name}/{MODEL}", "weight": 1} for name in ALL]
        served = serve(
            fresh=True,
            providers=providers,
            server={"idle_timeout_s": 2},
            groups={"fleet": members},
            fallbacks={"lead": [f"{name}/{MODEL}" for name in ALL[1:]]},
        )
        before = threading.active_count()
        answers = await ask_all(served.base, NAMES, COUNT, 32)
        assert len(answers) == COUNT
        failed = [each for each in answers if each.status != 200 or text_of(each) != SAID]
        lost = [
            each for each in failed if not (each.target.startswith("odd/") and each.number in fleet.killed)
        ]
        assert lost == []
        assert failed, "no stream died: the test tests nothing"
        assert all(died_cleanly(each) for each in failed)
        await all_is_over(served)
        assert threading.active_count() <= before + 8
        check_log(served, {each.number for each in failed})


async def all_is_over(served: Served) -> None:
    """No connection is in use, and no task is left but those of the server itself."""
    for _ in range(100):
        tasks, connections = left_over(served)
        if not connections and tasks <= 10:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"left over: {tasks} tasks, {connections} connections")


def check_log(served: Served, died: set[int]) -> None:
    lines = wait_for_log(served, COUNT)
    assert len(lines) == COUNT
    outcomes: set[tuple[str, str]] = set()
    for line in lines:
        assert line["status"] == 200
        check_explained(line)
        outcomes |= {(each["target"].split("/")[0], each["outcome"]) for each in line.get("tries", ())}
    assert sum(line["error"] is not None for line in lines) == len(died)
    assert {
        ("down", "unavailable"),
        ("slow", "timeout"),
        ("limited", "rate_limit"),
        ("limited", "ok"),
        ("shaky", "upstream"),
        ("shaky", "ok"),
        ("odd", "upstream"),
        ("odd", "ok"),
    } <= outcomes
    assert served.log("fault") == served.log("library") == []
