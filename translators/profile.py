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

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max", "default"]
"""Levels that some backend takes; `default` is Groq's word for a model's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """How the gateway's key for this backend is sent."""

    kind: Literal["bearer", "header", "databricks", "none"] = "bearer"
    header: str = "Authorization"
    prefix: str = "Bearer "


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelList:
    path: str | None = "/models"
    kind: Literal["openai", "databricks", "ollama", "static"] = "openai"


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
    ollama: str | None = None
    """Ollama's own chat, under the server's root."""
    embeddings: str | None = "/embeddings"
    compact: str | None = None
    """Compacts a conversation; Responses then knows `compaction_trigger` too. None: the gateway does it."""
    input_tokens: str | None = None
    """Counts the tokens of a Responses body; None: they are estimated."""
    models: ModelList = field(default_factory=ModelList)
    chaining: Literal["auto", True, False] | None = None
    """A stored conversation goes on from what the backend stored of it: it is sent what is new (true; `auto`:
    of models that reason), or nothing is stored there (false). None: the whole conversation each time."""
    websocket: bool = False
    """Whether the backend takes Responses over a WebSocket; told where the gateway's own is turned off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRules:
    """Edits of the request's top level."""

    drop: tuple[str, ...] = ()
    """Keys never sent, whatever the lane."""
    drop_values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Keys that are not sent with one of these values, whatever the lane."""
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
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Top-level keys of the backend's shape and the values sent where the client says nothing."""
    context_window: int | None = None
    """Tokens the model takes in all: a request estimated to hold more is refused before it is sent."""
    chars_per_token: float | None = None
    """What the estimate divides by; needs `context_window`. None: a cautious figure."""
    min_output_tokens: int | None = None
    """The least `max_output_tokens` that a Responses backend takes: a smaller one is raised, and told."""
    max_body_bytes: int | None = None
    id_max_len: int | None = None
    learn_rejections: bool = True
    """Leave out what a 400 or 422 of the backend names, ask again at once, and remember it for a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallIdRule:
    max: int = 64
    pattern: str | None = None


MediaRule = Literal["keep", "refuse", "describe"]
"""Sent on as far as the wire can say it; a 400 naming the modality; or told in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRules:
    """What becomes of pictures, documents and sound, by modality."""

    image: MediaRule = "keep"
    file: MediaRule = "keep"
    audio: MediaRule = "keep"
    unsupported: Literal["refuse", "describe"] = "refuse"
    """What the backend's wire has no form for at all."""
    tool_results: Literal["lift", "keep", "describe", "refuse"] = "lift"
    """Media in a tool's result on the Chat wire: moved to a user message after the results, or left there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRules:
    """What the backend takes as conversation; most keys describe the Chat wire."""

    developer: Literal["keep", "system", "user"] = "system"
    system: Literal["many", "merge_leading", "hoist_all"] = "merge_leading"
    system_channel: Literal["instructions", "developer-item", "system-item"] = "instructions"
    """Responses wire: whether `instructions` go as such, or as the first item of `input`."""
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
    media: MediaRules = field(default_factory=MediaRules)
    cache_marks: bool = False
    """Mark the first system message and the one before the last for Anthropic's prompt cache."""
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
    supported: bool = True
    """False: a request with tools is refused with a 400 before it is sent."""
    types: tuple[str, ...] = ("function",)
    custom: Literal["function", "keep", "drop"] = "function"
    builtin: Literal["drop", "keep", "reject"] = "drop"
    unknown: tuple[str, ...] = ()
    """Types of hosted tools that the model does not know although the backend does: left out."""
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
    efforts: tuple[Effort, ...] = ("low", "medium", "high")
    map: Mapping[str, str] = field(default_factory=dict)
    default_effort: Effort | None = None
    """The level asked for where the client names none; None and `none` ask for nothing."""
    mode: Literal["off", "summary-only", "encrypted"] | None = None
    """How reasoning of earlier turns goes back: not at all, its words only, or whole; None: as the client
    sends it, where the backend takes it."""
    scope: Literal["turn", "all", "none"] = "turn"
    """Of which turns: what came since the last real user message, all, or none."""
    sweep: bool = True
    """Leave out reasoning whose prefix has changed or whose partner is gone, before a backend refuses it."""
    fields: tuple[str, ...] = ("reasoning_content", "reasoning", "reasoning_text")
    parts: tuple[str, ...] = ("reasoning", "thinking", "redacted_thinking")
    tags: tuple[str, str] | None = ("<think>", "</think>")
    replay: Literal["never", "field", "parts", "details", "tags"] = "never"
    replay_field: str = "reasoning_content"
    replay_on: Literal["all", "tool_turns"] = "all"
    placeholder: str | None = None
    signature: str | None = None
    drop_sampling: bool | Literal["unless_none"] = False
    """Leave sampling parameters out while the model reasons; `unless_none`: it does without being asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDelta:
    """What is exact in streamed calls; `any`: guessed from whatever comes."""

    index: Literal["any", "exact"] = "any"
    """Exact: an index is one call, whatever ids and names come with it."""
    id: Literal["any", "exact"] = "any"
    """Exact: a new id, and nothing else, begins a new call."""
    args: Literal["any", "exact"] = "any"
    """Exact: every piece is appended as it is, `{}` and repetitions too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SseRules:
    comments: bool = True
    """Hand on comment lines of a stream that passes."""
    done: Literal["optional", "required"] = "optional"
    """Required: a Chat stream that ends without `[DONE]` has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRules:
    """What the backend's replies look like; read by the tolerant decoders."""

    exact: bool = False
    """Replies pass untouched and unwatched in the pass lane."""
    content: Literal["any", "string"] = "any"
    """String: content that is no text is a failure of the backend (Chat wire)."""
    finish_map: Mapping[str, str | None] = field(default_factory=dict)
    tool_calls_imply_finish: bool = True
    usage: Literal["any", "final"] = "any"
    """Final: counts inside a choice (Moonshot's) are not read (Chat wire)."""
    reasoning_in_completion: bool = True
    continuations: int = 0
    """How often a text that the token limit cut off is asked to go on, 5 at most; it stays one answer."""
    tool_delta: ToolDelta = field(default_factory=ToolDelta)
    sse: SseRules = field(default_factory=SseRules)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    statuses: tuple[int, ...] = (408, 409, 429, 500, 502, 503, 504)
    after: tuple[str, ...] = ("retry-after", "x-retry-after")
    window_s: float = 0
    """Seconds of the backend's rate window: what a bare 429 is answered with as Retry-After."""
    codes: tuple[str, ...] = ()


ErrorShape = Literal[
    "openai",
    "in_band",
    "anthropic",
    "string",
    "databricks",
    "cloudflare",
    "fastapi",
    "google_list",
    "minimax_base_resp",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRules:
    shapes: tuple[ErrorShape, ...] = ("openai",)
    """Where an error body's words are looked for first, in this order."""
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
    {
        "request.drop_values",
        "request.rename",
        "request.clamp",
        "request.force",
        "request.defaults",
        "reasoning.map",
        "answer.finish_map",
    }
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
