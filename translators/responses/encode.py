"""A `Call` as the body of a Responses request.

The canonical body is written first; then the backend's profile edits it, as it would edit a
client's own. What that step reports is told at the place in the client's body it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..dialect import Encoded, Loss
from ..errors import ProxyError, bad_request, param_at, pointer_at
from ..ir import Call, Item, Json, Message, Text
from ..params import BY_NAME, Param, idle, place_of
from ..profile import Profile
from .edit import edit_request
from .edit_tools import write_choice
from .encode_items import ItemWriter
from .encode_tools import write_tool

_LOGPROBS = "message.output_text.logprobs"


def encode_request(call: Call, profile: Profile) -> Encoded:
    """The body, and what of the call it had to leave out.

    Raises 400 (`ProxyError`, with `param`) for content and features this wire cannot carry.
    """
    return _Writer(call, profile).run()


class _Writer:
    """One body being written. `_source` maps pointers in it to pointers in the client's body."""

    def __init__(self, call: Call, profile: Profile) -> None:
        self._call, self._profile = call, profile
        self._body: Json = {"model": call.model}
        self._losses: list[Loss] = []
        self._source: dict[str, str] = {}

    def run(self) -> Encoded:
        self._write_input()
        self._write_tools()
        self._write_params()
        self._write_extra()
        if self._call.stream:
            self._body["stream"] = True
        try:
            edited = edit_request(self._body, self._profile)
        except ProxyError as error:
            error.param = self._param(error.param)
            raise
        edited.losses = self._losses + [found for loss in edited.losses for found in self._told(loss)]
        edited.changed = True
        return edited

    def _told(self, loss: Loss) -> Iterator[Loss]:
        """The loss at the client's place; none for what the client never sent."""
        if told := self._place(loss.pointer):
            yield loss._replace(pointer=told)

    def _param(self, ours: str | None) -> str | None:
        """The client's name for a parameter of our body, where it has another."""
        return param_at(self._place(pointer_at(ours or ""))) or ours

    def _place(self, ours: str) -> str:
        """The client's pointer for a place in our body, empty when it comes from none."""
        for pointer in _prefixes(ours):
            if self._source.get(pointer):
                rest = ours.removeprefix(pointer) if self._call.shape == "responses" else ""
                return self._source[pointer] + rest
        return ""

    # --- items ---------------------------------------------------------------------

    def _write_input(self) -> None:
        items, chat = self._call.items, self._call.shape == "chat"
        leading = _leading(items, chat)
        if chat and len(leading) == len(items):
            leading = ()  # with nothing else said, it is what is asked: OpenAI refuses an empty input
        words = [told for item in leading if (told := _words(item))]
        if words:
            self._body["instructions"] = "\n\n".join(words)
        writer, written = ItemWriter(self._call, self._profile.messages.media, self._losses), list[Json]()
        for item in items[len(leading) :]:
            for each in writer.write(item):
                self._source[f"/input/{len(written)}"] = item.at
                written.append(each)
        self._body["input"] = written

    # --- tools ---------------------------------------------------------------------

    def _write_tools(self) -> None:
        call = self._call
        for index, tool in enumerate(call.tools):
            self._source[f"/tools/{index}"] = tool.at
        if call.tools:
            self._body["tools"] = [write_tool(tool, call.shape == "responses") for tool in call.tools]
        if call.tool_choice is not None:
            self._body["tool_choice"] = write_choice(call.tool_choice)
            self._source["/tool_choice"] = "/tool_choice"

    # --- parameters ----------------------------------------------------------------

    def _write_params(self) -> None:
        for name, value in self._call.params.items():
            param = BY_NAME[name]
            if name == "logprobs":
                self._ask_logprobs(value)
            elif param.responses is None or self._unwanted(param.responses):
                self._lose(param, value)
            elif name != "parallel_tool_calls" or (value is False and self._call.tools):
                self._set(param, value)
        if self._call.shape == "chat":
            # Nothing is kept on behalf of a client whose own wire keeps nothing unless asked.
            self._body.setdefault("store", False)

    def _unwanted(self, path: str) -> bool:
        unwanted = self._profile.request.drop_translated
        return path in unwanted or path.split(".")[0] in unwanted

    def _lose(self, param: Param, value: Any) -> None:
        if idle(param.name, value):
            return
        pointer = place_of(param, self._call)
        if param.kind == "feature":
            shown = param_at(pointer)
            raise bad_request(f"this model's backend cannot take `{shown}`; remove it", shown)
        self._losses.append(Loss(pointer, f"no {param.name} on this wire", param.kind))

    def _set(self, param: Param, value: Any) -> None:
        path = str(param.responses)
        steps = path.split(".")
        holder = self._body
        for step in steps[:-1]:
            holder = holder.setdefault(step, {})
        if param.name == "include":
            value = [*value, *holder.get("include", ())]
        holder[steps[-1]] = value
        self._source["/" + "/".join(steps)] = place_of(param, self._call)

    def _ask_logprobs(self, value: Any) -> None:
        if value:
            self._body["include"] = [*self._body.get("include", ()), _LOGPROBS]
            self._source.setdefault("/include", place_of(BY_NAME["logprobs"], self._call))

    def _write_extra(self) -> None:
        """Keys without a neutral name reach a backend of their own shape only."""
        for key, value in self._call.extra.items():
            if self._call.shape != "responses":
                self._losses.append(Loss(f"/{key}", "not a parameter of this wire"))
            elif isinstance(value, dict) and isinstance(self._body.get(key), dict):
                self._body[key] = {**value, **self._body[key]}
            else:
                self._body[key] = value
            self._source.setdefault(f"/{key}", f"/{key}")


def _leading(items: Sequence[Item], all_of_them: bool) -> tuple[Message, ...]:
    """The messages that become `instructions`.

    A Responses client's own (decoded from there), or a Chat client's leading run of system
    and developer messages, as far as they are only words.
    """
    found: list[Message] = []
    for item in items:
        if not isinstance(item, Message) or item.role not in ("system", "developer"):
            break
        if item.at != "/instructions" and not all_of_them:
            break
        if not all(isinstance(part, Text) for part in item.parts):
            break
        found.append(item)
    return tuple(found)


def _words(item: Message) -> str:
    return "\n".join(part.text for part in item.parts if isinstance(part, Text))


def _prefixes(pointer: str) -> Iterator[str]:
    """`pointer`, then everything it is inside of."""
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]
