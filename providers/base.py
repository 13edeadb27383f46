"""What the rest of the service knows of a backend.

A provider is a backend account: where it is, how to sign, what it serves, which surfaces a
model is spoken to on. Bytes in, bytes out; shapes and quirks are the translators' business.
Only `providers/` waits on a backend.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from translators.ir import Shape
from translators.profile import Profile

if TYPE_CHECKING:  # the commands that only read a configuration need no translator
    from translators.rejections import Rejection

    from .extra_body import ExtraBody

Surface = Literal["chat", "responses", "open_responses", "ollama", "embeddings", "compact", "input_tokens"]
"""One of a backend's doors; `open_responses` speaks the Responses shape with its own limits, the last two
take the same body as it, and answer something else."""

SHAPE_OF: Mapping[Surface, Shape] = {
    "chat": "chat",
    "responses": "responses",
    "open_responses": "responses",
    "ollama": "ollama",
}


@dataclass(slots=True)
class Upstream:
    """An answered request: status known, body not yet read. Header names are lower case.

    Iterating `chunks` raises `ProxyError` when the connection breaks. `close` ends the
    exchange at once (the backend sees the connection go) and may be called any time, often.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]
    close: Callable[[], None]

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks])

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as its provider lists it; `facts` are the raw fields worth keeping."""

    id: str
    provider: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Provider(Protocol):
    """A backend account."""

    name: str
    kind: str
    unavailable: str | None
    """Why nothing can be asked of it (a missing extra), else None."""
    origin: str
    """Where it is, `https://host:port`; empty: nowhere on the network."""
    private: Sequence[str]
    """What no client may read in an error: the key the backend is asked with."""
    extra_body: ExtraBody | None
    """What is laid over every body at the end; None: nothing."""

    def surfaces(self, model: str, client: Shape) -> Sequence[Surface]:
        """The surfaces to try for a client of this shape, best first; never waits."""
        ...

    def profile(self, model: str, surface: Surface, overrides: Mapping[str, Any] | None = None) -> Profile:
        """The resolved quirks of this model on this surface; cached, never waits.

        `overrides` are checked profile sections of one request, merged over the account's own.
        """
        ...

    def explain(self, model: str, surface: Surface) -> Mapping[str, tuple[Any, str]]:
        """Every key of that profile (`request.drop`, ...): its value and the layer that set it."""
        ...

    def learn_refusal(self, model: str, surface: Surface, status: int, body: bytes) -> bool:
        """Whether this error means "not on this surface": it is remembered, and the next is tried."""
        ...

    def known_rejections(self, model: str, surface: Surface) -> Sequence[Rejection]:
        """What this model turned out not to take on this surface; never waits."""
        ...

    def learn_rejections(self, model: str, surface: Surface, found: Sequence[Rejection]) -> None:
        """Remember what this model was asked without and then answered."""
        ...

    async def open(self, surface: Surface, model: str, body: bytes, stream: bool) -> Upstream:
        """Send one request. Raises `ProxyError` when no answer could be had at all."""
        ...

    async def models(self) -> Sequence[ModelInfo]:
        """Ask the backend what it serves. Raises `ProxyError`."""
        ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Target:
    """A model that a call may go to; `model` is the backend's own name for it."""

    provider: Provider
    model: str
    id: str = field(init=False, compare=False)
    """`provider/model`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", f"{self.provider.name}/{self.model}")
