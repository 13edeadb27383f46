"""A `Call` as a Chat Completions body: the canonical one, then made fit for the backend.

The canonical body says everything in OpenAI's own words, with a legal order of messages;
what this one backend wants otherwise is done by `edit_request`, as for a client's own body.
Only what a translation alone decides is decided here: parameters that Chat has no name for,
`request.drop_translated`, and the name of the one limit on tokens.

Losses and errors point into the client's body, whatever its shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dialect import Encoded, Loss
from ..errors import ProxyError, bad_request, param_at, pointer_at
from ..ir import AnyTool, Call, Json, Opaque, Tool, ToolChoice, ToolRef
from ..params import PARAMS, Param, idle, place_of
from ..profile import Profile
from .edit import edit_request
from .edit_draft import PARAM_OF
from .encode_messages import Conversation
from .history import repair_history

_MAX_NAMED = 3
"""Losses named where nothing is left; more say nothing more."""


def encode_request(call: Call, profile: Profile) -> Encoded:
    """The body for a Chat backend; `call` holds only tools that the profile takes.

    Raises 400 (`ProxyError`) for content and features that cannot be carried.
    """
    conversation = Conversation(call, profile)
    messages, repairs = repair_history(conversation.messages, profile.messages.media.tool_results != "keep")
    losses = conversation.losses
    if not messages:
        raise _nothing_left(call, losses)
    body: Json = {"model": call.model, "messages": messages}
    body |= _params(call, profile, losses)
    tools = _tools(call, losses)
    if tools:
        body["tools"] = [written for _, written in tools]
    if call.tool_choice is not None:
        body["tool_choice"] = _choice(call.tool_choice)
    if call.stream:
        body["stream"] = True
    body |= _extra(call, losses)
    places = _Places(call, messages, conversation.at, [at for at, _ in tools])
    try:
        edited = edit_request(body, profile)
    except ProxyError as error:
        error.param = places.param(error.param)
        raise
    losses += places.losses(edited.losses)
    return Encoded(edited.body, losses, [*repairs, *edited.repairs])


def _nothing_left(call: Call, losses: Sequence[Loss]) -> ProxyError:
    """All that was said means nothing here; without a message there is nothing to answer."""
    name = "messages" if call.shape == "chat" else "input"
    reasons = "; ".join(f"{param_at(loss.pointer)}: {loss.reason}" for loss in losses[:_MAX_NAMED])
    told = f" ({reasons})" if reasons else ""
    return bad_request(
        f"`{name}` holds nothing that this model's backend can answer{told}: send a message.", name
    )


# --- parameters ------------------------------------------------------------------------


def _params(call: Call, profile: Profile, losses: list[Loss]) -> Json:
    written: Json = {}
    for param in PARAMS:
        value = call.params.get(param.name)
        # What says the same as nothing is left unsaid, except where the client said it in this shape.
        if value is None or (call.shape != "chat" and idle(param.name, value)):
            continue
        key = profile.request.max_tokens_key if param.name == "max_tokens" else param.chat
        if key is None:
            _leave_out(param, call, losses)
        elif call.shape != "chat" and key in profile.request.drop_translated:
            losses.append(Loss(place_of(param, call), "not carried to this backend", param.kind))
        else:
            written[key] = _format(value) if param.name == "format" else value
    if written.get("top_logprobs"):
        written["logprobs"] = True  # Chat wants both, Responses says it with one
    return written


def _leave_out(param: Param, call: Call, losses: list[Loss]) -> None:
    if param.kind == "feature":
        name = param_at(place_of(param, call))
        raise bad_request(f"This model's backend does not take `{name}`: leave it out.", name)
    losses.append(Loss(place_of(param, call), "Chat Completions has no such parameter", param.kind))


def _format(format: Json) -> Json:
    """`{type: json_schema, name, schema, strict, description}` nested the way Chat does."""
    if format.get("type") != "json_schema":
        return format
    spec = {key: value for key, value in format.items() if key != "type" and value is not None}
    return {"type": "json_schema", "json_schema": spec}


def _extra(call: Call, losses: list[Loss]) -> Mapping[str, Any]:
    """Keys without a neutral name go back to their own shape only."""
    if call.shape == "chat":
        return call.extra
    for key, value in call.extra.items():
        if value is not None:
            losses.append(Loss(f"/{key}", "unknown to Chat Completions"))
    return {}


# --- tools -----------------------------------------------------------------------------


def _tools(call: Call, losses: list[Loss]) -> list[tuple[str, Json]]:
    """The tools in the Chat form, each with its place in the client's body."""
    tools = []
    for tool in call.tools:
        written = _tool(tool, call.shape == "chat")
        if written is None:
            losses.append(Loss(tool.at, "Chat Completions has no such tool", "feature"))
        else:
            tools.append((tool.at, written))
    return tools


def _tool(tool: AnyTool, own: bool) -> Json | None:
    if isinstance(tool, Opaque):
        return tool.raw if tool.shape == "chat" else None
    if not isinstance(tool, Tool):
        return None
    spec: Json = {"name": tool.name, "description": tool.description}
    if tool.kind == "custom":
        spec["format"] = _grammar(tool.format)
    else:
        spec |= {"parameters": tool.schema, "strict": tool.strict}
    kind = "custom" if tool.kind == "custom" else "function"
    written = {"type": kind, kind: {key: value for key, value in spec.items() if value is not None}}
    return {**written, **tool.extra} if own else written


def _grammar(format: Json | None) -> Json | None:
    """`{type: grammar, syntax, definition}` nested the way Chat does."""
    if format is None or format.get("type") != "grammar":
        return format
    return {"type": "grammar", "grammar": {key: format.get(key) for key in ("syntax", "definition")}}


def _choice(choice: ToolChoice) -> Any:
    if choice.only is None:
        return choice.mode
    refs = [_ref(ref) for ref in choice.only]
    if choice.named:
        return refs[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": refs}}


def _ref(ref: ToolRef) -> Json:
    if ref.type in ("function", "custom"):
        return {"type": ref.type, ref.type: {"name": ref.name}}
    return dict(ref.raw) or {"type": ref.type}


# --- the way back to the client's body -------------------------------------------------


class _Places:
    """Where in the client's body a place in ours comes from."""

    def __init__(self, call: Call, messages: list[Json], at: dict[int, str], tools: list[str]) -> None:
        self._call, self._messages, self._at, self._tools = call, messages, at, tools

    def losses(self, losses: list[Loss]) -> list[Loss]:
        """The losses that are the client's; one that only our own writing caused is none."""
        found = (loss._replace(pointer=self.pointer(loss.pointer)) for loss in losses)
        return list(dict.fromkeys(loss for loss in found if loss.pointer))

    def pointer(self, ours: str) -> str:
        """The client's pointer, empty when nothing of the client's is there."""
        key, *rest = ours.removeprefix("/").split("/")
        if key == "messages" and rest:
            return self._message(int(rest[0]), rest[1:])
        if key == "tools" and rest:
            return self._tool(int(rest[0]), rest[1:])
        param = PARAM_OF.get(key)
        return place_of(param, self._call) if param is not None else ours

    def _message(self, i: int, rest: list[str]) -> str:
        """What is inside has the same names in our own shape; elsewhere the item is named."""
        at = self._at.get(id(self._messages[i]), "")
        return "/".join([at, *rest]) if at and self._call.shape == "chat" else at

    def _tool(self, i: int, rest: list[str]) -> str:
        """Chat nests under the tool's type what Responses has flat."""
        return "/".join([self._tools[i], *(rest if self._call.shape == "chat" else rest[1:])])

    def param(self, ours: str | None) -> str | None:
        """The client's name for a parameter of our body, None when it is none of the client's."""
        return param_at(self.pointer(pointer_at(ours or ""))) or None
