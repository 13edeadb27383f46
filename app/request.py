"""What a client asks, as far as every lane needs to know it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import orjson

from providers.images import ImageError
from translators.capsule import Seals
from translators.dialect import ClientDialect, ReplyContext
from translators.errors import bad_request
from translators.fingerprint import Asked
from translators.ir import Call, Json, Shape
from translators.lenient import MAX_DEPTH, with_whole_characters, writable

from .ids import new_id
from .layers import read_layers, read_strict
from .telemetry.trace import Trace

if TYPE_CHECKING:
    from .state.links import Link
    from .state.state import Keeping


_CONTINUED = ("previous_response_id", "conversation")
"""What a request says instead of all that was said before."""
BOM = b"\xef\xbb\xbf"
"""PowerShell begins a body with one."""


@dataclass(slots=True)
class Request:
    """One request for a model. `raw` is the decoded body's text, `body` the object in it."""

    shape: Shape | None
    """None: embeddings, which have one shape everywhere and are never translated."""
    raw: bytes
    body: Json
    trace: Trace
    context: ReplyContext
    strict: bool
    """`x-dragoman-strict: true`: what would be left out is refused instead."""
    began: float
    """`time.monotonic()` when it came; retries are limited by what the client has waited."""
    decoded: Call | None = None
    images: dict[str, str] = field(default_factory=dict)
    """Remote images fetched for it: URL -> `data:` URL."""
    lost_image: ImageError | None = None
    """One that could not be fetched: no other candidate waits for it again."""
    overrides: Mapping[str, Any] | None = None
    """Profile sections that its headers set, checked."""
    places: Sequence[int] = ()
    """Of the items of a shortened input: where they stand in the client's; empty: it is whole."""
    own: list[Any] = field(default_factory=list)
    """The items of its `input` that are this turn's own; only where it is stored."""
    link: Link | None = None
    """The response that it goes on from, where a backend stored it too."""
    keeping: Keeping | None = None
    """What its answer goes through before the client gets it; None: it is not stored."""

    @property
    def model(self) -> str:
        return self.context.model

    @property
    def stream(self) -> bool:
        return self.context.stream

    def continues(self, previous: str | None, given: list[Any], conversation: str | None = None) -> None:
        """Ask with `given` as the input: what one of the others held, and the client's own items."""
        body = {key: value for key, value in self.body.items() if key not in _CONTINUED}
        body["input"] = given
        if previous is not None or conversation is not None:
            body["store"] = False  # a backend is told the whole conversation each time
        self.body, self.raw, self.decoded = body, orjson.dumps(body), None
        seals = self.context.seals
        asked = seals and replace(seals, asked=Asked(body))
        self.context = replace(self.context, previous=previous, conversation=conversation, seals=asked)

    def asks_with(self, given: list[Any]) -> None:
        """Ask with `given` as the input, and nothing else changed."""
        self.body = {**self.body, "input": given}
        self.raw, self.decoded = orjson.dumps(self.body), None
        seals = self.context.seals
        self.context = replace(self.context, seals=seals and replace(seals, asked=Asked(self.body)))

    def is_stored(self) -> None:
        """Its answer will say that it can be had again."""
        self.context = replace(self.context, stored=True)

    def call(self, client: ClientDialect) -> Call:
        """The neutral call, decoded on first use; raises `ProxyError` (400)."""
        if self.decoded is None:
            self.decoded = client.decode_request(self.body, new_id)
        return self.decoded


def parse_request(
    shape: Shape | None,
    raw: bytes,
    headers: Mapping[bytes, bytes],
    trace: Trace,
    seal_key: Callable[[], bytes] | None = None,
) -> Request:
    """Raises `ProxyError` (400), naming the parameter that is wrong."""
    raw = raw.removeprefix(BOM)
    raw, body = read_object(raw)
    model, stream = _model(body), shape is not None and _stream(body)
    trace.model, trace.stream = model, stream
    context = ReplyContext(
        created=_now(),
        model=model,
        new_id=new_id,
        echo=body,
        include_usage=shape != "chat" or _asks_for_usage(body),
        stream=stream,
        refusal_as_text=_is_codex(headers),
        now=_now,
        seals=seal_key and Seals(seal_key, "", Asked(body) if shape == "responses" else None),
    )
    strict, layers = read_strict(headers), read_layers(headers)
    return Request(shape, raw, body, trace, context, strict, time.monotonic(), overrides=layers)


def _now() -> int:
    return int(time.time())


def read_object(raw: bytes) -> tuple[bytes, Json]:
    """The body's text and the object in it; raises `ProxyError` (400)."""
    raw, body = _value(raw)
    if not isinstance(body, dict):
        raise bad_request("the request body must be a JSON object", code="invalid_json")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH and not writable(body):
        message = f"the request body is nested more than {MAX_DEPTH} levels deep"
        raise bad_request(message, code="invalid_json")
    return raw, body


def _value(raw: bytes) -> tuple[bytes, Any]:
    try:
        return raw, orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        fault = str(error)  # itself it knows this frame, and the body with it: nothing may know itself
    # Half a surrogate pair: JavaScript leaves one where it cuts a text within an emoji. A conversation
    # that holds one would be refused for good.
    if "surrogate" in fault:
        raw = with_whole_characters(raw)
        try:
            return raw, orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            fault = str(error)
    raise bad_request(f"the request body is not valid JSON: {fault}", code="invalid_json")


def _model(body: Json) -> str:
    model = body.get("model")
    if not isinstance(model, str) or not model.strip():
        raise bad_request("`model` must name a model; GET /v1/models lists them", "model")
    return model


def _stream(body: Json) -> bool:
    stream = body.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise bad_request("`stream` must be true or false", "stream")
    return bool(stream)


def _is_codex(headers: Mapping[bytes, bytes]) -> bool:
    """Contract: a client whose `originator` or user-agent begins with `codex`."""
    originator, agent = headers.get(b"originator", b""), headers.get(b"user-agent", b"")
    return originator[:5].lower() == b"codex" or agent[:5].lower() == b"codex"


def _asks_for_usage(body: Json) -> bool:
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True
