"""From the words of a refusal to what must be left out of the body that was refused.

Backends name a field by paths of their own making: indexes count messages that they have moved,
steps are tags of their types (`tools.0.custom.strict`), Go's decoder gives the last key alone.
So a path is looked for in the body, and nothing is believed that the body does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from .effort import LEVELS, nearest_level
from .ir import Json, Shape
from .ollama.refusals import refused
from .params import PARAMS
from .rejection_words import SYSTEM_FIRST, Named, read_words
from .rejections import EACH, INNER, Path, Rejection, allowed, without
from .rejections import SYSTEM_FIRST as MOVED

_SEARCHED = ("messages", "input", "tools", "text", "reasoning", "stream_options")
"""Where a key may be that is named without its path; `metadata` and the like are a client's own data."""
_WRAPPERS = ("function", "custom")
_SAMPLING = ("temperature", "top_p", "top_k")
"""A model that takes one of them not takes none, and some name the first whichever was sent."""
_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_FEATURES = frozenset(
    path for param in PARAMS if param.kind == "feature" for path in (param.chat, param.responses)
)
_EFFORTS = ("reasoning_effort", "effort")
_NUMBERS: Mapping[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "top_logprobs": (0, 20),
}
_CHOICES: Mapping[str, Collection[str]] = {
    "reasoning_effort": LEVELS,
    "effort": LEVELS,
    "summary": ("auto", "concise", "detailed"),
    "verbosity": ("low", "medium", "high"),
    "service_tier": ("auto", "default", "flex", "scale", "priority", "fast", "ultrafast"),
    "truncation": ("auto", "disabled"),
}
"""What OpenAI's own API takes: any other value is the client's mistake, and stays a 400."""


def rejected(
    body: Json,
    shape: Shape,
    message: str,
    param: str | None = None,
    code: str | None = None,
    before: Sequence[Rejection] = (),
) -> tuple[Rejection, ...]:
    """What the refusal of `body` asks to leave out; empty: nothing in it, or nothing that may go.

    `message`, `param`, `code`: the error's; `before`: what is left out already.
    """
    words = _own_words(message, body)
    if shape == "ollama":
        return tuple(each for each in refused(body, words) if without(body, each) is not body)
    if shape == "chat" and SYSTEM_FIRST.search(words):
        moved = Rejection(("messages",), instead=MOVED)
        return () if without(body, moved) is body else (moved,)
    named = read_words(words, param, code)
    found = [each for one in named for each in _read(one, body, shape, before)]
    if not all(allowed(each, shape) for each in found):
        return ()
    return tuple(dict.fromkeys(each for each in found if without(body, each) is not body))


_QUOTED_FROM = 12
"""Characters from which a client's text is looked for in an error; it must hold a blank, too."""
_INPUT = re.compile(r"(?:input_value|'input')[=:].*")
"""Where pydantic begins to quote what it was given."""


def _own_words(message: str, body: Json) -> str:
    """The message without what it quotes of the request: a client's text may read like a refusal.

    What is remembered holds for every client of the model, so none may word it.
    """
    texts = {text for text in _texts(body) if text in message}
    for text in sorted(texts, key=len, reverse=True):
        message = message.replace(text, "...")
    return "\n".join(_INPUT.sub("", line) for line in message.split("\n"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) >= _QUOTED_FROM and " " in value:
            yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _read(named: Named, body: Json, shape: Shape, before: Sequence[Rejection]) -> Iterator[Rejection]:
    if named.value and re.split(r"[.\]]", named.field)[-1] == "role":
        yield from _of_role(named, body)
        return
    path = _find(body, named.field, shape)
    if named.beside is not None:
        if path is not None and len(path) == 1:
            yield Rejection(path, beside=named.beside)
    elif named.value:
        if path is not None:
            yield from _of_value(named, path, body)
    elif path is None:
        if named.field in _SAMPLING:
            yield from (Rejection((key,)) for key in _SAMPLING if key in body)
    elif len(path) == 1:
        yield _of_key(path[0], body, before)
    else:
        yield Rejection(path)


def _of_key(key: str, body: Json, before: Sequence[Rejection]) -> Rejection:
    """The one limit on tokens is said by its other name before it is given up."""
    other = _OTHER_NAME.get(key)
    if other is not None and other not in body and all(each.path != (other,) for each in before):
        return Rejection((key,), name=other)
    value = body[key]
    scalar = isinstance(value, str | int | float)
    return Rejection((key,), value=value if key in _FEATURES and scalar else None)


# --- a value ---------------------------------------------------------------------------


def _of_role(named: Named, body: Json) -> Iterator[Rejection]:
    """A model that knows no developer is told the same as system, or by the user."""
    if named.said not in (None, "developer") or "developer" in named.allowed:
        return
    instead = next((role for role in ("system", "user") if role in named.allowed or not named.allowed), None)
    for key in ("messages", "input"):
        if instead is not None and isinstance(body.get(key), list):
            yield Rejection((key, EACH, "role"), value="developer", instead=instead)


def _of_value(named: Named, path: Path, body: Json) -> Iterator[Rejection]:
    value: Any = body
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, str):
        meant = value not in named.allowed and named.said in (None, value)
        if meant and value in _CHOICES.get(path[-1], ()):
            yield Rejection(path, value=value, instead=_nearest(value, path[-1], named.allowed))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_number(named, path, value)


def _nearest(value: str, key: str, known: tuple[str, ...]) -> str | None:
    return nearest_level(value, known) if key in _EFFORTS and known else None


def _of_number(named: Named, path: Path, value: float) -> Iterator[Rejection]:
    least, most = _NUMBERS.get(path[-1], (1, 0))
    if not least <= value <= most:
        return
    low = least if named.low is None else named.low
    high = most if named.high is None else named.high
    if named.low is None and named.high is None:
        yield Rejection(path)
    elif not low <= value <= high:
        yield Rejection(path, bounds=(low, high))


# --- where it is -----------------------------------------------------------------------


def _find(body: Json, field: str, shape: Shape) -> Path | None:
    """The path of `field` in `body`; a bare key that is not at the top is looked for wherever it may go."""
    steps = [step for step in re.split(r"[.\[\]/]+", field) if step]
    if steps[:1] == ["body"]:  # FastAPI's `loc`
        del steps[0]
    if not steps:
        return None
    steps = _effort(steps, body)
    top, rest = steps[0], steps[1:]
    if rest:
        inner = _resolve(body.get(top), rest)
        return None if inner is None else (top, *inner)
    if top in body:
        return (top,)
    held = {key: body[key] for key in _SEARCHED if key in body}
    places = (path for key in held for path in _leaves(held[key], top, (key,)))
    return next((path for path in places if allowed(Rejection(path), shape)), None)


def _effort(steps: list[str], body: Json) -> list[str]:
    """The effort by the name it has in this body, whatever wire the backend thinks of."""
    if steps in (["reasoning_effort"], ["effort"], ["reasoning", "effort"]):
        return ["reasoning_effort"] if "reasoning_effort" in body else ["reasoning", "effort"]
    return steps


def _resolve(value: Any, steps: list[str]) -> Path | None:
    """`steps` in `value`, each as far as there is such a key; the last one must be there."""
    if not steps:
        return None
    if isinstance(value, list):
        return _in_list(value, steps)
    if not isinstance(value, dict):
        return None
    step, rest = steps[0], steps[1:]
    if step in value:
        inner = _resolve(value[step], rest) if rest else ()
        if inner is not None:
            return (step, *inner)
    if rest:
        return _resolve(value, rest)  # a tag of the backend's types, or a turn that it merged
    wrapper = next(
        (key for key in _WRAPPERS if isinstance(value.get(key), dict) and step in value[key]), None
    )
    return None if wrapper is None else (wrapper, step)


def _in_list(entries: list[Any], steps: list[str]) -> Path | None:
    """In the entry that is named, else in the first that has it."""
    numbered = steps[0].isdigit()
    rest = steps[1:] if numbered else steps
    at = int(steps[0]) if numbered else 0
    found = (_resolve(entry, rest) for entry in [*entries[at : at + 1], *entries])
    inner = next((path for path in found if path is not None), None)
    return None if inner is None else (EACH, *inner)


def _leaves(value: Any, key: str, path: Path) -> Iterator[Path]:
    """Where `key` stands in `value`, looking only where a request's own keys are."""
    if isinstance(value, list):
        for entry in value:
            yield from _leaves(entry, key, (*path, EACH))
    elif isinstance(value, dict):
        if key in value:
            yield (*path, key)
        for step in INNER.intersection(value):
            yield from _leaves(value[step], key, (*path, step))
