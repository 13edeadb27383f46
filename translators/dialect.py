"""What a wire shape offers, and the machine that turns one stream into another.

One module or package per shape; it implements the sides it plays. `SHAPES` is the registry:
a new client shape is one module and one line there.

Both lanes lower a request the same way. `encode_request` writes the shape's canonical body
from a `Call` and then applies `edit_request`; the pass lane applies `edit_request` to the
client's own body. So a profile is applied in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from .errors import ProxyError
from .ir import Call, Event, Json, Shape, Usage
from .profile import Profile

if TYPE_CHECKING:
    from .capsule import Seals

LossKind = Literal["tuning", "content", "feature", "bookkeeping", "policy"]
"""`policy`: what `reasoning.mode` and `scope` leave out of every request. It is logged and counted, but no
loss of this one: it is neither named to the client nor refused to a strict one.
"""


class Loss(NamedTuple):
    """Something of the client's request that the backend did not get."""

    pointer: str
    """JSON pointer in the client's body, e.g. `/tools/1` or `/metadata`."""
    reason: str
    kind: LossKind = "tuning"


RepairSite = Literal["message_level", "chain_pairing", "request"]
"""Where: the order of Chat messages, the pairing of Responses items, or elsewhere in the request."""
RepairKind = Literal[
    "missing_result",
    "orphan_result",
    "moved_result",
    "merged_turn",
    "duplicate_id",
    "owner_id",
    "trailing_assistant",
    "json_word",
    "sealed_reasoning",
]


class Repair(NamedTuple):
    """Something of the client's request that was mended so that the backend takes it."""

    site: RepairSite
    kind: RepairKind
    tool_call_id: str = ""
    """The call's id as it is sent, or the result's own where no call is known."""
    tool_name: str = ""
    closed: bool = False
    """Whether an assistant's line after the made-up result closes its turn."""


@dataclass(slots=True)
class Encoded:
    """A request body for a backend, what it had to leave out, and what was mended in it."""

    body: Json
    losses: list[Loss] = field(default_factory=list)
    repairs: list[Repair] = field(default_factory=list)
    changed: bool = True
    """False: the body equals the input (pass lane sends the client's own bytes)."""
    one_call: bool = False
    """The client wants one call at most and the backend cannot be told so: only the first counts."""


@dataclass(frozen=True, slots=True)
class ReplyContext:
    """What an encoder may not make up for itself.

    `new_id("msg_")` gives a fresh id such as `msg_5f1c...`; `created` is seconds since the epoch;
    `model` the name the client asked for; `echo` the client's own request body, whose fields
    a Responses reply repeats.
    """

    created: int
    model: str
    new_id: Callable[[str], str]
    echo: Mapping[str, object] = field(default_factory=dict)
    include_usage: bool = True
    stream: bool = True
    refusal_as_text: bool = False
    """Codex drops refusal parts silently: for it they are written as output_text."""
    private: Sequence[str] = ()
    """What no client may read in an error: the key the backend was asked with."""
    now: Callable[[], int] | None = None
    """Clock for `completed_at`; None: `created` is used."""
    seals: Seals | None = None
    """What capsules are sealed with; None: what a shape cannot hold is not carried."""
    stored: bool = False
    """Whether a Responses reply can be had again later."""
    previous: str | None = None
    """The response that a Responses request continues; what it held is in the request by now."""
    conversation: str | None = None
    """The conversation that it is a turn of, likewise."""


class End(NamedTuple):
    """How a Responses stream ended, so that it can be kept before its client is told."""

    response: Json
    """The final snapshot."""
    sequence: int
    """The last event's number."""
    frame: bytes
    """The last event's bytes, and `[DONE]` where it was written with them."""
    upstream: str = ""
    """The backend's id of the response, empty where it told none."""


OTHER_ARGUMENTS = "The backend's last word for a tool call's arguments is not what it streamed of them."
"""Why a stream fails whose client has got arguments that turn out to be others: it would run them."""


class StreamEncoder(Protocol):
    """Events in, client bytes out; afterwards, the same reply as one body."""

    def feed(self, event: Event, /) -> bytes:
        """The frames this event causes (often none), ready for the socket.

        Raises `ProxyError` when what was streamed turns out to be wrong: then the reply has failed.
        """
        ...

    def start(self) -> bytes:
        """The opening frames, when they must leave before the backend has said anything.

        A later `Started` then adds nothing. Idempotent.
        """
        ...

    def keepalive(self) -> bytes:
        """A frame that keeps the client's idle timer from firing."""
        ...

    def abort(self, error: ProxyError, /) -> bytes:
        """A failed end in as few bytes as the shape allows, for when `feed` itself broke."""
        ...

    def body(self) -> Json:
        """The non-streaming reply made of the events fed so far; call it after Finished.

        Raises the `ProxyError` of a `Failed` event, so that a failure is never a success.
        """
        ...

    @property
    def end(self) -> End | None:
        """The last event once a stream has it; None, too, where the shape has no such event."""
        ...

    @property
    def usage(self) -> Usage | None: ...


class StreamDecoder(Protocol):
    """Upstream objects in, events out.

    `feed` takes one parsed JSON object (the data of one frame); `done` the shape's end marker
    (`[DONE]`); `close` the end of the bytes: it ends every open item and the reply, as
    `Finished` when the backend had said so and as `Failed` when it stopped early.
    After `Finished` or `Failed` nothing more comes, whatever is fed. `told`: the backend has
    said that the reply is over, and only usage or the end marker may follow. `lost`: a frame came
    whose object is torn; a failure where nothing can make up for what it said.
    """

    @property
    def told(self) -> bool: ...
    def feed(self, obj: Json, /) -> Iterator[Event]: ...
    def lost(self) -> Iterator[Event]: ...
    def done(self) -> Iterator[Event]: ...
    def close(self) -> Iterator[Event]: ...


class ClientDialect(Protocol):
    """A shape clients may speak to us."""

    name: Shape

    def decode_request(self, body: Json, new_id: Callable[[str], str]) -> Call:
        """Raises `ProxyError` (bad_request, with `param`) for what cannot be understood."""
        ...

    def check(self, body: Json) -> None:
        """What is refused in every lane, also of a body that passes undecoded: what no backend can answer.

        Raises `ProxyError` (bad_request, with `param`). `decode_request` begins with it and relies on it.
        """
        ...

    def encoder(self, call: Call, context: ReplyContext) -> StreamEncoder: ...


class BackendDialect(Protocol):
    """A shape we may speak to a backend."""

    name: Shape
    lines: bool
    """Whether a stream is one JSON object a line, so that it begins as a whole answer does."""

    def framer(self) -> Framer:
        """What cuts one stream into payloads."""
        ...

    def encode_request(self, call: Call, profile: Profile) -> Encoded:
        """Canonical body, then the profile; `losses` point into the client's own body.

        Raises `ProxyError` for content or features that cannot be carried.
        """
        ...

    def edit_request(self, body: Json, profile: Profile) -> Encoded:
        """Pass lane: the profile applied to a body of this shape. Idempotent, input unmutated."""
        ...

    def passes(self, body: Json, profile: Profile) -> bool:
        """Whether edits alone make this body acceptable, so that the reply needs no translation.

        False when tools, tool history or an output format must be lowered to something else
        (then the translate lane runs, even between equal shapes).
        """
        ...

    def decoder(self, profile: Profile) -> StreamDecoder: ...

    def decode_reply(self, body: Json, profile: Profile) -> Iterator[Event]:
        """The events a stream of this (non-streaming) reply would have given."""
        ...


class Framer(Protocol):
    """Bytes in, the payload of every complete frame out."""

    def feed(self, data: bytes, /) -> list[bytes]: ...
    def close(self) -> list[bytes]: ...


class ReplyStream(Protocol):
    """What the pump drives: a `StreamTranslator`, or a pass-lane watcher with the same face.

    `feed` per network read, `close` at the end of the bytes, `fail` when the exchange broke;
    each gives the bytes for the client. `error` is set when the reply ended as failed. `begun`
    says that the backend has begun a reply (it named it, or something came of it): a failure
    before that is an answer of its own, one after it belongs to the stream. `told` says that
    the backend has said its end while `ended` is not yet true, since usage or `[DONE]` may
    follow; `violations` what was illegal in the stream, by kind; `fault` is a bug of ours.
    """

    @property
    def begun(self) -> bool: ...
    @property
    def told(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    @property
    def fault(self) -> Exception | None: ...
    @property
    def violations(self) -> Mapping[str, int]: ...
    @property
    def error(self) -> ProxyError | None: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def end(self) -> End | None: ...
    def start(self) -> bytes: ...
    def keepalive(self) -> bytes: ...
    def feed(self, data: bytes, /) -> bytes: ...
    def close(self) -> bytes: ...
    def fail(self, error: ProxyError, /) -> bytes: ...
