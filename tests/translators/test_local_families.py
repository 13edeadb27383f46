"""Which family a chat template is written for."""

from __future__ import annotations

import pytest

from translators.local.families import BY_NAME, FAMILIES, PLAIN, detect

TEMPLATES = [
    ("{{ '<|start|>assistant<|channel|>final<|message|>' }}", "harmony"),
    ("[AVAILABLE_TOOLS]{{ tools }}[TOOL_CALLS]{{ name }}[ARGS]{{ args }}", "mistral"),
    ("[TOOL_CALLS] [{{ calls }}]", "mistral_v3"),
    ("<tool_call>\\n<function=' + name + '>\\n<parameter=", "qwen3_coder"),
    ("'<|tool_call>call:' + name", "gemma4"),
    ("<start_function_call>call:", "functiongemma"),
    ("<|tool_calls_section_begin|><|tool_call_begin|>", "kimi_k2"),
    ("<|open|>message role=\"' + role + '\"<|sep|>' + text + '<|close|>message<|sep|>", "kimi_k3"),
    ("{% set dsml_token = '｜DSML｜' %}", "deepseek_dsml"),
    ("<｜DSML｜invoke", "deepseek_dsml"),
    ("<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + '\\n```json", "deepseek_v3"),
    ("<｜tool▁call▁begin｜>' + tool['function']['name'] + '<｜tool▁sep｜>", "deepseek_v31"),
    ("<tool_call>{{ name }}<arg_key>", "glm45"),
    ("<function_calls></function_calls>", "olmo3"),
    ("List of tools: <|tool_list_start|> <|tool_call_start|>", "lfm2"),
    ("<|tool|>{{ tools }}<|/tool|><|tool_call|>", "phi4_mini"),
    ("functools[{}]", "phi"),
    ('<tool_call>\\n{"name": "..., "arguments": ', "hermes"),
    ("<|header_start|>assistant<|header_end|> [func_name1(params", "llama4_pythonic"),
    ("<|python_start|>", "llama4_pythonic"),
    ("<|start_header_id|> <|python_tag|>", "llama3_json"),
    ('Respond in the format {"name": function name, "parameters": ...}', "llama3_json"),
    ("[func_name1(params_name1=params_value1)]", "pythonic"),
    ("[THINK]", "mistral"),
    ("<|turn>model\\n<|channel>thought", "gemma4"),
    ("<|im_start|>{{ role }}", "plain"),
    ("", "plain"),
]


@pytest.mark.parametrize(("template", "name"), TEMPLATES)
def test_detection(template: str, name: str) -> None:
    assert detect(template) is BY_NAME[name]


def test_every_family_can_be_named() -> None:
    assert len(BY_NAME) == len(FAMILIES)
    assert BY_NAME["plain"] is PLAIN
    assert {name for _, name in TEMPLATES} == set(BY_NAME)


@pytest.mark.parametrize(
    ("name", "prompt", "is_open"),
    [
        ("hermes", "<|im_start|>assistant\n<think>\n", True),
        ("hermes", "<|im_start|>assistant\n<think>\n\n</think>\n\n", False),
        ("hermes", "", False),
        ("harmony", "<|start|>assistant<|channel|>analysis<|message|>", True),
        ("gemma4", "<|turn>model\n<|channel>thought\n<channel|>", False),
        ("mistral", "[/INST][THINK]", True),
    ],
)
def test_prompt_may_open_the_thought(name: str, prompt: str, is_open: bool) -> None:
    assert BY_NAME[name].thinking_open(prompt) is is_open


def test_markers_are_all_marks() -> None:
    markers = BY_NAME["kimi_k2"].markers
    assert {"<think>", "</think>", "<|tool_call_begin|>", "<|tool_calls_section_end|>"} <= set(markers)
