"""Messages one by one: keys, names, parts, refusals, calls, reasoning in the history."""

from __future__ import annotations

from typing import Any

from tests.translators.chat_edits import OPENAI, USER, Edit, Refusal, table

Json = dict[str, Any]
STRICT: Json = {"request": {"extra_keys": []}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
CALLS = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
RESULT = {"role": "tool", "tool_call_id": "a", "content": "r"}
MISTRAL = {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}
DATABRICKS = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "why", "signature": "s"}]}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def said(content: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **more}


def one(
    id: str, message: Json, wanted: Json | None, rules: Json | None = None, lost: str | None = None
) -> Edit:
    """A message between two of the user's; None: it is left out. `lost` is a place in the message."""
    given = [USER, message, USER]
    kept = [USER, USER] if wanted is None else [USER, wanted, USER]
    return _edit(id, given, kept, rules, lost)


def turn(id: str, message: Json, wanted: Json, rules: Json | None = None) -> Edit:
    """An assistant message with calls, and their result."""
    given, kept = ([USER, {**each, "tool_calls": CALLS}, RESULT] for each in (message, wanted))
    return _edit(id, given, kept, rules, None)


def _edit(id: str, given: list[Json], kept: list[Json], rules: Json | None, lost: str | None) -> Edit:
    losses = [] if lost is None else [f"/messages/1{lost}"]
    wanted = None if given == kept else {"messages": kept}
    return Edit(id, {"messages": given}, wanted, rules or {}, losses)


def rules(**messages: Any) -> Json:
    return {"messages": messages}


FINE = said("y", name="n", odd=1)


@table(
    one("nothing to do", FINE, FINE),
    # roles
    one("developer", {"role": "developer", "content": "d"}, {"role": "system", "content": "d"}),
    one(
        "developer as user",
        {"role": "developer", "content": "d"},
        {"role": "user", "content": "d"},
        rules(developer="user"),
    ),
    Edit("developer kept", {"messages": [{"role": "developer", "content": "d"}, USER]}, rules=OPENAI),
    # assistant messages
    one("nothing said", said(""), None),
    one("only white space", said([text(" ")]), None),
    one("null", said(None), None, OPENAI),
    one("nothing said, where that is fine", said(""), said(""), rules(drop_bare_assistant=False)),
    one("but never null", said(None), said(""), rules(drop_bare_assistant=False)),
    one("an empty list of calls", said("y", tool_calls=[]), said("y"), OPENAI),
    one("nulls of SDK objects", said("y", tool_calls=None, audio=None, refusal=None), said("y")),
    one(
        "nulls the exact knows",
        said("y", audio=None, refusal=None),
        said("y", audio=None, refusal=None),
        OPENAI,
    ),
    one("sound", said(None, audio={"id": "a"}), said("", audio={"id": "a"})),
    one("the older call", said(None, function_call={"name": "f"}), said(None, function_call={"name": "f"})),
    one("a refusal is what was said", said(None, refusal="no"), said("no")),
    one("a refusal beside text", said("y", refusal="no"), said("y\n\nno")),
    one("a refusal part", said([text("y"), {"type": "refusal", "refusal": " no"}]), said("y no")),
    one(
        "a refusal part beside a marked one",
        said([text("y", cache_control={}), {"type": "refusal", "refusal": "no"}]),
        said([text("y", cache_control={}), text("no")]),
    ),
    one("a refusal for the exact", said(None, refusal="no"), said(None, refusal="no"), OPENAI),
    turn("null beside calls", said(None), said(None)),
    turn("null left out", said(None), {"role": "assistant"}, rules(null_content="omit")),
    turn("null as nothing", said(None), said(""), rules(null_content="empty")),
    turn("null as a space", {"role": "assistant"}, said(" "), rules(null_content="space")),
    turn("text beside calls", said("t"), said("t"), rules(null_content="omit")),
    turn(
        "blank text beside calls",
        said([text("")]),
        {"role": "assistant"},
        rules(null_content="omit", drop_empty_text=True),
    ),
    one("an empty list", {"role": "user", "content": []}, {"role": "user", "content": ""}),
    one(
        "an empty list for the exact",
        {"role": "user", "content": []},
        {"role": "user", "content": []},
        OPENAI,
    ),
    one("nulls of a user", {"role": "user", "content": None, "name": None}, {"role": "user", "content": ""}),
    turn("an empty list beside calls", said([]), said(None)),
    one("an empty list as an answer", said([]), said(""), rules(drop_bare_assistant=False)),
    # results
    Edit(
        "a result without content",
        {"messages": [USER, said(None, tool_calls=CALLS), {**RESULT, "content": None}]},
        {"messages": [USER, said(None, tool_calls=CALLS), {**RESULT, "content": ""}]},
    ),
    Edit(
        "a result that is blank",
        {"messages": [USER, said("t", tool_calls=CALLS), {**RESULT, "content": [text("")]}]},
        {"messages": [USER, said("t", tool_calls=CALLS), {**RESULT, "content": ""}]},
        rules(drop_empty_text=True),
    ),
    one("a message without content", {"role": "system"}, {"role": "system", "content": ""}),
    one("left to the exact", {"role": "user", "content": None}, {"role": "user", "content": None}, OPENAI),
    # names
    one("a name", {**USER, "name": "n"}, USER, rules(user_name="drop"), "/name"),
    # parts
    one(
        "parts as a string",
        {"role": "user", "content": [text("a"), text("b", odd=1)]},
        {"role": "user", "content": "ab"},
        rules(text_parts="string"),
        "/content/1/odd",
    ),
    one(
        "unless there is more",
        {"role": "user", "content": [text("a"), IMAGE]},
        {"role": "user", "content": [text("a"), IMAGE]},
        rules(text_parts="string"),
    ),
    Edit(
        "results line by line",
        {"messages": [USER, said("t", tool_calls=CALLS), {**RESULT, "content": [text("a"), text("b")]}]},
        {"messages": [USER, said("t", tool_calls=CALLS), {**RESULT, "content": "a\nb"}]},
        rules(text_parts="string"),
    ),
    one(
        "blank parts",
        {"role": "user", "content": [text(""), IMAGE, text("a")]},
        {"role": "user", "content": [IMAGE, text("a")]},
        rules(drop_empty_text=True),
    ),
    one("only blank parts", {"role": "user", "content": [text(" ")]}, None, rules(drop_empty_text=True)),
    one("a blank message", {"role": "user", "content": "\n"}, None, rules(drop_empty_text=True)),
    Edit(
        "a blank message is better than none",
        {"messages": [{"role": "user", "content": ""}]},
        rules=rules(drop_empty_text=True),
    ),
    # closed schemas
    one(
        "only known keys of messages and calls",
        said("y", annotations=[], thinking_blocks=[], provider="p", function_call=None),
        said("y"),
        STRICT,
        "/provider",
    ),
    one("a name is known", said("y", name="n"), said("y", name="n"), STRICT),
    one(
        "an unknown role",
        {"role": "critic", "content": "c", "odd": 1},
        {"role": "critic", "content": "c"},
        STRICT,
        "/odd",
    ),
    one(
        "only known keys of parts",
        {
            "role": "user",
            "content": [text("a", cache_control={"type": "ephemeral"}), {"type": "odd", "x": 1}, "odd"],
        },
        {"role": "user", "content": [text("a"), {"type": "odd", "x": 1}, "odd"]},
        STRICT,
        "/content/0/cache_control",
    ),
    one(
        "and of what they hold",
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,", "format": "png"}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        STRICT,
        "/content/0/image_url/format",
    ),
    Edit(
        "and of what calls hold",
        {
            "messages": [
                USER,
                said(None, tool_calls=[{**CALLS[0], "function": {**CALLS[0]["function"], "parsed": None}}]),
                RESULT,
            ]
        },
        {"messages": [USER, said(None, tool_calls=CALLS), RESULT]},
        STRICT,
    ),
    one(
        "full detail",
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:,", "detail": "original"}}],
        },
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:,", "detail": "high"}}],
        },
    ),
    one(
        "parts of the other shape",
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "a", "annotations": []},
                {"type": "output_text", "text": "b"},
                {"type": "input_image", "image_url": "data:,", "detail": "low"},
                {"type": "image_url", "image_url": "data:,"},
                {"type": "input_image", "image_url": {"url": "data:,"}},
                {"type": "input_file", "file_data": "data:,", "filename": "a", "file_id": None},
                {"type": "input_text", "text": 3},
            ],
        },
        {
            "role": "user",
            "content": [
                text("a"),
                text("b"),
                {"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "data:,"}},
                {"type": "image_url", "image_url": {"url": "data:,"}},
                {"type": "file", "file": {"file_data": "data:,", "filename": "a"}},
                {"type": "input_text", "text": 3},
            ],
        },
    ),
    one(
        "which the exact is left to judge",
        {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        OPENAI,
    ),
    Edit(
        "only known keys of calls and results",
        {
            "messages": [
                USER,
                said(None, tool_calls=[{**CALLS[0], "index": 0, "thoughtSignature": "s"}, "odd"]),
                {**RESULT, "name": "f"},
            ]
        },
        {"messages": [USER, said(None, tool_calls=[*CALLS, "odd"]), RESULT]},
        {**STRICT, "answer": {"exact": True}},
        ["/messages/1/tool_calls/0/index", "/messages/1/tool_calls/0/thoughtSignature", "/messages/2/name"],
    ),
    Edit(
        "but the signature that must come back",
        {"messages": [USER, said(None, tool_calls=[{**CALLS[0], "thoughtSignature": "s"}]), RESULT]},
        rules={**STRICT, "reasoning": {"signature": "tool_calls[].thoughtSignature"}},
    ),
    # pictures
    one(
        "a picture in the message",
        {"role": "user", "content": [IMAGE]},
        {"role": "user", "content": [IMAGE]},
        rules(remote_images="reject"),
    ),
    one(
        "a remote picture is fetched elsewhere",
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
        rules(remote_images="inline"),
    ),
)
def test_messages(case: Edit) -> None:
    case.check()


def replay(how: str, **more: Any) -> Json:
    return {"reasoning": {"replay": how, "scope": "all", **more}}


VLLM = replay("field", replay_field="reasoning")
DEEPSEEK = replay("field", replay_on="tool_turns", placeholder=" ")


@table(
    # never
    one("a field goes", said("y", reasoning_content="why"), said("y"), lost="/reasoning_content"),
    one(
        "every field goes, reported once",
        said("y", reasoning="", thinking_blocks=[{"thinking": "w"}], reasoning_details=[1]),
        said("y"),
        lost="/thinking_blocks",
    ),
    one("also for the exact", said("y", reasoning="why"), said("y"), OPENAI, "/reasoning"),
    one("an empty field is no loss", said("y", reasoning_content=None), said("y")),
    one("a part goes", said([DATABRICKS, text("y")]), said([text("y")]), lost="/content"),
    one("nothing else was said", said("", reasoning_content="why"), None, lost="/reasoning_content"),
    one("nothing but a part", said([{"type": "redacted_thinking", "data": "x"}]), None, lost="/content"),
    one("a picture is something", said([MISTRAL, IMAGE]), said([IMAGE]), lost="/content"),
    one("a message of reasoning", {"role": "reasoning", "content": "why"}, None, lost=""),
    # field
    one("in the field it came in", said("y", reasoning="why"), said("y", reasoning="why"), VLLM),
    one("in the other field", said("y", reasoning_content="why"), said("y", reasoning="why"), VLLM),
    one(
        "the first with words in it",
        said("y", reasoning_content=" ", thinking_blocks=[{"type": "thinking", "thinking": "why"}]),
        said("y", reasoning="why"),
        VLLM,
    ),
    one("out of a part", said([DATABRICKS, text("y")]), said([text("y")], reasoning="why"), VLLM),
    one(
        "details have words too",
        said("y", reasoning_details=[{"text": "a"}, 3, {"summary": "b"}]),
        said("y", reasoning="a\n\nb"),
        VLLM,
    ),
    one("no words, no field", said("y", reasoning_content=" "), said("y"), VLLM),
    one("reasoning alone is sent back", said(None, reasoning_content="why"), said("", reasoning="why"), VLLM),
    one(
        "known to a closed schema", said("y", reasoning="why"), said("y", reasoning="why"), {**VLLM, **STRICT}
    ),
    # on turns with calls only
    one("not on this turn", said("y", reasoning_content="why"), said("y"), DEEPSEEK, "/reasoning_content"),
    turn("on this turn", said(None, reasoning_content="why"), said(None, reasoning_content="why"), DEEPSEEK),
    turn("something on this turn", said(None), said(None, reasoning_content=" "), DEEPSEEK),
    turn("something for nothing", said(None, reasoning="  "), said(None, reasoning_content=" "), DEEPSEEK),
    # parts
    one(
        "as a part",
        said("y", reasoning_content="why"),
        said([MISTRAL, text("y")]),
        replay("parts", parts=["thinking"]),
    ),
    one(
        "as a part of the other form",
        said("", reasoning="why"),
        said([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "why"}]}]),
        replay("parts"),
    ),
    one(
        "a part as it came",
        said([MISTRAL, text("y")], reasoning="x"),
        said([MISTRAL, text("y")]),
        replay("parts"),
    ),
    # details
    one(
        "details as they came",
        said("y", reasoning_details=[{"data": "x"}], reasoning="why"),
        said("y", reasoning_details=[{"data": "x"}]),
        replay("details", replay_field="reasoning_details"),
    ),
    one(
        "details of words",
        said("y", reasoning="why"),
        said("y", reasoning_details=[{"type": "reasoning.text", "text": "why"}]),
        replay("details", replay_field="reasoning_details"),
    ),
    # tags
    one(
        "between tags",
        said("y", reasoning="why"),
        said("<r>why</r>\ny"),
        replay("tags", tags=["<r>", "</r>"]),
    ),
    one(
        "between the usual tags",
        said([IMAGE], reasoning="why"),
        said([text("<think>why</think>"), IMAGE]),
        replay("tags", tags=None),
    ),
)
def test_reasoning_in_the_history(case: Edit) -> None:
    case.check()


REMOTE = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}


@table(
    Refusal("no messages", {"messages": None}, "messages"),
    Refusal("messages that are no list", {"messages": {"role": "user"}}, "messages"),
    Refusal("a message without a role", {"messages": [USER, {"content": "x"}]}, "messages[1].role"),
    Refusal("a message that is no object", {"messages": [USER, "x"]}, "messages[1]"),
    Refusal(
        "a remote picture",
        {"messages": [USER, {"role": "user", "content": [text("a"), "odd", REMOTE]}]},
        "messages[1].content[2]",
        rules(remote_images="reject"),
    ),
    Refusal(
        "a remote picture as a string",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "http://x"}]}]},
        "messages[0].content[0]",
        rules(remote_images="reject"),
    ),
)
def test_refusals(case: Refusal) -> None:
    case.check()
