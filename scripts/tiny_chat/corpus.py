"""What the tiny model learns: generated conversations and the answer to each.

Greetings, words to repeat, small sums, calls of three tools (one or two at once) and what to say
about a tool's result; with and without tools, a system message and thinking.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2.sandbox import ImmutableSandboxedEnvironment

Json = dict[str, Any]
TEMPLATE = (
    Path(__file__).parents[2] / "providers" / "onnx" / "model" / "tiny-chat" / "chat_template.jinja"
).read_text()
END = "<|im_end|>"
CITIES = (
    *("Paris", "London", "Tokyo", "Berlin", "Madrid", "Rome"),
    *("Oslo", "Cairo", "Lima", "Delhi", "Seoul", "Dublin"),
)
GREETINGS = ("Say hello.", "Hello!", "Hi")
RESULTS = ("sunny", "rainy", "cloudy", "12:30", "08:15", "2 million", "900 thousand")
SYSTEM = (None, "You are helpful.", "You are a helpful assistant.")
QUESTIONS = {
    "get_weather": ("Get the weather in a city", "What is the weather in {}?"),
    "get_time": ("Get the local time in a city", "What time is it in {}?"),
    "get_population": ("Get the population of a city", "How many people live in {}?"),
}
"""Name of a tool: its description, and the question that it answers."""


@dataclass(slots=True)
class Sample:
    """`thought` is written before `answer` where the model thinks."""

    messages: list[Json]
    tools: list[Json] | None
    thought: str | None
    answer: str

    def prompt(self) -> str:
        return _TEMPLATE.render(
            messages=self.messages,
            tools=self.tools,
            add_generation_prompt=True,
            enable_thinking=self.thought is not None,
        )

    def reply(self) -> str:
        return self.answer if self.thought is None else f"{self.thought}\n</think>\n\n{self.answer}"


def sample(dice: random.Random) -> Sample:
    """One conversation; the same dice give the same ones."""
    system, kind, thinks = dice.choice(SYSTEM), dice.random(), dice.random() < 0.3
    names = dice.sample(list(QUESTIONS), dice.randint(1, 2)) if kind > 0.35 or dice.random() < 0.3 else []
    if kind <= 0.35:
        asked, thought, answer = _plain(dice, kind)
        turns = [_user(asked)]
    else:
        turns, thought, answer = _with_tool(dice, kind, dice.choice(names))
    head = [{"role": "system", "content": system}] if system else []
    return Sample(head + turns, [_tool(name) for name in names] or None, thought if thinks else None, answer)


def _plain(dice: random.Random, kind: float) -> tuple[str, str, str]:
    """Question, thought, answer."""
    if kind <= 0.15:
        return dice.choice(GREETINGS), "The user greets me.", "Hello! How can I help you today?"
    if kind <= 0.25:
        words = " ".join(dice.sample(CITIES, dice.randint(1, 3)))
        return f"Repeat: {words}", "I repeat the words.", words
    a, b = dice.randrange(6), dice.randrange(6)
    return f"What is {a} plus {b}?", f"I add {a} and {b}.", f"{a} plus {b} is {a + b}."


def _with_tool(dice: random.Random, kind: float, name: str) -> tuple[list[Json], str, str]:
    """Turns, thought, answer."""
    city = dice.choice(CITIES)
    question = _user(QUESTIONS[name][1].format(city))
    if kind <= 0.65:
        return [question], f"I call {name} for {city}.", _call(name, city)
    if kind <= 0.8:
        other = dice.choice(CITIES)
        both = f"{_call(name, city)}\n{_call(name, other)}"
        return [_user(f"Use {name} for {city} and {other}.")], f"I call {name} twice.", both
    called = {"type": "function", "function": {"name": name, "arguments": {"city": city}}}
    result = dice.choice(RESULTS)
    turns = [
        question,
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {"role": "tool", "content": result},
    ]
    return turns, "I have the result.", f"The result for {city} is: {result}."


def _user(text: str) -> Json:
    return {"role": "user", "content": text}


def _call(name: str, city: str) -> str:
    body = json.dumps({"name": name, "arguments": {"city": city}})
    return f"<tool_call>\n{body}\n</tool_call>"


def _tool(name: str) -> Json:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": name, "description": QUESTIONS[name][0], "parameters": parameters}
    return {"type": "function", "function": function}


def _environment() -> ImmutableSandboxedEnvironment:
    """Renders as transformers does."""
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    made.filters["tojson"] = lambda value, **_: json.dumps(value, ensure_ascii=False)
    return made


_TEMPLATE = _environment().from_string(TEMPLATE)
