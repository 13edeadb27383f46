"""A Chat Completions request, as a local model is asked it: a prompt and how to go on from it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from translators.errors import bad_request
from translators.ir import Json
from translators.local.demanded import demanded
from translators.local.families import Family
from translators.local.guidance import demanded_guidance, guidance
from translators.local.parser import make_parser
from translators.local.pieces import TextParser

from .boundary import segments
from .folder import ModelFolder
from .protocol import Guidance, Params
from .template import render

MOST_ANSWERS = 128
MOST_TOP_LOGPROBS = 20
"""Both as OpenAI's API has them."""
_OURS = frozenset(inspect.signature(render).parameters)
"""Names that a template is told by us."""
_RANGES: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "frequency_penalty": (-2, 2),
    "presence_penalty": (-2, 2),
    "repetition_penalty": (0.01, 10),
    "top_logprobs": (0, MOST_TOP_LOGPROBS),
}


@dataclass(frozen=True, slots=True)
class Ask:
    """What the engine gets, and how its answer is read."""

    segments: Sequence[str]
    params: Params
    family: Family
    tools: Sequence[Json]
    """What may be called; empty where nothing may."""
    thinking_open: bool
    """Whether the prompt ended inside a thought."""
    parallel: bool
    answers: int = 1

    def params_of(self, answer: int) -> Params:
        """Of several answers each draws its own."""
        seed = self.params.seed
        return self.params if seed is None or not answer else replace(self.params, seed=seed + answer)

    def parser(self) -> TextParser:
        return make_parser(self.family, self.tools, thinking_open=self.thinking_open)


def read_ask(body: Json, folder: ModelFolder) -> Ask:
    """Render and check a request; it takes milliseconds for a long conversation.

    Raises `ProxyError` (400) for what this model cannot be asked.
    """
    family = folder.family
    tools = _offered(body)
    prompt = _prompt(body, folder, tools)
    thinking_open = family.thinking_open(prompt)
    choice = body.get("tool_choice")
    is_named = isinstance(choice, dict) and "function" in choice  # one call of one function
    parallel = body.get("parallel_tool_calls") is not False and not is_named
    thinking = _may_think(body, folder, tools, prompt)
    begun: Any = {"thinking_open": thinking_open, "special_ids": folder.special_ids}
    held = _held(body, family, tools, parallel, thinking, begun)
    params = _params(body, folder, family, held)
    answers = body.get("n") or 1
    if not isinstance(answers, int) or not 1 <= answers <= MOST_ANSWERS:
        raise bad_request(f"`n` must be a whole number from 1 to {MOST_ANSWERS}.", "n")
    return Ask(segments(prompt), params, family, tools, thinking_open, parallel, answers)


def _held(
    body: Json, family: Family, tools: Sequence[Json], parallel: bool, thinking: bool, begun: Json
) -> Guidance | None:
    """The grammar of the whole answer; `begun`: what it goes on from."""
    wanted, own = body.get("response_format"), demanded(body)
    if own is not None and own[0] != "json":
        told = demanded_guidance(family, *own, thinking, **begun)
        return Guidance(told.kind, told.text)
    if own is not None:
        wanted = {"type": "json_schema", "json_schema": {"schema": own[1]}}
    found = guidance(family, tools, body.get("tool_choice"), wanted, parallel, thinking, **begun)
    return None if found is None else Guidance(found.kind, found.text)


def _offered(body: Json) -> Sequence[Json]:
    """The tools that the model is told of: none where it must not call any."""
    tools = body.get("tools") or ()
    return () if body.get("tool_choice") == "none" else tools


def _prompt(body: Json, folder: ModelFolder, tools: Sequence[Json], **arguments: Any) -> str:
    return render(
        folder.template or "",
        body["messages"],
        tools,
        special_tokens=folder.special_tokens,
        variables=folder.variables,
        **{**_template_arguments(body), **arguments},
    )


def _template_arguments(body: Json) -> Json:
    """What a template is told of thinking: its own arguments go before `reasoning_effort`."""
    own = body.get("chat_template_kwargs") or {}
    if not isinstance(own, dict):
        raise bad_request("`chat_template_kwargs` must be an object.", "chat_template_kwargs")
    if taken := sorted(_OURS & own.keys()):
        message = f"`chat_template_kwargs` may not set {', '.join(taken)}: leave it out."
        raise bad_request(message, "chat_template_kwargs")
    effort = body.get("reasoning_effort")
    told: Json = {}
    if effort is not None:
        told["enable_thinking"] = effort != "none"
        if effort != "none":
            told["reasoning_effort"] = effort
    return told | own


def _may_think(body: Json, folder: ModelFolder, tools: Sequence[Json], prompt: str) -> bool:
    """Whether a thought may come before an answer that a grammar holds.

    A grammar that allows one invites it, so that a model which thinks only when asked is not allowed it.
    """
    if "thinking" not in folder.facts.get("capabilities", ()):
        return False
    told = _template_arguments(body).get("enable_thinking")
    if told is None and "enable_thinking" in (folder.template or ""):
        return prompt != _prompt(body, folder, tools, enable_thinking=False)
    return told is not False


def _params(body: Json, folder: ModelFolder, family: Family, held: Guidance | None) -> Params:
    made = folder.generation
    draws = made.get("do_sample") is True
    stop = body.get("stop") or ()
    return Params(
        max_tokens=_most(body),
        temperature=_number(body, "temperature", float(made.get("temperature", 1.0)) if draws else 0.0),
        top_p=_number(body, "top_p", float(made.get("top_p", 1.0)) if draws else 1.0),
        top_k=int(_number(body, "top_k", float(made.get("top_k", 0)) if draws else 0.0)),
        min_p=_number(body, "min_p", 0.0),
        seed=body.get("seed"),
        frequency_penalty=_number(body, "frequency_penalty", 0.0),
        presence_penalty=_number(body, "presence_penalty", 0.0),
        repetition_penalty=_number(body, "repetition_penalty", float(made.get("repetition_penalty", 1.0))),
        logit_bias=_bias(body),
        stop=[*([stop] if isinstance(stop, str) else stop), *family.stops],
        logprobs=body.get("logprobs") is True,
        top_logprobs=int(_number(body, "top_logprobs", 0)),
        guidance=held,
        keep_special=family.keep_special,
    )


def _most(body: Json) -> int | None:
    most = body.get("max_tokens")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise bad_request("`max_tokens` must be a whole number, at least 1.", "max_tokens")
    return most


def _number(body: Json, key: str, default: float) -> float:
    value = body.get(key)
    if value is None:
        return default
    low, high = _RANGES.get(key, (float("-inf"), float("inf")))
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise bad_request(f"`{key}` must be a number from {low:g} to {high:g}.", key)
    return value


def _bias(body: Json) -> Mapping[str, float]:
    bias = body.get("logit_bias") or {}
    numbers: Iterable[Any] = bias.values() if isinstance(bias, dict) else [None]
    if not all(isinstance(each, int | float) and -100 <= each <= 100 for each in numbers):
        raise bad_request("`logit_bias` must be an object of numbers from -100 to 100.", "logit_bias")
    return dict(bias)
