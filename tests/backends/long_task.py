"""The model's side of a long coding task: as many tool turns as the prompt asks for.

The whole script follows from the conversation, so a repeated request gets the same turn again:
the last prompt names the task, the results after it say how far it is. Where a client has
shortened the conversation to a summary, the summary (this model's own words) carries the count.
Every step looks at the results of the one before, and a wrong one ends the task with its reason.

A tool is found as a model finds it: one of the client's own by its name, one of a foreign
server by what its description says, whatever the gateway has made of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

Json = Mapping[str, Any]

DONE, FAILED = "WORKSHOP DONE", "WORKSHOP FAILED"
FORMAT_TOOL = "Give the final answer by calling this function"
"""How a gateway describes the tool that stands for a structured answer."""
NOTES, JOURNAL = "notes.md", "journal.txt"

_LONG = re.compile(r"Run the workshop in (\d+) steps\.$")
_GAUGE = re.compile(r"Read the gauge (\d+) times\.$")
_AGAIN = re.compile(r"Look at the (\d+)th shelf once more\.$")
_STUCK = re.compile(r"Put (\d+) kettle on and wait\.$")
_PROGRESS = re.compile(r"\[\[(long|again|gauge) (\d+) done (\d+)\]\]")


def long_prompt(steps: int) -> str:
    return f"Run the workshop in {steps} steps."


def again_prompt(shelf: int) -> str:
    return f"Look at the {shelf}th shelf once more."


def gauge_prompt(times: int) -> str:
    return f"Read the gauge {times} times."


STUCK_PROMPT = "Put 1 kettle on and wait."
"""Two calls at once, one of which takes longer than anybody waits."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One call: `tool` is a name, or words of a description; `expects` must be in its result."""

    tool: str
    arguments: Json
    expects: str
    image: bool = False
    """The result holds a picture, which must reach the model."""


@dataclass(frozen=True, slots=True)
class Step:
    text: str
    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Called:
    """A call as this turn makes it; `key` is its place in the whole task and never repeats."""

    key: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Turn:
    text: str
    calls: tuple[Called, ...] = ()
    step: int | None = None
    """Which step of the task; None: the last word, a summary or a failure."""
    full: bool = False
    """The conversation has become too long: the backend reports a usage that says so."""


# --- the steps ------------------------------------------------------------------------


def patch_adding(name: str, text: str) -> Ask:
    return Ask(
        "apply_patch",
        {"input": f"*** Begin Patch\n*** Add File: {name}\n+{text}\n*** End Patch\n"},
        "Success",
    )


def patch_changing(name: str, old: str, new: str) -> Ask:
    told = f"*** Begin Patch\n*** Update File: {name}\n@@\n-{old}\n+{new}\n*** End Patch\n"
    return Ask("apply_patch", {"input": told}, "Success")


def shell(command: str, expects: str) -> Ask:
    return Ask("exec_command", {"cmd": command}, expects)


def plan_of(at: int) -> Ask:
    """The plan tool, with its steps in the state that belongs to moment `at` (0 to 2)."""
    states = ["completed"] * at + ["in_progress"] + ["pending"] * 2
    names = ["measure", "write down", "check"]
    plan = [{"step": name, "status": state} for name, state in zip(names, states, strict=False)]
    return Ask("update_plan", {"explanation": "as far as it goes", "plan": plan}, "Plan updated")


ODD = {
    "shape": {"kind": "round", "radius": 2.5},
    "$special": "ключ",
    "a.b": [1, None, True],
    "nested": {"again": {}},
}
"""Arguments for the tool whose schema has references, unions and keys no identifier would have."""

OPENING = (
    Step("A plan first.", (plan_of(0),)),
    Step("", (shell("printf 'day one\\n' > journal.txt && cat journal.txt", "day one"),)),
    Step("Notes — «Übersicht» 🧭", (patch_adding(NOTES, "state: 0 «offen» \\n 🧭"),)),
    Step(
        "Four at once.",
        (
            shell("wc -l journal.txt", "1 journal.txt"),
            Ask("north store", {"shelf": 1}, "north shelf 1"),
            Ask("south store", {"shelf": 2}, "south shelf 2"),
            shell(f"cat {NOTES}", "offen"),
        ),
    ),
    Step("", (Ask("picture of the bench", {"zoom": 1}, "bench at zoom 1", image=True),)),
    Step("Now the odd one.", (Ask("odd shapes", ODD, "odd shapes understood"),)),
    Step(
        "Two pictures and a line.",
        (
            Ask("picture of the bench", {"zoom": 2}, "bench at zoom 2", image=True),
            shell("echo between", "between"),
            Ask("picture of the bench", {"zoom": 3}, "bench at zoom 3", image=True),
        ),
    ),
    Step("", (Ask("view_image", {"path": "pic.png"}, "", image=True),)),
    Step("", (plan_of(1),)),
)


def _filler(at: int) -> Step:
    kind = at % 4
    if kind == 0:
        return Step("", (shell(f"echo 'line {at}' >> {JOURNAL}; tail -n 1 {JOURNAL}", f"line {at}"),))
    if kind == 1:
        return Step(f"Step {at}.", (patch_changing(NOTES, _state(at - 4), _state(at)),))
    if kind == 2:
        return Step("", (Ask("south store", {"shelf": at}, f"south shelf {at}"),))
    asks = (Ask("north store", {"shelf": at}, f"north shelf {at}"), shell(f"echo both {at}", f"both {at}"))
    return Step(f"Step {at}, twice.", asks)


def _state(at: int) -> str:
    """The line of the notes once step `at` has written it."""
    return f"state: {at}" if at >= len(OPENING) else "state: 0 «offen» \\n 🧭"


@lru_cache
def long_steps(count: int) -> tuple[Step, ...]:
    """`count` tool turns: the opening, as many fillers as it takes, and the plan at its end."""
    fillers = [_filler(at) for at in range(len(OPENING), count - 1)]
    return (*OPENING, *fillers, Step("", (plan_of(2),)))[:count]


def notes_after(count: int) -> str:
    changes = [at for at in range(len(OPENING), count - 1) if at % 4 == 1]
    return _state(changes[-1] if changes else 0) + "\n"


def journal_after(count: int) -> str:
    lines = [f"line {at}" for at in range(len(OPENING), count - 1) if at % 4 == 0]
    return "\n".join(["day one", *lines]) + "\n"


def compact_at(count: int) -> int:
    """The step whose answer reports the full context."""
    return count // 2 + 1


def asked_of(tool: str, count: int) -> list[Json]:
    """The arguments with which the long task calls a tool, in order."""
    return [ask.arguments for step in long_steps(count) for ask in step.asks if ask.tool == tool]


def steps_of(task: str, number: int) -> tuple[Step, ...]:
    if task == "long":
        return long_steps(number)
    if task == "again":
        return (Step("Once more.", (Ask("north store", {"shelf": number}, f"north shelf {number}"),)),)
    if task == "stuck":
        return (Step("It takes a while.", (shell("touch kettle.txt; sleep 60", ""), shell("sleep 61", ""))),)
    return tuple(_gauge_step(at) for at in range(number))


def _gauge_step(at: int) -> Step:
    many = 1 + (at % 3 == 2)
    return Step(
        f"Reading {at}." if at % 2 else "",
        tuple(Ask("read_gauge", {"gauge": at, "part": part}, f"gauge {at}.{part}") for part in range(many)),
    )


# --- where the conversation stands ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    task: str
    number: int
    done: int
    """Steps done before the conversation was shortened."""
    since: Sequence[Json]
    """The messages after the prompt or the summary."""


def place_of(messages: Sequence[Json]) -> Place | None:
    """The task that the last prompt gave, None where none did."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] != "user":
            continue
        text = text_of(messages[at]["content"])
        if found := _PROGRESS.search(text):
            return Place(found[1], int(found[2]), int(found[3]), messages[at + 1 :])
        for task, pattern in (("long", _LONG), ("again", _AGAIN), ("gauge", _GAUGE), ("stuck", _STUCK)):
            if found := pattern.search(text.rstrip()):
                return Place(task, int(found[1]), 0, messages[at + 1 :])
    return None


def next_turn(body: Json) -> Turn:
    """What the model says to this (legal) Chat request."""
    place = place_of(body["messages"])
    if place is None:
        return Turn(f"{FAILED}: no prompt is known")
    results = list(_results(place.since))
    steps = steps_of(place.task, place.number)[place.done :]
    at, wrong = _judge(steps, results)
    if wrong:
        return Turn(f"{FAILED}: step {place.done + at}: {wrong}")
    offered = _offered(body)
    if not offered:
        return Turn(f"Where we are: [[{place.task} {place.number} done {place.done + at}]]")
    if place.task == "long" and place.done + at == 0 and not _pictures(body["messages"]):
        return Turn(f"{FAILED}: the picture of the prompt did not arrive")
    if at == len(steps):
        return _last(body, f"{DONE}: {place.task} {place.number}")
    full = place.task == "long" and place.done == 0 and at == compact_at(place.number)
    return _turn(steps[at], place.done + at, place, offered, full)


def _turn(step: Step, at: int, place: Place, offered: Sequence[Json], full: bool) -> Turn:
    calls = []
    for number, ask in enumerate(step.asks):
        name = _find(ask.tool, offered)
        if name is None:
            return Turn(f"{FAILED}: step {at}: no tool for {ask.tool!r}")
        arguments = orjson.dumps(ask.arguments).decode()
        calls.append(Called(f"{place.task}{place.number}-{at}-{number}", name, arguments))
    return Turn(step.text, tuple(calls), at, full)


def _last(body: Json, words: str) -> Turn:
    """The last word: plain, or as JSON where a schema was asked for in whatever way."""
    answer = orjson.dumps({"answer": words}).decode()
    form = [tool["function"] for tool in body.get("tools") or [] if is_format_tool(tool)]
    if form:
        return Turn("", (Called("answer", form[0]["name"], answer),))
    return Turn(answer if "response_format" in body else words)


def _judge(steps: Sequence[Step], results: Sequence[tuple[str, bool]]) -> tuple[int, str]:
    """How many steps are done, and what is wrong with their results."""
    used = 0
    for at, step in enumerate(steps):
        got = results[used : used + len(step.asks)]
        if len(got) < len(step.asks):
            return at, f"{len(got)} of {len(step.asks)} results" if got else ""
        for ask, (text, picture) in zip(step.asks, got, strict=True):
            if ask.expects not in text:
                return at, f"{ask.tool} gave {text[:300]!r}"
            if ask.image and not picture:
                return at, f"{ask.tool} gave no picture"
        used += len(got)
    return len(steps), ""


def _results(messages: Sequence[Json]) -> Iterator[tuple[str, bool]]:
    """Text of each call's result in the order of the calls, and whether pictures came with its group."""
    for at, message in enumerate(messages):
        calls = message.get("tool_calls") or []
        if not calls:
            continue
        after = list(_group(messages[at + 1 :]))
        texts = {m["tool_call_id"]: text_of(m["content"]) for m in after if m["role"] == "tool"}
        pictures = bool(_pictures(after))
        yield from ((texts[call["id"]], pictures) for call in calls if call["id"] in texts)


def _group(messages: Sequence[Json]) -> Iterator[Json]:
    """What follows a calling message until the model speaks again."""
    for message in messages:
        if message["role"] == "assistant":
            return
        yield message


def _pictures(messages: Sequence[Json]) -> list[str]:
    """URLs of the pictures in user messages."""
    return [
        part["image_url"]["url"]
        for message in messages
        if message["role"] == "user" and isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def _offered(body: Json) -> list[Json]:
    return [tool["function"] for tool in body.get("tools") or [] if not is_format_tool(tool)]


def is_format_tool(tool: Json) -> bool:
    return FORMAT_TOOL in str(tool["function"].get("description"))


def _find(tool: str, offered: Sequence[Json]) -> str | None:
    names = [str(function["name"]) for function in offered]
    if tool in names:
        return tool
    return next((str(f["name"]) for f in offered if tool in str(f.get("description"))), None)


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])
