"""Messages one by one: keys, names, parts, refusals, calls."""

from __future__ import annotations

from tests.translators.chat_edit_messages import CALLS, IMAGE, RESULT, STRICT, one, rules, said, text, turn
from tests.translators.chat_edits import OPENAI, USER, Edit, Refusal, table

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
