"""How one backend differs from the shape it claims to speak: data, read by the dialects.

A `Profile` is the merge of layers (base < wire < kind < host < model < configuration). The
sections and keys are public names: a configuration may override any of them. Rows live in
`providers/profiles.py`, each with its evidence; nothing here names a vendor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .ir import Json

ReasoningAsk = Literal[
    "openai",
    "thinking_budget",
    "thinking_adaptive",
    "thinking_toggle",
    "enable_thinking",
    "reasoning_object",
    "none",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """How the gateway's key for this backend is sent."""

    kind: Literal["bearer", "header", "databricks", "none"] = "bearer"
    header: str = "Authorization"
    prefix: str = "Bearer "


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    path: str | None = "/models"
    kind: Literal["openai", "databricks", "static"] = "openai"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """Paths under the base URL, one for each shape the backend speaks; None: it does not."""

    chat: str | None = "/chat/completions"
    responses: str | None = None
    open_responses: str | None = None
    responses_first: bool = False
    """Speak Responses to it before Chat, and remember where it says "not here"."""
    responses_only: tuple[str, ...] = ()
    """Model globs that are refused on Chat: a Chat client is raised to Responses."""
    embeddings: str | None = "/embeddings"
    models: ModelList = field(default_factory=ModelList)
    websocket: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRules:
    """Edits of the request's top level."""

    drop: tuple[str, ...] = ()
    """Keys never sent, whatever the lane."""
    drop_translated: tuple[str, ...] = ()
    """Keys (of the backend's shape) that a translation does not carry over."""
    max_tokens_key: str = "max_tokens"
    """The one neutral limit's name on the Chat wire when a translation writes it."""
    allow: tuple[str, ...] | None = None
    """Allow-list mode: every other key is dropped."""
    extra_keys: tuple[str, ...] | None = None
    """None: keys outside the shape pass. A list: only those of the shape and these do, at
    body, message, part and tool level (backends that answer 400 to one unknown key)."""
    rename: Mapping[str, str] = field(default_factory=dict)
    clamp: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    stream_options: Literal["keep", "drop"] = "keep"
    force: Mapping[str, Any] = field(default_factory=dict)
    max_body_bytes: int | None = None
    id_max_len: int | None = None
    learn_rejections: bool = True
    """Leave out what a 400 or 422 of the backend names, ask again at once, and remember it for a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIdRule:
    max: int = 64
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRules:
    """What the backend takes as conversation; most keys describe the Chat wire."""

    developer: Literal["keep", "system", "user"] = "system"
    system: Literal["many", "merge_leading", "hoist_all"] = "merge_leading"
    text_parts: Literal["keep", "string"] = "keep"
    null_content: Literal["keep", "omit", "empty", "space"] = "keep"
    drop_empty_text: bool = False
    drop_bare_assistant: bool = True
    user_name: Literal["keep", "drop"] = "keep"
    tool_name: bool = False
    trailing_assistant: Literal["keep", "drop"] = "keep"
    split_parallel_tool_results: bool = False
    remote_images: Literal["keep", "inline", "reject"] = "keep"
    """Images by URL: sent on, fetched by the gateway and sent as `data:` URLs, or refused with a 400."""
    tool_call_id: CallIdRule = field(default_factory=CallIdRule)
    assistant_parts: Literal["output", "input"] = "output"
    """Responses wire: how parts of old answers are written (`output_text`, or `input_text`)."""
    reasoning_items: Literal["keep", "drop"] = "keep"
    """Responses wire: whether reasoning of earlier turns is given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRules:
    """JSON Schema edits of tool parameters."""

    inline_refs: bool = False
    drop: tuple[str, ...] = ()
    top_level_union: Literal["keep", "wrap", "reject"] = "keep"
    require_object: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceRules:
    """How `tool_choice` is said when the backend lacks a form of it."""

    required: Literal["keep", "any", "auto"] = "keep"
    named: Literal["keep", "required_single", "auto"] = "keep"
    allowed_tools: Literal["keep", "filter"] = "filter"
    with_thinking: Literal["keep", "auto"] = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    types: tuple[str, ...] = ("function",)
    custom: Literal["function", "keep", "drop"] = "function"
    builtin: Literal["drop", "keep", "reject"] = "drop"
    strict: Literal["keep", "drop"] = "drop"
    max: int | None = None
    schema: SchemaRules = field(default_factory=SchemaRules)
    choice: ChoiceRules = field(default_factory=ChoiceRules)
    parallel_flag: Literal["keep", "drop"] = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFormat:
    json_object: Literal["keep", "drop"] = "keep"
    json_schema: Literal["native", "tool", "prompt", "drop"] = "native"
    with_stream: bool = True
    with_tools: bool = True
    needs_json_word: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningRules:
    ask: ReasoningAsk = "openai"
    efforts: tuple[str, ...] = ("low", "medium", "high")
    map: Mapping[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ("reasoning_content", "reasoning", "reasoning_text")
    parts: tuple[str, ...] = ("reasoning", "thinking", "redacted_thinking")
    tags: tuple[str, str] | None = ("<think>", "</think>")
    replay: Literal["never", "field", "parts", "details", "tags"] = "never"
    replay_field: str = "reasoning_content"
    replay_on: Literal["all", "tool_turns"] = "all"
    placeholder: str | None = None
    signature: str | None = None
    drop_sampling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDelta:
    index: Literal["any", "exact"] = "any"
    id: Literal["any", "exact"] = "any"
    args: Literal["any", "exact"] = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class SseRules:
    comments: bool = True
    done: Literal["optional", "required"] = "optional"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRules:
    """What the backend's replies look like; read by the tolerant decoders."""

    exact: bool = False
    """Replies pass untouched and unwatched in the pass lane."""
    content: Literal["any", "string"] = "any"
    finish_map: Mapping[str, str | None] = field(default_factory=dict)
    tool_calls_imply_finish: bool = True
    usage: Literal["any", "final"] = "any"
    reasoning_in_completion: bool = True
    tool_delta: ToolDelta = field(default_factory=ToolDelta)
    sse: SseRules = field(default_factory=SseRules)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    statuses: tuple[int, ...] = (408, 409, 429, 500, 502, 503, 504)
    after: tuple[str, ...] = ("retry-after", "x-retry-after")
    window_s: float = 0
    """Seconds of the backend's rate window: what a bare 429 is answered with as Retry-After."""
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRules:
    shapes: tuple[str, ...] = ("openai",)
    retry: RetryRules = field(default_factory=RetryRules)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One backend, model and wire, resolved. The defaults are the safest chat backend known."""

    name: str = "base"
    auth: Auth = field(default_factory=Auth)
    wire: Wire = field(default_factory=Wire)
    request: RequestRules = field(default_factory=RequestRules)
    messages: MessageRules = field(default_factory=MessageRules)
    tools: ToolRules = field(default_factory=ToolRules)
    output_format: OutputFormat = field(default_factory=OutputFormat)
    reasoning: ReasoningRules = field(default_factory=ReasoningRules)
    answer: AnswerRules = field(default_factory=AnswerRules)
    errors: ErrorRules = field(default_factory=ErrorRules)


FREE_FORM = frozenset(
    {"request.rename", "request.clamp", "request.force", "reasoning.map", "answer.finish_map"}
)
"""Sections whose keys are the user's own."""


def merge(*layers: Mapping[str, Any]) -> Json:
    """Deep merge, later wins: tables merge key by key, everything else (lists too) replaces."""
    out: Json = {}
    for layer in layers:
        for key, value in layer.items():
            known = out.get(key)
            if isinstance(value, Mapping) and isinstance(known, Mapping):
                out[key] = merge(known, value)
            else:
                out[key] = merge(value) if isinstance(value, Mapping) else value
    return out
