"""The ways in which local models write thoughts and calls, as data.

Sources: the models' chat templates, vLLM's tool parsers, llama.cpp's chat.cpp, Ollama's parsers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Body = Literal[
    "none", "json", "loose_json", "mistral", "kimi", "kimi_k3", "deepseek_v3", "deepseek_v31", "xml", "glm",
    "dsml", "gemma", "function_gemma", "pythonic", "loose_pythonic", "python_lines", "harmony",
]  # fmt: skip
"""How a call is written after its opener; `loose` ones are also calls without a marker, at the
beginning of an output, if a tool of that name is offered."""

_THINK = (("<think>", "</think>"),)
_SPACED = ("", " ")
"""DeepSeek 4.1 puts a blank after its mark, 3.2 and 4 none."""


@dataclass(frozen=True, slots=True)
class Family:
    """All marks are exact strings of the decoded output."""

    name: str
    body: Body = "none"
    openers: tuple[str, ...] = ()
    """Each begins a call if the rest is one, anywhere in the text."""
    closers: tuple[str, ...] = ()
    """Taken away where they follow a call (and blanks)."""
    sections: tuple[str, ...] = ()
    """Marks around all calls: taken away wherever they stand."""
    calls_only: bool = False
    """Whether words between the first of the `sections` and a call are noise."""
    wraps: tuple[str, ...] = ()
    """Marks around every part of an answer, with tools or without: taken away too, and they end a thought."""
    thoughts: tuple[tuple[str, str], ...] = _THINK
    """Pairs of marks; the first is the one a prompt may open."""
    call_ends_thought: bool = False
    keep_special: bool = False
    """Whether marks are special tokens, which a tokenizer leaves out of the text unless told."""
    stops: tuple[str, ...] = ()
    """Tokens that end the output like an end-of-sequence token does."""

    @property
    def markers(self) -> tuple[str, ...]:
        """All of them; what client text must not forge."""
        pairs = tuple(mark for pair in self.thoughts for mark in pair)
        return (*pairs, *self.openers, *self.closers, *self.sections, *self.wraps)

    def thinking_open(self, prompt: str) -> bool:
        """Whether a rendered prompt ends inside a thought, so that the output goes on with it."""
        return bool(self.thoughts) and prompt.rstrip().endswith(self.thoughts[0][0])


_DSML = tuple(
    f"{slash}｜DSML｜{space}{name}>"
    for space in _SPACED
    for slash in ("<", "</")
    for name in ("function_calls", "tool_calls", "calls")
)
_DEEPSEEK = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_XTML = (
    '<|open|>message role="assistant"<|sep|>',
    *(f"<|{edge}|>{part}<|sep|>" for part in ("response", "tools", "message") for edge in ("open", "close")),
)

PLAIN = Family("plain")

FAMILIES: tuple[Family, ...] = (
    PLAIN,
    Family("hermes", "json", ("<tool_call>",), ("</tool_call>",)),
    Family("qwen3_coder", "xml", ("<tool_call>", "<function="), ("</tool_call>",), call_ends_thought=True),
    Family(
        "llama3_json", "loose_json", ("<|python_tag|>",), (";", "<|eom_id|>"), keep_special=True,
        stops=("<|eom_id|>",),
    ),
    Family("pythonic", "loose_pythonic"),
    Family(
        "llama4_pythonic", "loose_pythonic", ("<|python_start|>",), ("<|python_end|>",), keep_special=True,
        stops=("<|eom|>",),
    ),
    Family("olmo3", "python_lines", ("<function_calls>",)),
    Family("lfm2", "pythonic", ("<|tool_call_start|>",), ("<|tool_call_end|>",), keep_special=True),
    Family(
        "mistral", "mistral", ("[TOOL_CALLS]",), thoughts=(("[THINK]", "[/THINK]"), *_THINK),
        keep_special=True,
    ),
    Family(
        "mistral_v3", "mistral", ("[TOOL_CALLS]",), thoughts=(("[THINK]", "[/THINK]"), *_THINK),
        keep_special=True,
    ),
    Family("phi", "json", ("functools",)),
    Family("phi4_mini", "json", ("<|tool_call|>",), ("<|/tool_call|>",), keep_special=True),
    Family(
        "deepseek_v3", "deepseek_v3", ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>",),
        ("```", "<｜tool▁call▁end｜>"), _DEEPSEEK, keep_special=True,
    ),
    Family(
        "deepseek_v31", "deepseek_v31", ("<｜tool▁call▁begin｜>",), ("<｜tool▁call▁end｜>",), _DEEPSEEK,
        keep_special=True,
    ),
    Family(
        "deepseek_dsml", "dsml", tuple(f"<｜DSML｜{space}invoke" for space in _SPACED), sections=_DSML,
        keep_special=True,
    ),
    Family(
        "harmony", "harmony", thoughts=(("<|channel|>analysis<|message|>", "<|end|>"),), keep_special=True,
        stops=("<|call|>", "<|return|>"),
    ),
    Family(
        "gemma4", "gemma", ("<|tool_call>call:",), ("<tool_call|>",),
        thoughts=(("<|channel>thought", "<channel|>"),), keep_special=True, stops=("<|tool_response>",),
    ),
    Family(
        "functiongemma", "function_gemma", ("<start_function_call>call:",), ("<end_function_call>",),
        keep_special=True, stops=("<start_function_response>",),
    ),
    Family("glm45", "glm", ("<tool_call>",), stops=("<|observation|>", "<|user|>")),
    Family(
        "kimi_k2", "kimi", ("<|tool_call_begin|>",), ("<|tool_call_end|>",),
        ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"), calls_only=True, keep_special=True,
    ),
    Family(
        "kimi_k3", "kimi_k3", ("<|open|>call tool=",), wraps=_XTML,
        thoughts=(("<|open|>think<|sep|>", "<|close|>think<|sep|>"),), keep_special=True,
        stops=("<|end_of_msg|>",),
    ),
)  # fmt: skip

BY_NAME: dict[str, Family] = {family.name: family for family in FAMILIES}

_SIGNS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("<|channel|>",), "harmony"),
    (("[TOOL_CALLS]", "[ARGS]"), "mistral"),
    (("[TOOL_CALLS]",), "mistral_v3"),
    (("<function=", "<parameter="), "qwen3_coder"),
    (("<|tool_call>call:",), "gemma4"),
    (("<start_function_call>",), "functiongemma"),
    (("<|tool_calls_section_begin|>",), "kimi_k2"),
    (("<|open|>", "<|close|>", "<|sep|>"), "kimi_k3"),
    (("dsml_token",), "deepseek_dsml"),
    (("｜DSML｜",), "deepseek_dsml"),
    (("<｜tool▁call▁begin｜>", "```json"), "deepseek_v3"),
    (("<｜tool▁call▁begin｜>",), "deepseek_v31"),
    (("<arg_key>",), "glm45"),
    (("<function_calls>",), "olmo3"),
    (("<|tool_call_start|>",), "lfm2"),
    (("<|tool_call|>",), "phi4_mini"),
    (("functools",), "phi"),
    (("<tool_call>",), "hermes"),
    (("<|python_start|>",), "llama4_pythonic"),
    (("<|header_start|>", "func_name1("), "llama4_pythonic"),
    (("<|python_tag|>",), "llama3_json"),
    (('{"name": function name, "parameters"',), "llama3_json"),
    (("func_name1(",), "pythonic"),
    (("[THINK]",), "mistral"),
    (("<|channel>thought",), "gemma4"),
)
"""The first row all of whose strings a chat template holds names its family."""


def detect(template: str) -> Family:
    """The family that a chat template is written for; `PLAIN` (thoughts, no calls) if it shows none."""
    for signs, name in _SIGNS:
        if all(sign in template for sign in signs):
            return BY_NAME[name]
    return PLAIN
