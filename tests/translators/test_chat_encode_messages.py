"""Items as Chat messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translators.chat_edits import OPENAI, profile
from translators.chat.encode import encode_request
from translators.dialect import Encoded
from translators.errors import ProxyError
from translators.ir import (
    AdditionalTools,
    Audio,
    Call,
    File,
    Image,
    Item,
    Message,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    Shape,
    Text,
    ToolCall,
    ToolResult,
)

Json = dict[str, Any]
DATA = "data:image/png;base64,AA=="


def encode(items: list[Item], rules: Json | None = None, shape: Shape = "responses") -> Encoded:
    return encode_request(Call(shape=shape, model="m", items=tuple(items)), profile(**(rules or {})))


def messages(items: list[Item], rules: Json | None = None, shape: Shape = "responses") -> list[Json]:
    written: list[Json] = encode(items, rules, shape).body["messages"]
    return written


def user(*parts: Part | str, at: str = "/input/0", **more: Any) -> Message:
    return Message(
        "user", tuple(Text(part) if isinstance(part, str) else part for part in parts), at=at, **more
    )


def said(*parts: Part | str, at: str = "/input/1") -> Message:
    return Message("assistant", tuple(Text(part) if isinstance(part, str) else part for part in parts), at=at)


def call(call_id: str, arguments: str = "{}", at: str = "/input/2") -> ToolCall:
    return ToolCall(call_id, "f", arguments, at=at)


def result(call_id: str, *parts: Part | str, at: str = "/input/3", **more: Any) -> ToolResult:
    made = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return ToolResult(call_id, made, at=at, **more)


def wire_call(call_id: str, arguments: str = "{}") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def wire_turn(*call_ids: str, content: Any = None, **more: Any) -> Json:
    return {"role": "assistant", "content": content, "tool_calls": [wire_call(c) for c in call_ids], **more}


def wire_result(call_id: str, content: Any = "r") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


U = {"role": "user", "content": "x"}


# --- parts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "content"),
    [
        (("a",), "a"),
        (("a", "b"), "ab"),
        ((), ""),
        ((Text("a", ({"type": "url_citation", "url": "u"},)),), "a"),
        (
            ("a", Image(DATA), ""),
            [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": DATA}}],
        ),
        ((Image(DATA, detail="low"),), [{"type": "image_url", "image_url": {"url": DATA, "detail": "low"}}]),
        (
            (Image(DATA, detail="original"),),
            [{"type": "image_url", "image_url": {"url": DATA, "detail": "high"}}],
        ),
        ((Image(DATA, detail="odd"),), [{"type": "image_url", "image_url": {"url": DATA}}]),
        (
            (File(data="data:,x", filename="a.pdf"),),
            [{"type": "file", "file": {"filename": "a.pdf", "file_data": "data:,x"}}],
        ),
        ((File(file_id="file_1"),), [{"type": "file", "file": {"file_id": "file_1"}}]),
        (
            (Audio("AA==", "wav"),),
            [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}],
        ),
        ((Opaque("chat", {"type": "video_url"}),), [{"type": "video_url"}]),
    ],
)
def test_parts(parts: tuple[Part | str, ...], content: Any) -> None:
    assert messages([user(*parts)]) == [{"role": "user", "content": content}]


@pytest.mark.parametrize(
    ("item", "shape", "param"),
    [
        (user("a", File(url="https://x"), at="/input/3"), "responses", "input[3].content[1]"),
        (user(Image(file_id="f"), at="/messages/3"), "chat", "messages[3].content[0]"),
        (result("a", "t", File(url="https://x"), at="/input/3"), "responses", "input[3].output[1]"),
        (result("a", File(url="https://x"), at="/messages/3"), "chat", "messages[3].content[0]"),
        (
            user("a", Opaque("responses", {"type": "computer_screenshot"}, "/input/0/content/1")),
            "responses",
            "input[0].content[1]",
        ),
    ],
)
def test_a_part_without_a_chat_form_is_refused_by_its_place(item: Item, shape: Shape, param: str) -> None:
    with pytest.raises(ProxyError) as caught:
        encode([item], shape=shape)
    assert (caught.value.http_status, caught.value.param) == (400, param)


def test_a_refused_picture_is_named_by_its_item() -> None:
    remote = [user("x"), user(Image("https://x/y.png"), at="/input/7")]
    with pytest.raises(ProxyError) as caught:
        encode(remote, {"messages": {"remote_images": "reject"}})
    assert caught.value.param == "input[7]"


# --- turns -----------------------------------------------------------------------------

TURNS: dict[str, tuple[list[Item], list[Json]]] = {
    "roles": (
        [
            Message("system", (Text("s"),)),
            Message("developer", (Text("d"),)),
            user("x", name="ann", id="msg_1", phase="commentary", extra={"status": "completed"}),
            said("y"),
        ],
        [
            {"role": "system", "content": "s\n\nd"},
            {"role": "user", "content": "x", "name": "ann"},
            {"role": "assistant", "content": "y"},
        ],
    ),
    "parallel calls are one message": (
        [user("x"), call("a"), call("b"), result("a", "1"), result("b", "2")],
        [U, wire_turn("a", "b"), wire_result("a", "1"), wire_result("b", "2")],
    ),
    "with the text before them": (
        [user("x"), said("Let me look."), call("a"), result("a", "r")],
        [U, wire_turn("a", content="Let me look."), wire_result("a")],
    ),
    "or after them": (
        [user("x"), call("a"), said("Running."), result("a", "r")],
        [U, wire_turn("a", content="Running."), wire_result("a")],
    ),
    "or on both sides": (
        [said("One."), call("a"), said("Two."), call("b"), result("a", "r"), result("b", "r")],
        [wire_turn("a", "b", content="One.\n\nTwo."), wire_result("a"), wire_result("b")],
    ),
    "empty text is none": (
        [said(""), call("a"), result("a", "r")],
        [wire_turn("a"), wire_result("a")],
    ),
    "a new turn after results": (
        [call("a"), result("a", "r"), said("Next."), call("b"), result("b", "r")],
        [wire_turn("a"), wire_result("a"), wire_turn("b", content="Next."), wire_result("b")],
    ),
    "two texts are two messages": (
        [user("x"), said("Hello!"), said("Again"), user("x")],
        [U, {"role": "assistant", "content": "Hello!"}, {"role": "assistant", "content": "Again"}, U],
    ),
    "an empty answer": ([user("x"), said(""), user("x")], [U, U]),
    "no arguments": (
        [call("a", ""), result("a", "r")],
        [wire_turn("a"), wire_result("a")],
    ),
    "results line by line": ([call("a"), result("a", "1", "2")], [wire_turn("a"), wire_result("a", "1\n2")]),
    "a result without words": ([call("a"), result("a")], [wire_turn("a"), wire_result("a", "")]),
    "pictures of results come after all of them": (
        [call("a"), call("b"), result("a", "1", Image(DATA)), result("b", "2")],
        [
            wire_turn("a", "b"),
            wire_result("a", "1\n[The attachments of this result follow in the next user message.]"),
            wire_result("b", "2"),
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "[Attachments of the result of f (a):]"},
                    {"type": "image_url", "image_url": {"url": DATA}},
                ],
            },
        ],
    ),
    "tools in the input are no message": (
        [AdditionalTools((), at="/input/0"), user("x")],
        [U],
    ),
    "a refusal is text": (
        [user("x"), said(Refusal("No.")), user("x")],
        [U, {"role": "assistant", "content": "No."}, U],
    ),
}


@pytest.mark.parametrize(("items", "wanted"), TURNS.values(), ids=TURNS)
def test_turns(items: list[Item], wanted: list[Json]) -> None:
    encoded = encode(items)
    assert encoded.body["messages"] == wanted
    assert (encoded.losses, encoded.repairs) == ([], [])


REPAIRED: dict[str, tuple[list[Item], list[Json]]] = {
    "a warning in between": (
        [call("a"), Message("developer", (Text("Careful"),)), result("a", "r"), user("x")],
        [wire_turn("a"), wire_result("a"), {"role": "system", "content": "Careful"}, U],
    ),
    "an orphan": (
        [user("x"), result("gone", "old"), user("x")],
        [U, {"role": "user", "content": "[Tool result gone]: old"}, U],
    ),
    "an orphan that has a name": (
        [user("x"), result("", "tick", name="automation")],
        [U, {"role": "user", "content": "[Tool result automation]: tick"}],
    ),
    "a call without a result": (
        [user("x"), call("a")],
        [
            U,
            wire_turn("a"),
            wire_result("a", "[No result: the call of f was never answered. It may not have run.]"),
        ],
    ),
}


@pytest.mark.parametrize(("items", "wanted"), REPAIRED.values(), ids=REPAIRED)
@pytest.mark.parametrize("rules", [{}, {**OPENAI, "messages": {"developer": "system"}}])
def test_the_history_is_legal_for_every_backend(items: list[Item], wanted: list[Json], rules: Json) -> None:
    encoded = encode(items, rules)
    assert encoded.body["messages"] == wanted
    assert len(encoded.repairs) == 1


def test_custom_calls_where_the_backend_has_them() -> None:
    items: list[Item] = [ToolCall("a", "p", "PATCH", kind="custom"), result("a", "r", kind="custom")]
    assert messages(items, OPENAI)[0]["tool_calls"] == [
        {"id": "a", "type": "custom", "custom": {"name": "p", "input": "PATCH"}}
    ]


def test_full_detail_goes_to_openai_as_it_is() -> None:
    part = {"type": "image_url", "image_url": {"url": DATA, "detail": "original"}}
    assert messages([user(Image(DATA, detail="original"))], OPENAI)[0]["content"] == [part]


def test_a_refusal_goes_back_to_openai_as_one() -> None:
    assert messages([user("x"), said(Refusal("No."))], OPENAI)[1] == {
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "No."}],
    }


def test_items_of_other_shapes_are_left_out_and_reported() -> None:
    items: list[Item] = [
        Opaque("responses", {"type": "web_search_call", "id": "ws_1"}, "/input/0"),
        user("x", at="/input/1"),
        Opaque("responses", {"type": "compaction"}, "/input/2"),
    ]
    for shape in ("responses", "chat"):
        encoded = encode(items, shape=shape)
        assert encoded.body["messages"] == [U]
        assert [(loss.pointer, loss.kind) for loss in encoded.losses] == [
            ("/input/0", "bookkeeping"),
            ("/input/2", "content"),
        ]


def test_the_client_s_own_shape_gets_back_what_has_no_name() -> None:
    items: list[Item] = [
        Opaque("chat", {"role": "critic", "content": "c"}, "/messages/0"),
        user("x", at="/messages/1", extra={"weight": 1}),
        ToolCall("a", "f", "{}", at="/messages/2/tool_calls/0", extra={"thoughtSignature": "s"}),
        result("a", "r", at="/messages/3", name="f", extra={"is_error": False}),
    ]
    assert messages(items, shape="chat") == [
        {"role": "critic", "content": "c"},
        {**U, "weight": 1},
        {"role": "assistant", "content": None, "tool_calls": [{**wire_call("a"), "thoughtSignature": "s"}]},
        {**wire_result("a"), "name": "f", "is_error": False},
    ]
    assert messages(items[1:]) == [U, wire_turn("a"), wire_result("a")]


# --- reasoning -------------------------------------------------------------------------

FIELD = {"reasoning": {"replay": "field"}}
THOUGHT = Reasoning(("sum", "mary"), ("raw",), at="/input/1")
SHORT = Reasoning(("sum", "mary"), at="/input/1")
SEALED = Reasoning(sealed="gAAAA", at="/input/1")
EMPTY = Reasoning(at="/input/1")


@pytest.mark.parametrize("item", [THOUGHT, SHORT, SEALED])
def test_reasoning_nobody_wants_back_is_reported_by_its_item(item: Reasoning) -> None:
    encoded = encode([user("x"), item, said("y"), user("x")])
    assert encoded.body["messages"] == [U, {"role": "assistant", "content": "y"}, U]
    assert [(loss.pointer, loss.kind) for loss in encoded.losses] == [("/input/1", "bookkeeping")]


def test_reasoning_with_nothing_in_it_is_no_loss() -> None:
    for rules in ({}, FIELD):
        assert encode([user("x"), EMPTY, said("y")], rules).losses == []


@pytest.mark.parametrize(
    ("items", "wanted", "lost"),
    [
        pytest.param(
            [THOUGHT, said("y")],
            [{"role": "assistant", "content": "y", "reasoning_content": "raw"}],
            [],
            id="what it thought, not its summary",
        ),
        pytest.param(
            [SHORT, call("a"), THOUGHT, call("b"), result("a", "r"), result("b", "r")],
            [
                wire_turn("a", "b", reasoning_content="sum\n\nmary\n\nraw"),
                wire_result("a"),
                wire_result("b"),
            ],
            [],
            id="before each call of a turn",
        ),
        pytest.param(
            [call("a"), SHORT, said("y"), result("a", "r")],
            [wire_turn("a", content="y", reasoning_content="sum\n\nmary"), wire_result("a")],
            [],
            id="before text after a call",
        ),
        pytest.param(
            [said("a"), SHORT, said("b")],
            [
                {"role": "assistant", "content": "a"},
                {"role": "assistant", "content": "b", "reasoning_content": "sum\n\nmary"},
            ],
            [],
            id="between two texts",
        ),
        pytest.param([SEALED, said("y")], [{"role": "assistant", "content": "y"}], ["/input/1"], id="sealed"),
        pytest.param([SHORT, user("x")], [U], ["/input/1"], id="no answer follows"),
        pytest.param([user("x"), SHORT], [U], ["/input/1"], id="nothing follows"),
    ],
)
def test_reasoning_goes_back_with_the_turn_it_came_before(
    items: list[Item], wanted: list[Json], lost: list[str]
) -> None:
    encoded = encode(items, FIELD)
    assert encoded.body["messages"] == wanted
    assert [loss.pointer for loss in encoded.losses] == lost


def test_reasoning_details_of_a_chat_client_go_back_word_for_word() -> None:
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    item = Reasoning(("why",), at="/messages/0/reasoning", extra={"reasoning_details": details})
    alone = Reasoning(at="/messages/0/reasoning_details", extra={"reasoning_details": details})
    rules = {"reasoning": {"replay": "details", "replay_field": "reasoning_details"}}
    for items in ([item, said("y")], [alone, said("y")]):
        assert messages(items, rules, "chat") == [
            {"role": "assistant", "content": "y", "reasoning_details": details}
        ]
    twice = messages([item, call("a"), alone, call("b"), result("a", "r"), result("b", "r")], rules, "chat")
    assert twice[0]["reasoning_details"] == [*details, *details]
    encoded = encode([alone, said("y")], rules)
    assert [loss.pointer for loss in encoded.losses] == ["/messages/0/reasoning_details"]
