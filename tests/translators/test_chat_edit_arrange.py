"""Messages among each other: system messages, prefill, call ids, split turns; formats told in words."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from tests.translators.chat_edits import OPENAI, USER, Edit, table

Json = dict[str, Any]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def system(content: Any, role: str = "system", **more: Any) -> Json:
    return {"role": role, "content": content, **more}


def said(content: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **more}


def call(call_id: str, name: str = "f") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def calls(*ids: str, content: Any = None) -> Json:
    return said(content, tool_calls=[call(call_id) for call_id in ids])


def result(call_id: str, **more: Any) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": "r", **more}


def short(call_id: str, length: int) -> str:
    return sha256(call_id.encode()).hexdigest()[:length]


def messages(
    id: str, given: list[Json], wanted: list[Json] | None, rules: Json | None = None, **more: Any
) -> Edit:
    return Edit(
        id, {"messages": given}, None if wanted is None else {"messages": wanted}, rules or {}, **more
    )


def rule(**messages: Any) -> Json:
    return {"messages": messages}


PART = {"type": "text", "text": "p", "cache_control": {"type": "ephemeral"}}
DROP = rule(trailing_assistant="drop")
SPLIT = rule(split_parallel_tool_results=True, null_content="omit")


@table(
    messages("one system message", [system("a"), USER, system("later")], None),
    messages("no messages", [], None),
    messages("the leading ones as one", [system("a"), system("b"), USER], [system("a\n\nb"), USER]),
    messages(
        "developer counts where it is a system message",
        [system("core"), system("rules", "developer"), USER, system("warning", "developer")],
        [system("core\n\nrules"), USER, system("warning")],
    ),
    messages(
        "but not where it is kept",
        [system("core"), system("rules", "developer"), USER],
        None,
        rule(developer="keep"),
    ),
    messages("as they are", [system("a"), system("b"), USER], None, rule(system="many")),
    messages(
        "all of them hoisted",
        [system("a"), USER, system("b"), said("y"), USER],
        [system("a\n\nb"), USER, said("y"), USER],
        rule(system="hoist_all"),
    ),
    messages("one hoisted", [USER, system("b")], [system("b"), USER], rule(system="hoist_all")),
    messages("nothing to hoist", [USER], None, rule(system="hoist_all")),
    messages(
        "text in parts is text",
        [system([{"type": "text", "text": "a"}]), system("b"), USER],
        [system("a\n\nb"), USER],
    ),
    messages(
        "marked parts are kept",
        [system("a", name="n"), system([PART]), USER],
        [system([{"type": "text", "text": "a"}, PART], name="n"), USER],
    ),
    messages("empty ones add nothing", [system(""), system("b"), system(None), USER], [system("b"), USER]),
    # the history
    messages(
        "the history is repaired",
        [USER, calls("a"), USER, result("a")],
        [USER, calls("a"), result("a"), USER],
        repairs=1,
    ),
    messages("not for the exact", [USER, calls("a"), USER, result("a")], None, OPENAI),
    # the last message
    messages("an answer to continue", [USER, said("y")], None),
    messages(
        "no answer to continue",
        [USER, said("y"), said("z")],
        [USER],
        DROP,
        lost=["/messages/2", "/messages/1"],
    ),
    messages("nothing else", [said("y"), said("z")], None, DROP),
    messages(
        "behind results it goes before them",
        [USER, calls("a", content="One."), result("a"), said("Two.")],
        [USER, calls("a", content="One.\n\nTwo."), result("a")],
        DROP,
    ),
    messages("results at the end", [USER, calls("a"), result("a")], None, DROP),
    messages(
        "behind the user of an old turn",
        [calls("a"), result("a"), USER, said("y")],
        [calls("a"), result("a"), USER],
        DROP,
        lost=["/messages/3"],
    ),
    messages(
        "a place is told in the client's list",
        [system("a"), system("b"), said(""), USER, said("y", reasoning_content="w")],
        [system("a\n\nb"), USER],
        DROP,
        lost=["/messages/4/reasoning_content", "/messages/4"],
    ),
    # ids
    messages("ids that fit", [calls("a" * 64), result("a" * 64)], None),
    messages(
        "long ids",
        [calls("a", "b" * 65), result("a"), result("b" * 65), said("y"), USER],
        [calls("a", short("b" * 65, 32)), result("a"), result(short("b" * 65, 32)), said("y"), USER],
    ),
    messages(
        "a shorter limit",
        [calls("abcdef"), result("abcdef")],
        [calls(short("abcdef", 5)), result(short("abcdef", 5))],
        {"request": {"id_max_len": 5}},
    ),
    messages(
        "ids of a form",
        [calls("call_1", "abcDEF123"), result("call_1"), result("abcDEF123")],
        [calls(short("call_1", 9), "abcDEF123"), result(short("call_1", 9)), result("abcDEF123")],
        rule(tool_call_id={"max": 9, "pattern": "^[A-Za-z0-9]{9}$"}),
    ),
    messages(
        "odd ids of the exact are its own business",
        [said(None, tool_calls=[{"type": "function"}, call("a" * 65)]), result("")],
        [said(None, tool_calls=[{"type": "function"}, call(short("a" * 65, 32))]), result("")],
        OPENAI,
    ),
    # results
    messages(
        "named results",
        [calls("a", "b"), result("a"), result("b", name="own"), USER],
        [calls("a", "b"), result("a", name="f"), result("b", name="own"), USER],
        rule(tool_name=True),
    ),
    messages(
        "a named result in a closed schema",
        [calls("a"), result("a", name="f")],
        None,
        {**rule(tool_name=True), "request": {"extra_keys": []}},
    ),
    messages(
        "a result of nothing has no name",
        [USER, result("x")],
        None,
        {**rule(tool_name=True), "answer": {"exact": True}},
    ),
    messages(
        "parallel calls one by one",
        [USER, calls("a", "b", "c", content="t"), result("a"), result("b"), result("c"), USER],
        [
            USER,
            calls("a", content="t"),
            result("a"),
            {"role": "assistant", "tool_calls": [call("b")]},
            result("b"),
            {"role": "assistant", "tool_calls": [call("c")]},
            result("c"),
            USER,
        ],
        SPLIT,
    ),
    messages(
        "one by one after a repair, for the exact too",
        [calls("a", "b"), result("b")],
        [
            said(None, tool_calls=[call("a")]),
            {**result("a"), "content": "[No result: the call of f was never answered. It may not have run.]"},
            said(None, tool_calls=[call("b")]),
            result("b"),
        ],
        {"messages": {"split_parallel_tool_results": True}, "answer": {"exact": True}},
        repairs=1,
    ),
)
def test_arrangement(case: Edit) -> None:
    case.check()


SCHEMA = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
OBJECT = {"type": "json_object"}
IN_WORDS = (
    "Answer with one JSON value that is valid under the JSON Schema below, and nothing else: "
    'no prose, no code fence.\n\n{"type":"object"}'
)
OBJECT_IN_WORDS = "Answer with one JSON object and nothing else: no prose, no code fence."
TOOL = {"type": "function", "function": {"name": "a", "parameters": {"type": "object", "properties": {}}}}
NUDGED = {"role": "user", "content": "x Respond with a JSON object."}


def output(**rules: Any) -> Json:
    return {"output_format": rules}


@table(
    Edit("a schema", {"response_format": SCHEMA}),
    Edit("text", {"response_format": {"type": "text"}}, rules=output(json_schema="drop", with_tools=False)),
    Edit("an odd one", {"response_format": "json"}, rules=output(needs_json_word=True)),
    Edit("a schema left for the lowering", {"response_format": SCHEMA}, rules=output(json_schema="tool")),
    Edit(
        "a schema is lost", {"response_format": SCHEMA}, {}, output(json_schema="drop"), ["/response_format"]
    ),
    Edit(
        "an object is lost", {"response_format": OBJECT}, {}, output(json_object="drop"), ["/response_format"]
    ),
    Edit("an object is kept", {"response_format": OBJECT}, rules=output(json_schema="drop")),
    Edit(
        "a schema in words",
        {"messages": [system("s", "developer"), USER], "response_format": SCHEMA},
        {"messages": [system("s\n\n" + IN_WORDS), USER], "response_format": OBJECT},
        output(json_schema="prompt"),
    ),
    Edit(
        "a schema in words, without a system message or a JSON mode",
        {"response_format": SCHEMA},
        {"messages": [system(IN_WORDS), USER]},
        output(json_schema="prompt", json_object="drop"),
    ),
    Edit(
        "no schema in it",
        {"response_format": {"type": "json_schema"}},
        {"messages": [system(OBJECT_IN_WORDS), USER], "response_format": OBJECT},
        output(json_schema="prompt"),
    ),
    Edit(
        "in words before a later system message is hoisted, with places of the client's list",
        {"messages": [USER, {**USER, "name": "n"}], "response_format": SCHEMA},
        {"messages": [system(IN_WORDS), USER, USER]},
        {**output(json_schema="prompt", json_object="drop"), "messages": {"user_name": "drop"}},
        ["/messages/1/name"],
    ),
    Edit(
        "not beside tools",
        {"response_format": SCHEMA, "tools": [TOOL]},
        {"messages": [system(IN_WORDS), USER], "tools": [TOOL]},
        output(with_tools=False),
        ["/response_format"],
    ),
    Edit(
        "not in a stream",
        {"response_format": OBJECT, "stream": True},
        {
            "messages": [system(OBJECT_IN_WORDS), USER],
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        output(with_stream=False),
        ["/response_format"],
    ),
    Edit(
        "without a stream and tools",
        {"response_format": OBJECT},
        rules=output(with_stream=False, with_tools=False),
    ),
    # the word
    Edit(
        "a nudge",
        {"response_format": OBJECT},
        {"messages": [NUDGED], "response_format": OBJECT},
        output(needs_json_word=True),
        repairs=1,
    ),
    Edit("no nudge for a schema", {"response_format": SCHEMA}, rules=output(needs_json_word=True)),
    Edit("no nudge where none is needed", {"response_format": OBJECT}),
    Edit(
        "said by the user in a part",
        {
            "messages": [{"role": "user", "content": [3, IMAGE, {"type": "text", "text": "as Json"}]}, USER],
            "response_format": OBJECT,
        },
        rules=output(needs_json_word=True),
    ),
    Edit(
        "said by the system only",
        {"messages": [system("JSON!"), USER, said("y")], "response_format": OBJECT},
        {"messages": [system("JSON!"), NUDGED, said("y")], "response_format": OBJECT},
        output(needs_json_word=True),
        repairs=1,
    ),
    Edit(
        "which is enough for OpenAI",
        {"messages": [system("JSON!"), USER], "response_format": OBJECT},
        rules=OPENAI,
    ),
    Edit(
        "into parts",
        {"messages": [{"role": "user", "content": [IMAGE]}], "response_format": OBJECT},
        {
            "messages": [
                {"role": "user", "content": [IMAGE, {"type": "text", "text": "Respond with a JSON object."}]}
            ],
            "response_format": OBJECT,
        },
        output(needs_json_word=True),
        repairs=1,
    ),
    Edit(
        "no user to nudge",
        {"messages": [system("s")], "response_format": OBJECT},
        {
            "messages": [system("s"), {"role": "user", "content": "Respond with a JSON object."}],
            "response_format": OBJECT,
        },
        output(needs_json_word=True),
        repairs=1,
    ),
    Edit(
        "after the prefill is gone",
        {"messages": [USER, said("y")], "response_format": OBJECT},
        {"messages": [NUDGED], "response_format": OBJECT},
        {**output(needs_json_word=True), **DROP},
        ["/messages/1"],
        repairs=1,
    ),
)
def test_output_formats(case: Edit) -> None:
    case.check()
