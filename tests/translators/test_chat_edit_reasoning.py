"""How much to reason: `reasoning.ask`, `efforts`, `map`, `drop_sampling` of the profile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.chat_edits import Edit, profile, table
from translators.chat.edit import edit_request
from translators.chat.edit_reasoning import is_thinking

ALL = ["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORT = "/reasoning_effort"


def ask(how: str = "openai", efforts: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"reasoning": {"ask": how, "efforts": ALL if efforts is None else efforts, **more}}


@pytest.mark.parametrize(
    ("efforts", "asked", "sent"),
    [
        (["low", "medium", "high"], "medium", "medium"),
        (["low", "medium", "high"], "xhigh", "high"),
        (["low", "medium", "high"], "max", "high"),
        (["low", "medium", "high"], "ultra", "high"),
        (["low", "medium", "high"], "minimal", "low"),
        (["low", "medium", "high"], "none", None),
        (["none", "low"], "none", "none"),
        (["none", "high"], "minimal", "high"),  # no effort becomes none
        (["medium", "high", "xhigh"], "low", "medium"),
        (["low", "high", "max"], "medium", "high"),
        (["low", "high", "max"], "xhigh", "max"),
        (["none"], "low", None),
        ([], "low", None),
        (["default"], "low", None),
        (["default", "low"], "default", "default"),
        (["low"], "banana", None),
    ],
)
def test_the_nearest_level_is_sent_and_any_other_than_the_asked_reported(
    efforts: list[str], asked: str, sent: str | None
) -> None:
    edited = edit_request({"messages": [], "reasoning_effort": asked}, profile(**ask(efforts=efforts)))
    assert edited.body.get("reasoning_effort") == sent
    assert [loss.pointer for loss in edited.losses] == ([] if sent == asked else [EFFORT])


BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 20480, "max": 24576}


@pytest.mark.parametrize(("level", "budget"), BUDGETS.items())
def test_a_budget_leaves_room_for_the_answer(level: str, budget: int) -> None:
    edited = edit_request({"messages": [], "reasoning_effort": level}, profile(**ask("thinking_budget")))
    assert edited.body == {
        "messages": [],
        "thinking": {"type": "enabled", "budget_tokens": budget},
        "max_tokens": budget + 4096,
    }
    assert edited.losses == []
    assert edited.body["max_tokens"] <= 32000


THOUGHT = {"type": "enabled", "budget_tokens": 2048}


@table(
    Edit("nothing asked", {"temperature": 1}, rules=ask("thinking_budget", drop_sampling=True)),
    Edit("an effort that is no text", {"reasoning_effort": {"effort": "low"}}),
    Edit(
        "a declared other level",
        {"reasoning_effort": "minimal"},
        {"reasoning_effort": "low"},
        ask(map={"minimal": "low"}),
        [EFFORT],
    ),
    Edit("no way to ask", {"reasoning_effort": "low"}, {}, ask("none"), [EFFORT]),
    Edit("no way to ask for nothing", {"reasoning_effort": "none"}, {}, ask("none")),
    # the object of OpenRouter, which clients send to any server
    Edit("an object", {"reasoning": {"effort": "low"}}, {"reasoning_effort": "low"}),
    Edit(
        "an object with more in it, and a level that is not there",
        {"reasoning": {"effort": "max", "exclude": True}},
        {"reasoning": {"exclude": True}, "reasoning_effort": "low"},
        ask(efforts=["low"]),
        ["/reasoning/effort"],
    ),
    Edit("an object that asks for nothing", {"reasoning": {"exclude": True}}),
    Edit("an object to one who wants it", {"reasoning": {"effort": "low"}}, rules=ask("reasoning_object")),
    Edit(
        "an effort as an object",
        {"reasoning_effort": "low"},
        {"reasoning": {"effort": "low"}},
        ask("reasoning_object"),
    ),
    Edit(
        "an effort into an object",
        {"reasoning_effort": "low", "reasoning": {"exclude": True}},
        {"reasoning": {"effort": "low", "exclude": True}},
        ask("reasoning_object"),
    ),
    Edit(
        "none as an object",
        {"reasoning_effort": "none"},
        {"reasoning": {"enabled": False}},
        ask("reasoning_object", ["low"]),
    ),
    Edit("an unknown level as an object", {"reasoning_effort": "?"}, {}, ask("reasoning_object"), [EFFORT]),
    # budgets
    Edit("none is no budget", {"reasoning_effort": "none"}, {}, ask("thinking_budget")),
    Edit("no level, no budget", {"reasoning_effort": "none"}, {}, ask("thinking_budget", ["low"])),
    Edit(
        "a limit above the budget stays",
        {"reasoning_effort": "low", "max_tokens": 2049},
        {"thinking": THOUGHT, "max_tokens": 2049},
        ask("thinking_budget"),
    ),
    Edit(
        "a limit below the budget is raised by it",
        {"reasoning_effort": "low", "max_tokens": 100},
        {"thinking": THOUGHT, "max_tokens": 2148},
        ask("thinking_budget"),
        ["/max_tokens"],
    ),
    Edit(
        "under its other name as well",
        {"reasoning_effort": "low", "max_completion_tokens": 100},
        {"thinking": THOUGHT, "max_completion_tokens": 2148},
        ask("thinking_budget"),
        ["/max_completion_tokens"],
    ),
    Edit(
        "what the client says in the backend's words goes first",
        {"reasoning_effort": "high", "thinking": THOUGHT, "max_tokens": "odd"},
        {"thinking": THOUGHT, "max_tokens": "odd"},
        ask("thinking_budget"),
    ),
    # other ways
    Edit(
        "adaptive",
        {"reasoning_effort": "max"},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
        ask("thinking_adaptive"),
    ),
    Edit("not adaptive", {"reasoning_effort": "none"}, {}, ask("thinking_adaptive")),
    Edit("nothing to adapt to", {"reasoning_effort": "?"}, {}, ask("thinking_adaptive"), [EFFORT]),
    Edit(
        "on, and the level beside it",
        {"reasoning_effort": "xhigh"},
        {"thinking": {"type": "enabled"}, "reasoning_effort": "max"},
        ask("thinking_toggle", ["low", "high", "max"], map={"xhigh": "max"}),
        [EFFORT],
    ),
    Edit(
        "off",
        {"reasoning_effort": "none"},
        {"thinking": {"type": "disabled"}},
        ask("thinking_toggle", ["low"]),
    ),
    Edit(
        "off, though none is a level",
        {"reasoning_effort": "none"},
        {"thinking": {"type": "disabled"}},
        ask("thinking_toggle"),
    ),
    Edit(
        "a switch on",
        {"reasoning_effort": "low"},
        {"enable_thinking": True},
        ask("enable_thinking"),
        [EFFORT],
    ),
    Edit("a switch off", {"reasoning_effort": "none"}, {"enable_thinking": False}, ask("enable_thinking")),
    # sampling
    Edit(
        "no sampling while it reasons",
        {"reasoning_effort": "low", "max_tokens": 9999, "temperature": 0, "top_p": 1, "top_k": 3},
        {"thinking": THOUGHT, "max_tokens": 9999},
        ask("thinking_budget", drop_sampling=True),
        ["/temperature", "/top_p", "/top_k"],
    ),
    Edit(
        "sampling while it does not",
        {"thinking": {"type": "disabled"}, "top_p": 1},
        rules=ask(drop_sampling=True),
    ),
)
def test_asking(case: Edit) -> None:
    case.check()


@pytest.mark.parametrize(
    ("body", "thinking"),
    [
        ({}, False),
        ({"reasoning_effort": "none"}, False),
        ({"reasoning_effort": "low"}, True),
        ({"thinking": {"type": "enabled"}}, True),
        ({"thinking": {"type": "adaptive"}, "reasoning_effort": "none"}, True),
        ({"thinking": {"type": "disabled"}, "reasoning_effort": "low"}, False),
        ({"enable_thinking": True}, True),
        ({"enable_thinking": False}, False),
        ({"reasoning": {"effort": "low"}}, True),
        ({"reasoning": {"effort": "none"}}, False),
        ({"reasoning": {"enabled": False}}, False),
    ],
)
def test_whether_a_body_asks_for_reasoning(body: dict[str, Any], thinking: bool) -> None:
    assert is_thinking(body) is thinking
