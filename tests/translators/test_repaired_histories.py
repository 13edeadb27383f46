"""Whatever order calls and results come in, what is sent is legal, by rules written apart from the repair."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from translators.chat.history import repair_history
from translators.responses.pairing import Placed, pairing_ids, repair_pairs

STEPS = st.lists(
    st.tuples(st.sampled_from(["call", "result", "user", "said"]), st.sampled_from("abc")), max_size=14
)


def chat(kind: str, name: str) -> dict[str, Any]:
    if kind == "call":
        spec = {"name": "f", "arguments": "{}"}
        calls = [{"id": name, "type": "function", "function": spec}]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if kind == "result":
        return {"role": "tool", "tool_call_id": name, "content": "r"}
    return {"role": "user" if kind == "user" else "assistant", "content": name}


def item(kind: str, name: str) -> dict[str, Any]:
    if kind == "call":
        return {"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"}
    if kind == "result":
        return {"type": "function_call_output", "call_id": name, "output": "r"}
    return {"type": "message", "role": "user" if kind == "user" else "assistant", "content": name}


@given(STEPS)
def test_chat_results_follow_their_calls_directly(steps: list[tuple[str, str]]) -> None:
    repaired, _ = repair_history([chat(*step) for step in steps])
    wanted: list[str] = []
    ids: list[str] = []
    for message in repaired:
        if message["role"] == "tool":
            assert message["tool_call_id"] in wanted
            wanted.remove(message["tool_call_id"])
            continue
        assert not wanted
        wanted = [call["id"] for call in message.get("tool_calls", [])]
        ids += wanted
    assert not wanted
    assert len(set(ids)) == len(ids)
    assert repair_history(repaired) == (repaired, [])


@given(STEPS)
def test_responses_results_have_one_call_before_them(steps: list[tuple[str, str]]) -> None:
    placed, _ = repair_pairs([Placed(item(*step), "") for step in steps])
    items = [one.item for one in placed]
    tail = len(items)
    while tail and items[tail - 1]["type"] == "function_call":
        tail -= 1
    waiting: list[str] = []
    seen: set[str] = set()
    for each in items[:tail]:
        if each["type"] == "function_call":
            assert each["call_id"] not in seen
            seen.add(each["call_id"])
            waiting.append(each["call_id"])
        elif each["type"] == "function_call_output":
            waiting.remove(each["call_id"])
    assert not waiting
    assert repair_pairs(placed) == (placed, [])


def test_the_ids_of_calls_and_results_are_told_once_each() -> None:
    items = [
        item("call", "a"),
        item("user", "x"),
        item("result", "a"),
        item("result", "b"),
        item("result", "b"),
    ]
    native = {"type": "computer_call_output", "call_id": "c", "output": {}}
    assert pairing_ids([*items, native, {"type": "web_search_call"}]) == (["a"], ["a", "b", "c"])


def test_a_native_result_stays_in_a_list_that_is_mended() -> None:
    native = {"type": "computer_call_output", "call_id": "c", "output": {}}
    items = [item("result", "a"), native, item("user", "x")]
    placed, repairs = repair_pairs([Placed(each, "") for each in items])
    assert [one.item for one in placed[1:]] == items[1:]
    assert [repair.kind for repair in repairs] == ["orphan_result"]
