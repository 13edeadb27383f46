"""The configuration, as data that has been checked.

Unknown keys are errors everywhere. What takes more than one value to judge (unique names,
alias targets, keys off loopback) is in `checks.py`; `load.py` runs both and reports every
error at once.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationInfo, field_validator

from .address import normalise
from .overrides import find_problems, without_false

Kind = Literal["openai", "databricks", "ollama", "onnx"]
NAME = "^[a-z0-9-]+$"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+")
"""As browsers send it: no path, no user, nothing after the port."""


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
    keys_file: Text | None = None
    """A TOML file of more keys, hashed, with what each may use and its limits; read again when it changes.

    A relative path is one from the working directory of the process."""
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
    read_timeout_s: float = Field(default=30, gt=0)
    """Longest wait for a request's headers, and for its body unless 1 KiB comes a second."""
    cors_origins: tuple[Text, ...] = ()
    """Web pages that may call the gateway, as `https://host`, or `*`; empty: none."""
    shutdown_grace_s: float = Field(default=30, ge=0)
    """How long open streams may go on after a stop signal."""
    workers: int = Field(default=1, ge=1)
    """Processes on the one port."""
    websocket: bool = True
    """Whether `/v1/responses` may be used over a WebSocket; `false`: 426, which sends clients to POST."""

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_truth_value(cls, value: Any, info: ValidationInfo) -> Any:
        """Python counts `true` as 1."""
        if isinstance(value, bool) and info.field_name != "websocket":
            raise ValueError("must not be true or false")
        return value

    @field_validator("cors_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError(f'{origin!r} must be "*", or an origin such as https://chat.example.com')
        return value


class Store(Section):
    """Where responses are kept for `previous_response_id` and `GET /v1/responses/{id}`."""

    kind: Literal["sqlite", "memory", "postgres", "off"] = "sqlite"
    """`sqlite` (a file), `memory` (one process, gone with it), `postgres` (several gateways), `off`."""
    path: Text | None = None
    """Kind `sqlite`: the file; absent: `responses.db` in the state directory.

    A relative path is one from the working directory of the process."""
    url: Secret | None = None
    """Kind `postgres`: `postgresql://user:password@host/database`."""
    ttl_s: float = Field(default=30 * 86400, gt=0, allow_inf_nan=False)
    """How long a conversation is kept after its last response, in seconds."""
    max_bytes: int = Field(default=2**30, gt=0)
    """Size of what is kept; conversations that were continued longest ago make room."""
    timeout_s: float = Field(default=5, gt=0, allow_inf_nan=False)
    """Longest wait for the store; then requests that need it get 503."""
    encryption_key: Secret | None = None
    """What is written to a file or database is encrypted with it; absent: it is written as it is."""


class Compaction(Section):
    """How a conversation is summed up, for clients that ask for that and backends that cannot."""

    model: Text | None = None
    """Who writes the summary: any name that requests may use (`chat-fast`); absent: the request's own."""


class RateLimits(Section):
    """Where requests and tokens of the keys in `server.keys_file` are counted."""

    storage: Secret = SecretStr("memory")
    """`memory` (each process for itself) or `redis://user:password@host:6379/0` (all that name it)."""
    on_failure: Literal["open", "closed"] = "open"
    """When Redis does not answer: `open` serves without limits, `closed` refuses (503)."""
    timeout_s: float = Field(default=1, gt=0)
    """Longest wait for Redis."""

    @field_validator("storage")
    @classmethod
    def _address(cls, value: SecretStr) -> SecretStr:
        text = value.get_secret_value()
        if text != "memory" and text.partition("://")[0] not in ("redis", "rediss"):
            raise ValueError('must be "memory", or an address such as redis://127.0.0.1:6379/0')
        return value


class Telemetry(Section):
    """Where traces and metrics go; for what is not set here the standard `OTEL_*` variables are asked."""

    endpoint: Text | None = None
    """OTLP over HTTP: `http://127.0.0.1:4318`; absent: `OTEL_EXPORTER_OTLP_ENDPOINT`, else none are sent."""
    headers: dict[Text, Secret] = Field(default_factory=dict)
    """Sent with them, such as a key; absent: `OTEL_EXPORTER_OTLP_HEADERS`."""
    service_name: Text | None = None
    """Absent: `OTEL_SERVICE_NAME`, else `dragoman`."""
    wire_log: bool = False
    """With `DRAGOMAN_WIRE_LOG=1` in the environment and level `debug`: what goes over the wire is logged."""

    @field_validator("endpoint")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must be an address such as http://127.0.0.1:4318")
        return value


class Price(Section):
    """US dollars for a million tokens."""

    input: float = Field(ge=0)
    """US dollars for a million input tokens; 0 is a price."""
    output: float | None = Field(default=None, ge=0)
    """The same for output tokens, reasoning included; absent: what a reply with some costs is not known."""
    cached_input: float | None = Field(default=None, ge=0)
    """For input tokens that were read from the backend's cache; absent: as `input`."""
    cache_write: float | None = Field(default=None, ge=0)
    """For input tokens that were written to it; absent: as `input`."""


class Background(Section):
    """Requests with `background: true`, in each process of the gateway."""

    max_running: int = Field(default=32, ge=1)
    """Most of them at a time."""
    max_queue: int = Field(default=100, ge=0)
    """Most that wait for a place; more get 503 with Retry-After."""
    max_run_s: float = Field(default=1800, gt=0)
    """Longest time that one may take, in seconds; then it has failed."""


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
    api_key_from: Literal["config", "client"] = "config"
    """`client`: callers send their own key, which goes to this backend only; kind `openai` alone."""
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
    """Kind `onnx`: a model folder, or a folder of model folders.

    A relative path is one from the working directory of the process."""
    probe_dimensions: bool = False
    """Whether an embedding model is asked once, with one word, how long its vectors are."""
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
    store: Store = Store()
    background: Background = Background()
    compaction: Compaction = Compaction()
    limits: RateLimits = RateLimits()
    telemetry: Telemetry = Telemetry()
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
    prices: dict[Text, Price] = Field(default_factory=dict)
    """What requests cost, by `provider/model` or `model`; `*` stands for anything. A dated name
    (`gpt-5-2025-08-07`) costs what the name without its date does. Over what a listing tells."""
