"""What a backend turned out not to take, and a body without it.

A rejection is general: a key that one message may not have, no message may. Never left out is what
gives a request its meaning: the conversation, the tools, the choice among them, the output format.
Their refusal is the client's to hear. How a refusal is read is in `rejection_reading.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .chat.edit_arrange import one_system
from .chat.edit_keys import CALL_KEYS, MESSAGE_KEYS, TOOL_KEYS
from .dialect import Loss, LossKind
from .ir import Json, Shape
from .params import BY_NAME, PARAMS, Param, idle
from .responses.keys import ITEMS, PARTS, TOOLS

EACH = "*"
"""The step of a path that stands for every entry of a list."""

Path = tuple[str, ...]

SYSTEM_FIRST = "system_first"
"""Instead of `messages` in the client's order: what its system messages say stands in one, at the start."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """A field that is left out wherever it stands, or what else is done about it.

    `path`: keys from the top of the body, `*` for each entry of a list. With `value`, only that value
    is refused, and `instead` is sent for it; with `bounds`, a number is moved into them; with `name`, the
    field is sent under that name; with `beside`, it goes only from a body that sets that key too.
    """

    path: Path
    value: str | bool | int | float | None = None
    instead: str | None = None
    bounds: tuple[float, float] | None = None
    name: str | None = None
    beside: str | None = None

    @property
    def field(self) -> str:
        """`tools.*.function.strict`."""
        return ".".join(self.path)


# --- what may be left out --------------------------------------------------------------

_NEVER = frozenset(
    {
        *("model", "messages", "input", "instructions", "stream", "previous_response_id", "conversation"),
        *("tools", "tool_choice", "functions", "function_call", "response_format", "text"),
    }
)
_LISTS = ("messages", "input", "tools")
_OPTIONAL = frozenset(
    {"strict", "status", "phase", "annotations", "logprobs", "detail", "prompt_cache_breakpoint"}
)
"""Official keys inside messages, items, parts and tools that can go without changing what is said."""
_OPTIONAL_AT: Collection[Path] = {
    ("messages", EACH, "name"),
    ("messages", EACH, "id"),
    ("input", EACH, "id"),
    ("text", "verbosity"),
}
_OLLAMA: Collection[Path] = {("tools",), ("think",)}
"""What Ollama refuses of a model that cannot do it: it answers without, and a client is told of the loss."""
_ROLES: Collection[Path] = {("messages", EACH, "role"), ("input", EACH, "role")}
"""Said by another name where `developer` is unknown, as a profile says it (`messages.developer`)."""
_SAID = {*_ROLES, ("messages",)}
_MEANING = frozenset({"refusal", "audio", "image_url", "input_audio", "file", "video_url", EACH}).union(
    *MESSAGE_KEYS.values(),
    *TOOL_KEYS.values(),
    *CALL_KEYS.values(),
    *ITEMS.values(),
    *PARTS.values(),
    *TOOLS.values(),
    ("thinking", "data", "function", "custom", "tools", "tool_calls", "summary"),
)
INNER = frozenset({EACH, "content", "tool_calls", "function", "custom", "image_url"})
"""Steps that a path may take inside a list: none of them leads into a schema or a client's own data."""
_TYPES: Mapping[str, Collection[object]] = {"tools": ("function", "custom", None), "input": {*ITEMS, None}}
"""Entries whose keys are known; a hosted tool, say, is what its keys are."""


def allowed(rejection: Rejection, shape: Shape) -> bool:
    """Whether a body of `shape` may be edited so; asked of what is read, from wherever it is read."""
    path = rejection.path
    if shape == "ollama":
        return path in _OLLAMA
    if path in _OPTIONAL_AT:
        return True
    if path == ("messages",):
        return rejection.instead == SYSTEM_FIRST
    if path in _ROLES:
        return rejection.value == "developer" and rejection.instead in ("system", "user")
    if not path or (path[0] in _NEVER and path[0] not in _LISTS):
        return False
    if path[0] in _LISTS:
        optional = path[-1] in _OPTIONAL or path[-1] not in _MEANING
        return len(path) > 2 and path[1] == EACH and INNER.issuperset(path[1:-1]) and optional
    param = next((param for param in PARAMS if param.path(shape) == rejection.field), None)
    if param is not None and param.kind == "feature":
        return idle(param.name, rejection.value)
    return EACH not in path


# --- the edit --------------------------------------------------------------------------


def without(body: Json, rejection: Rejection) -> Json:
    """`body` as the backend takes it; the same object when there is nothing to do, and unmutated."""
    if rejection.beside is not None and rejection.beside not in body:
        return body
    if rejection.instead == SYSTEM_FIRST:
        return _system_first(body)
    edited: Json = _edited(body, rejection.path, rejection)
    emptied = edited is not body and edited.get(rejection.path[0]) == {}
    return _less(edited, rejection.path[0]) if emptied else edited


def _system_first(body: Json) -> Json:
    messages = body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        return body
    moved = one_system(messages, hoist=True)
    return body if moved is messages else {**body, "messages": moved}


def _edited(value: Any, path: Path, rejection: Rejection) -> Any:
    step, rest = path[0], path[1:]
    if not isinstance(value, dict) or step not in value:
        return value
    if not rest:
        return _changed(value, step, rejection)
    old = value[step]
    new = _each(old, step, rest[1:], rejection) if rest[0] == EACH else _edited(old, rest, rejection)
    return value if new is old else {**value, step: new}


def _each(entries: Any, key: str, path: Path, rejection: Rejection) -> Any:
    if not isinstance(entries, list):
        return entries
    edited = [_edited(entry, path, rejection) if _is_known(entry, key) else entry for entry in entries]
    return edited if any(new is not old for new, old in zip(edited, entries, strict=True)) else entries


def _is_known(entry: Any, key: str) -> bool:
    return isinstance(entry, dict) and (key not in _TYPES or entry.get("type") in _TYPES[key])


def _changed(holder: Json, key: str, rejection: Rejection) -> Json:
    value = holder[key]
    if rejection.bounds is not None:
        low, high = rejection.bounds
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return {**holder, key: min(max(value, low), high)} if number and not low <= value <= high else holder
    if rejection.value is not None and (value != rejection.value or type(value) is not type(rejection.value)):
        return holder
    if rejection.instead is not None:
        return {**holder, key: rejection.instead}
    if rejection.name is not None:
        return {rejection.name: value, **_less(holder, key)}
    return _less(holder, key)


def _less(holder: Json, key: str) -> Json:
    return {name: value for name, value in holder.items() if name != key}


# --- what the client lost by it --------------------------------------------------------

_ASKS = frozenset(
    {"thinking", "output_config", "enable_thinking", "chat_template_kwargs", "reasoning", "think"}
)
"""Keys of a Chat body, or of Ollama's, that say what a client's effort says (`reasoning.ask`)."""
_LIMITS = ("max_completion_tokens", "max_tokens")
_TOOL_PATHS: Mapping[Shape, tuple[Path, ...]] = {
    "chat": (("tools", EACH), ("tools", EACH, "function"), ("tools", EACH, "custom")),
    "responses": (("tools", EACH), ("tools", EACH, "tools", EACH)),
}
"""Where a tool's own keys stand, in a namespace too."""


def losses(rejection: Rejection, body: Json, client: Shape, backend: Shape) -> list[Loss]:
    """What a body of the shape `backend` lost by the edit, at its places in the client's own `body`."""
    if rejection.name is not None or rejection.path[0] == "stream_options" or rejection.path in _SAID:
        return []  # a new name or place is no loss, nor is what asks for nothing in the answer itself
    reason = _reason(rejection)
    params = _params(rejection, body, client, backend)
    if params:
        return [
            Loss(pointer, reason, param.kind) for param in params for pointer in _said(param, body, client)
        ]
    found = dict.fromkeys(
        place for path in _paths(rejection.path, client, backend) for place in _at(body, path)
    )
    kind: LossKind = "feature" if rejection.path == ("tools",) else "bookkeeping"
    return [Loss(pointer, reason, kind) for pointer in found]


def _reason(rejection: Rejection) -> str:
    if rejection.instead is not None:
        return f"asked as {rejection.instead}, which this backend takes"
    if rejection.bounds is not None:
        low, high = rejection.bounds
        return f"moved into {low:g} to {high:g}, which this backend takes"
    if rejection.beside is not None:
        return f"this backend takes no {rejection.field} beside {rejection.beside}"
    return "this backend refuses it"


def _params(rejection: Rejection, body: Json, client: Shape, backend: Shape) -> list[Param]:
    """The neutral parameters that the field says, or says some of."""
    key, field = rejection.path[0], rejection.field
    if field in _LIMITS:
        return [BY_NAME["max_tokens"]]
    if backend != "responses" and key in _ASKS and (client == "responses" or key not in body):
        return [BY_NAME["effort"]]
    return [param for param in PARAMS if _is_in(param.path(backend), field)]


def _is_in(path: str | None, field: str) -> bool:
    return path is not None and (path == field or path.startswith(f"{field}."))


def _said(param: Param, body: Json, client: Shape) -> Iterator[str]:
    """Where the client said it, unless that says what silence says."""
    names = _LIMITS if param.name == "max_tokens" and client == "chat" else (param.path(client),)
    for name in names:
        path = tuple(name.split(".")) if name else ()
        value: Any = body
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        if path and value is not None and not idle(param.name, value):
            yield "/" + "/".join(path)


def _paths(path: Path, client: Shape, backend: Shape) -> tuple[Path, ...]:
    """Where a client of another shape would have said it; calls, results and parts have no such keys."""
    if path[0] == "tools" and len(path) > 1:
        return tuple((*place, path[-1]) for place in _TOOL_PATHS[client])
    return (path,) if client == backend or backend == "ollama" else ()


def _at(value: Any, path: Path, pointer: str = "") -> Iterator[str]:
    """The pointers of everything at `path`."""
    if not path:
        yield pointer
    elif path[0] == EACH:
        for index, entry in enumerate(value if isinstance(value, list) else ()):
            yield from _at(entry, path[1:], f"{pointer}/{index}")
    elif isinstance(value, dict) and value.get(path[0]) is not None:
        yield from _at(value[path[0]], path[1:], f"{pointer}/{path[0]}")
