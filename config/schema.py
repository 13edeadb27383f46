"""The configuration, as data that has been checked.

Unknown keys are errors everywhere. What takes more than one value to judge (unique names,
alias targets, keys off loopback) is in `checks.py`; `load.py` runs both and reports every
error at once.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationInfo, field_validator

from .address import normalise
from .overrides import find_problems, without_false

Kind = Literal["openai", "databricks", "ollama", "onnx"]
NAME = "^[a-z0-9-]+$"


def _not_blank(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise ValueError("must not be empty")
    return value


Text = Annotated[str, BeforeValidator(_not_blank)]
Secret = Annotated[SecretStr, BeforeValidator(_not_blank)]


class Section(BaseModel):
    # Inputs are kept out of messages: one of them may be a key. TOML has `inf`, and timers don't take it.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)


class Server(Section):
    """How the gateway listens and how long it waits; times in seconds."""

    host: Text = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=4000, ge=0, le=65535)
    """0: any free port."""
    api_keys: tuple[Secret, ...] = ()
    """What clients may sign with; empty: no key is asked, allowed on loopback only."""
    seal_key: Secret | None = None
    """Secret that reasoning handed to clients is signed with; absent: one kept in the state directory."""
    keepalive_s: float = Field(default=10, gt=0)
    """Longest silence towards a streaming client."""
    idle_timeout_s: float = Field(default=300, gt=0)
    """Longest silence of a backend before the exchange is given up."""
    connect_timeout_s: float = Field(default=10, gt=0)
    """Longest wait for a connection to a backend."""
    retry_budget_s: float = Field(default=5, ge=0)
    """Most seconds that retries may keep a client waiting, in all."""
    max_body_bytes: int = Field(default=64 * 2**20, gt=0)
    """Largest request body, after decompression."""
    shutdown_grace_s: float = Field(default=30, ge=0)
    """How long open streams may go on after a stop signal."""
    workers: int = Field(default=1, ge=1)
    """Processes on the one port."""

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth_value(cls, value: Any) -> Any:
        """Python counts `true` as 1."""
        if isinstance(value, bool):
            raise ValueError("must not be true or false")
        return value


class ProviderConfig(Section):
    """One backend account."""

    name: str = Field(pattern=NAME)
    """What stands before the slash of its model ids: `name/model`."""
    kind: Kind
    """`openai` (any compatible server), `databricks`, `ollama`, or `onnx`: model files on this machine."""
    base_url: Text | None = None
    """Up to `/v1`, of a Databricks the workspace host; required but for kind `onnx`, see `auth`."""
    api_key: Secret | None = None
    """What the gateway signs with towards the backend."""
    auth: Literal["pat", "oauth-m2m", "sdk"] | None = None
    """Databricks: a token, a service principal, or what `databricks-sdk` knows; absent: whatever is given.

    What it needs may then come from the environment or `~/.databrickscfg`, `base_url` too.
    """
    client_id: Text | None = None
    """Databricks: the service principal, with `client_secret`."""
    client_secret: Secret | None = None
    """Databricks: its OAuth secret."""
    config_profile: Text | None = None
    """Databricks: a profile of `~/.databrickscfg` that says what the keys above don't."""
    wire: Literal["auto", "chat", "responses"] = "auto"
    """The shape that the backend is spoken to in: `auto`, `chat` or `responses`."""
    profile: Text | None = None
    """A row of quirks by name; absent: chosen by kind, then host, then model."""
    models: tuple[Text, ...] | None = None
    """For listing; absent: the backend's own list. Others are forwarded all the same."""
    path: Text | None = None
    """Kind `onnx`: a model folder, or a folder of model folders."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Profile sections, and keys of ollama's and onnx's own; TOML's `false` for "none" is None here."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Laid over every body sent, embeddings too, as the last word: tables merge, the rest replaces."""

    max_concurrency: int | None = Field(default=None, ge=1)
    """Most requests at a time; absent: any number."""
    max_queue: int = Field(default=100, ge=0)
    """With `max_concurrency`: most requests that wait for a place; more get 503 with Retry-After."""
    queue_timeout_s: float = Field(default=5, gt=0)
    """With `max_concurrency`: longest wait for a place."""
    first_token_timeout_s: float | None = Field(default=None, gt=0)
    """Longest wait for the first of a stream before the next candidate is asked; absent: no limit.

    At `server.keepalive_s` the answer is opened, and can no longer come from another one.
    """

    @field_validator("base_url")
    @classmethod
    def _address(cls, value: str | None, info: ValidationInfo) -> str | None:
        return None if value is None else normalise(value, info.data.get("kind", ""))

    @field_validator("overrides")
    @classmethod
    def _sections(cls, value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        problems = list(find_problems(value, info.data.get("kind", "")))
        if problems:
            raise ValueError("; ".join(str(problem) for problem in problems))
        return without_false(value)


class Member(Section):
    """One endpoint of a group."""

    model: Text
    """`provider/model`."""
    weight: float = Field(default=1, gt=0, allow_inf_nan=False)
    """Its share of the requests, against the others' of the group."""


class Config(Section):
    server: Server = Server()
    providers: tuple[ProviderConfig, ...] = ()
    aliases: dict[Text, Text] = Field(default_factory=dict)
    """Another name for `provider/model`, a listed model, a group, a class or an alias."""
    groups: dict[Text, Annotated[tuple[Member, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """A name that several endpoints answer to, by their shares; the others stand in for one that fails."""
    fallbacks: dict[Text, Annotated[tuple[Text, ...], Field(min_length=1)]] = Field(default_factory=dict)
    """By a model's name: who is asked, in this order, when that model fails before its first byte."""
    classes: dict[Text, Literal["chat-thinking", "chat-balanced", "chat-fast", "never"]] = Field(
        default_factory=dict
    )
    """Words of a model's name and the class it is in, over the built-in ones: `"my model" = "chat-fast"`."""
