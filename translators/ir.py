"""The neutral model: what a call asks, and what a reply is made of.

Values only: no I/O, no clock, no ids made here, no vendor's wire names. `Call` is modelled on the richest
shape (ordered items), so no shape loses order. What it has no name for travels as `Opaque` and only reaches
a backend of its own shape. A reply is a sequence of events; `Grammar` at the end of the file is their legal
order, in one place: every decoder is tested against it, every encoder relies on it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, assert_never

from .errors import ProxyError

Json: TypeAlias = dict[str, Any]
Shape = Literal["chat", "responses", "ollama"]  # clients speak the first two
Role = Literal["system", "developer", "user", "assistant"]
ToolKind = Literal["function", "custom", "tool_search"]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]

# --- what a call asks ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text; `annotations` in the Responses form, `mark` a Chat `cache_control`."""

    text: str
    annotations: tuple[Json, ...] = ()
    mark: Json | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    text: str


@dataclass(frozen=True, slots=True)
class Image:
    """A picture by `url` (http or data URL) or by the `file_id` of an earlier upload."""

    url: str | None = None
    file_id: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class File:
    """A document: `data` (data URL or base64), `file_id`, or `url`; one of them is set."""

    data: str | None = None
    file_id: str | None = None
    url: str | None = None
    filename: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class Audio:
    """Sound as base64 `data` in `format` (wav, mp3, ...)."""

    data: str
    format: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part, item or tool this model has no name for, kept whole.

    `shape` says which wire it came from; `at` is its JSON pointer in the client's body.
    """

    shape: Shape
    raw: Json
    at: str = ""

    @property
    def type(self) -> str:
        return str(self.raw.get("type") or "")


Part: TypeAlias = Text | Refusal | Image | File | Audio | Opaque


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    parts: tuple[Part, ...]
    name: str | None = None
    id: str | None = None
    phase: str | None = None
    at: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Keys of the client's shape that have no neutral name; only their own shape gets them back."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the model thought before the item that follows."""

    summary: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    sealed: str | None = None
    """`encrypted_content` or a signature: carried, never read."""
    id: str | None = None
    at: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    native: Mapping[str, Any] = field(default_factory=dict)
    """What an opened capsule holds (`capsule.py`): the backend's own, to be given back word for word."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call in the history; `call_id` is never empty (decoders mint one when the client did not)."""

    call_id: str
    name: str
    arguments: str
    """JSON text for function and tool_search calls, free text for custom ones."""
    kind: ToolKind = "function"
    namespace: str | None = None
    id: str | None = None
    at: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a call (`call_id` empty: the client gave none); `tools`: what a tool_search found."""

    call_id: str
    parts: tuple[Part, ...]
    kind: ToolKind = "function"
    name: str | None = None
    tools: tuple[AnyTool, ...] = ()
    id: str | None = None
    at: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdditionalTools:
    """Tools that arrive as an input item (Codex with newest models sends no others)."""

    tools: tuple[AnyTool, ...]
    role: str = "developer"
    id: str | None = None
    at: str = ""


Item: TypeAlias = Message | Reasoning | ToolCall | ToolResult | AdditionalTools | Opaque


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool the client runs: function (`schema`), custom (`format`) or client-side tool_search."""

    name: str
    description: str | None = None
    schema: Json | None = None
    strict: bool | None = None
    kind: ToolKind = "function"
    format: Json | None = None
    """Custom tools: `{type: text}` or `{type: grammar, syntax, definition}` (the Responses form)."""
    at: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Namespace:
    """A named group of tools: every MCP server of Codex arrives as one."""

    name: str
    tools: tuple[Tool, ...]
    description: str | None = None
    at: str = ""


AnyTool: TypeAlias = Tool | Namespace | Opaque
"""`Opaque` here is a hosted tool (web_search, file_search, ...): the backend runs it or nobody does."""


@dataclass(frozen=True, slots=True)
class ToolRef:
    """A tool named by `tool_choice`: `type` is function, custom or a hosted tool's type."""

    type: str
    name: str | None = None
    namespace: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`only` None: any tool. One ref and `named`: exactly that tool. Else: an allowed set."""

    mode: Literal["auto", "none", "required"]
    only: tuple[ToolRef, ...] | None = None
    named: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One model call, whoever asked.

    `params` uses the neutral names of `params.py`; `extra` holds top-level keys of the
    client's shape that have no neutral name (they reach a backend of the same shape only).
    """

    shape: Shape
    model: str
    items: tuple[Item, ...]
    tools: tuple[AnyTool, ...] = ()
    tool_choice: ToolChoice | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False
    include_usage: bool = True
    """Whether the client wants usage in its stream (Chat: `stream_options.include_usage`)."""
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    """Parameters that the client said under another of their names: neutral name -> pointer."""


# --- what a reply is made of -----------------------------------------------------------
# Not frozen: one `Delta` is made per token, and frozen dataclasses cost three times as much.

ItemKind = Literal["text", "refusal", "reasoning", "summary", "tool_call"]


@dataclass(slots=True)
class Usage:
    """Token counts. `input` includes `cached` and `cache_write`; `output` includes `reasoning`."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    seconds: Mapping[str, float] | None = None
    """What a local backend says it spent: `load`, `prompt`, `eval`; no shape of a client has it."""


@dataclass(slots=True)
class Started:
    """The backend's own id and model of the reply, empty when it told none."""

    id: str = ""
    model: str = ""
    created: int | None = None
    service_tier: str | None = None
    fingerprint: str | None = None


@dataclass(slots=True)
class Opened:
    """A piece of output begins: text, refusal, raw reasoning, reasoning summary, or a call.

    `joins` says that it continues the item opened just before it, as a further part (a
    refusal after text in one message; a second summary part of one reasoning item). `id` is
    the backend's own id of a reasoning item: what is sealed in it is bound to that id.
    """

    index: int
    kind: ItemKind
    call_id: str = ""
    name: str = ""
    tool: ToolKind = "function"
    namespace: str | None = None
    joins: bool = False
    phase: str | None = None
    id: str = ""
    native: Mapping[str, Any] | None = None
    """Keys of a call that its backend wants back (a thought signature); of reasoning: its `field`."""


@dataclass(slots=True)
class Delta:
    """More text of an open piece. `logprobs`: list of `{token, logprob, bytes, top_logprobs}`."""

    index: int
    text: str
    logprobs: list[Json] | None = None


@dataclass(slots=True)
class Annotated:
    """A citation on an open text piece, in the Responses form."""

    index: int
    annotation: Json


@dataclass(slots=True)
class Closed:
    """A piece ends.

    `text` is the whole text by the backend's word when it differs from the deltas; `sealed`
    an encrypted form or signature of reasoning; `cut` says that the backend left it unfinished.
    """

    index: int
    sealed: str | None = None
    text: str | None = None
    cut: bool = False
    native: Mapping[str, Any] | None = None
    """Of reasoning: what a capsule holds of it. Of a call: keys like those of `Opened`, told late."""


@dataclass(slots=True)
class Foreign:
    """A whole output item this model has no name for (a hosted tool's call, ...); reasoning: sealed late."""

    index: int
    item: Opaque


@dataclass(slots=True)
class Finished:
    """The reply is whole. `usage` None: the backend told none."""

    reason: FinishReason
    usage: Usage | None = None


@dataclass(slots=True)
class Failed:
    """The reply broke off, or the backend reported an error in it."""

    error: ProxyError
    usage: Usage | None = None


Event: TypeAlias = Started | Opened | Delta | Annotated | Closed | Foreign | Finished | Failed


class GrammarError(ValueError):
    """An event came where none of its kind may come."""


class Grammar:
    """The legal order of events.

    `Started` comes first and once. Indices are dense from 0 in order of opening (`Foreign`
    takes one too). Several pieces may be open at a time; `Delta`, `Annotated` and `Closed`
    name an open one. A `joins` piece follows a closed one of a kind it can share an item
    with. `Finished` comes last with nothing open; `Failed` may come at any time and is last.
    """

    def __init__(self) -> None:
        self.state: Literal["new", "running", "done"] = "new"
        self._next = 0
        self._open: set[int] = set()
        self._last: Opened | None = None

    def see(self, event: Event) -> None:
        """Raise `GrammarError` if `event` may not come now; the state is then unchanged."""
        if not self._legal(event):
            raise GrammarError(f"{event} may not come in state {self.state}, open {self._open}")
        match event:
            case Started():
                self.state = "running"
            case Opened(index=index):
                self._next, self._last = index + 1, event
                self._open.add(index)
            case Foreign(index=index):
                self._next, self._last = index + 1, None
            case Closed(index=index):
                self._open.remove(index)
            case Finished() | Failed():
                self.state = "done"
            case _:
                pass

    def _legal(self, event: Event) -> bool:
        match event:
            case Started():
                return self.state == "new"
            case Failed():
                return self.state != "done"
            case _ if self.state != "running":
                return False
            case Opened(index=index):
                return index == self._next and (not event.joins or may_join(event, self._last, self._open))
            case Foreign(index=index):
                return index == self._next
            case Delta(index=index) | Annotated(index=index) | Closed(index=index):
                return index in self._open
            case Finished():
                return not self._open
        assert_never(event)


def may_join(event: Opened, last: Opened | None, opened: Container[int]) -> bool:
    """Whether `event` may continue the item of `last`, the piece begun before it."""
    if last is None or last.index in opened:
        return False
    kinds = {last.kind, event.kind}  # only these may share an item
    return kinds <= {"text", "refusal"} or kinds <= {"reasoning", "summary"}
