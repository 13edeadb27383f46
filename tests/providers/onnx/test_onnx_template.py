"""Chat templates: real constructs render as in transformers, faults are the client's 400."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from providers.onnx.boundary import segments
from providers.onnx.template import check, render
from tests.providers.onnx.template_sources import (
    CHANNELS,
    CHATML_TOOLS,
    LLAMA_LIKE,
    LOOPS_AND_GENERATION,
    STRICT_ROLES,
    UPPER,
)
from translators.errors import ProxyError

TOOL = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Zeit für <b>jeden</b> Ort",
        "strict": True,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
CALL = {"id": "c1", "type": "function", "function": {"name": "get_time", "arguments": '{"city": "Köln"}'}}
USER = {"role": "user", "content": "hi"}


def text(template: str, *messages: dict[str, Any], tools: Any = None, **kwargs: Any) -> str:
    return "".join(segments(render(template, messages, tools, **kwargs)))


def test_tools_are_json_as_python_writes_it() -> None:
    out = text(CHATML_TOOLS, {"role": "system", "content": "Be brief."}, USER, tools=[TOOL])
    assert out == (
        "<|im_start|>system\nBe brief.\n\n# Tools\n<tools>\n"
        '{"type": "function", "function": {"name": "get_time", "description": "Zeit für <b>jeden</b> Ort", '
        '"parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}'
        "\n</tools><|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_arguments_are_objects_and_thoughts_go_back() -> None:
    turn = {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "I look."}
    out = text(CHATML_TOOLS, USER, turn, {"role": "tool", "tool_call_id": "c1", "content": "noon"})
    assert out == (
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\nI look.\n</think>\n\n\n<tool_call>\n"
        '{"name": "get_time", "arguments": {"city": "Köln"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\nnoon\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ('{"a": [1, null]}', '{"a": [1, null]}'),
        ("", "{}"),
        (None, "{}"),
        ({"a": 1}, '{"a": 1}'),
        ('{"a": ', '"{\\"a\\": "'),
        ("[1]", '"[1]"'),
    ],
)
def test_arguments(arguments: Any, written: str) -> None:
    call = {"function": {"name": "f", "arguments": arguments}}
    out = text(CHATML_TOOLS, USER, {"role": "assistant", "tool_calls": [call, None]})
    assert f'"arguments": {written}}}' in out


@pytest.mark.parametrize(
    ("kwargs", "ending"),
    [
        ({}, "<|im_start|>assistant\n"),
        ({"enable_thinking": True}, "<|im_start|>assistant\n"),
        ({"enable_thinking": False}, "<|im_start|>assistant\n<think>\n\n</think>\n\n"),
        ({"add_generation_prompt": False}, "hi<|im_end|>\n"),
    ],
)
def test_thinking_and_generation_prompt(kwargs: dict[str, Any], ending: str) -> None:
    assert text(CHATML_TOOLS, USER, **kwargs).endswith(ending)


def test_effort_date_developer_and_tool_names() -> None:
    turn = {"role": "assistant", "content": "so", "tool_calls": [CALL], "reasoning": "because"}
    result = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "noon"}]}
    out = text(CHANNELS, {"role": "developer", "content": "D"}, USER, turn, result, reasoning_effort="high")
    assert out == (
        f"<|start|>system<|message|>Reasoning: high\nCurrent date: {datetime.now().year}<|end|>"
        "<|start|>developer<|message|>D<|end|><|start|>user<|message|>hi<|end|>"
        "<|start|>assistant<|channel|>final<|message|>so<|end|>"
        "<|start|>functions.get_time to=assistant<|message|>noon<|end|><|start|>assistant"
    )


def test_developer_is_system_where_the_template_knows_no_other() -> None:
    assert "<|im_start|>system\nD<|im_end|>" in text(
        CHATML_TOOLS, {"role": "developer", "content": "D"}, USER
    )


def test_loop_controls_and_generation_tag() -> None:
    turns = [{"role": role, "content": role[0]} for role in ("system", "user", "assistant", "user")]
    assert text(LOOPS_AND_GENERATION, *turns) == "U:u;A:a;"


def test_variables_are_the_folders_own() -> None:
    variables = {"bos_token": "<s>", "eos_token": "</s>"}
    turns = (USER, {"role": "assistant", "content": "yo"}, USER)
    out = text(STRICT_ROLES, *turns, variables=variables, bos_token="forged")
    assert out == "<s>[INST] hi [/INST] yo</s>[INST] hi [/INST]"


def test_the_llama_manner() -> None:
    out = text(
        LLAMA_LIKE,
        USER,
        {"role": "assistant", "tool_calls": [CALL]},
        tools=[TOOL, {"type": "web_search"}],
        variables={"bos_token": "<s>"},
    )
    assert out.startswith('<s><|start_header_id|>system<|end_header_id|>\n\n{\n    "type": "function",')
    assert out.endswith('{"name": "get_time", "parameters": {"city": "Köln"}}<|eot_id|>')


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("plain", "plain"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        (["a", {"type": "refusal", "refusal": "no"}], "ano"),
        ([{"type": "input_text", "text": "r"}], "r"),
    ],
)
def test_content_forms(content: Any, read: str) -> None:
    assert (
        text("{{ messages[0].content }}|", {"role": "user", "content": content, "name": "Ann"}) == f"{read}|"
    )


def test_names_and_odd_tool_messages() -> None:
    template = "{% for m in messages %}{{ m.role }}={{ m.name }}/{{ m.tool_call_id }};{% endfor %}"
    out = text(
        template,
        {"role": "user", "content": "", "name": "Ann"},
        {"role": "tool", "content": "x"},
        {"role": "tool", "content": "x", "tool_call_id": "zz"},
        {"role": "function", "content": "x", "name": "f"},
    )
    assert out == "user=Ann/;tool=/;tool=/zz;function=f/;"


REFUSED = [
    (STRICT_ROLES, [USER, USER], {}, "messages", "must alternate"),
    ("{{ messages[0].content + 1 }}", [USER], {}, "messages", "cannot render"),
    ("{{ messages[0].content.missing.deeper }}", [USER], {}, "messages", "UndefinedError"),
    ("{{ messages.append(1) }}", [USER], {}, "messages", "cannot render"),
    ("{{ messages.__class__.__mro__ }}", [USER], {}, "messages", "SecurityError"),
    ("x", [{"role": "robot", "content": ""}], {}, "messages[0].role", "'robot' is no role"),
    ("x", [{"role": "user", "content": 3}], {}, "messages[0].content", "a list of parts"),
    (
        "x",
        [USER, {"role": "user", "content": [{"type": "image_url"}]}],
        {},
        "messages[1].content[0]",
        "'image_url'",
    ),
    ("x", [{"role": "user", "content": [3]}], {}, "messages[0].content[0]", "text only"),
    ("x", [USER], {"raise_exception": 1}, "chat_template_kwargs", "may not set raise_exception"),
]


@pytest.mark.parametrize(("template", "messages", "kwargs", "param", "words"), REFUSED)
def test_faults_are_the_clients(
    template: str, messages: list[Any], kwargs: dict[str, Any], param: str, words: str
) -> None:
    with pytest.raises(ProxyError) as caught:
        render(template, messages, None, variables={"bos_token": ""}, **kwargs)
    assert (caught.value.http_status, caught.value.param) == (400, param)
    assert words in caught.value.message


def test_endless_nesting_is_a_400() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(ProxyError) as caught:
        render("{{ tools|tojson }}", [USER], [{"function": deep}], special_tokens=("<|x|>",))
    assert caught.value.http_status == 400
    while deep:  # taken apart here: freeing it at once would exhaust the C stack
        deep = deep["a"]


def test_a_broken_template_is_not_the_clients_fault() -> None:
    with pytest.raises(ProxyError) as caught:
        render("{% if %}", [USER])
    assert caught.value.kind == "upstream"
    assert "does not compile" in (check("{% if %}") or "")
    assert check(CHATML_TOOLS) is None


def test_without_jinja2_a_template_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert check("{% if %} unseen before") is None


def test_changed_case_forms_no_token() -> None:
    parameters = {"properties": {"a": {"type": "[inst]"}}}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    out = render(UPPER, [USER], [tool], special_tokens=("[INST]",))
    assert not any("[INST]" in piece for piece in segments(out))
    assert "".join(segments(out)) == "a:[INST],hi"
