"""Lane *translate*, end to end but for the socket.

body -> decode_request -> Call -> lower_tools -> encode_request -> backend body
reply -> decoder -> events -> RestoreTools -> encoder -> client bytes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .capsule import Seals, open_capsules
from .continuation import ContinuedTranslator
from .dialect import BackendDialect, ClientDialect, Encoded, Framer, ReplyContext, StreamDecoder
from .errors import bad_request, param_at
from .first_call import FirstCall
from .ir import Call, Failed, Json, Usage
from .params import BY_NAME
from .profile import Profile
from .stream import Restorer, StreamTranslator
from .tools import Original, RestoreTools, lower_tools


@dataclass(slots=True)
class Translation:
    """A request ready for the backend, and how its reply finds back to the client."""

    call: Call
    encoded: Encoded
    client: ClientDialect
    backend: BackendDialect
    profile: Profile
    names: Mapping[str, Original]

    def stream(self, context: ReplyContext) -> StreamTranslator:
        """A translator for one streamed reply."""
        decoder = self.backend.decoder(self.profile)
        encoder = self.client.encoder(self.call, context)
        framer = self.backend.framer()
        return StreamTranslator(decoder, encoder, self._restorer(), context.private, framer)

    def continued(self, context: ReplyContext, most: int) -> ContinuedTranslator:
        """The same for a reply that may go on `most` times where the token limit cuts it off."""

        def make() -> tuple[StreamDecoder, Restorer | None, Framer]:
            return self.backend.decoder(self.profile), self._restorer(), self.backend.framer()

        return ContinuedTranslator(make, self.client.encoder(self.call, context), context.private, most)

    def reply(self, body: Json, context: ReplyContext) -> tuple[Json, Usage | None]:
        """The client's body for a non-streamed reply: the fold of the events of its stream.

        Raises the `ProxyError` that the reply carries, if it carries one.
        """
        encoder, restorer = self.client.encoder(self.call, context), self._restorer()
        for event in self.backend.decode_reply(body, self.profile):
            for each in (event,) if restorer is None else restorer.feed(event):
                if isinstance(each, Failed):
                    raise each.error
                encoder.feed(each)
        return encoder.body(), encoder.usage

    def _restorer(self) -> Restorer | None:
        """One for each reply: it holds what the reply has not finished saying."""
        restorer = RestoreTools(self.names) if self.names else None
        return FirstCall(restorer) if self.encoded.one_call else restorer


def translate_request(
    call: Call,
    client: ClientDialect,
    backend: BackendDialect,
    profile: Profile,
    seals: Seals | None = None,
) -> Translation:
    """Lower and encode `call` for a backend; raises `ProxyError` for what cannot be carried.

    `call` is the client's as decoded; each target of a fallback chain gets its own translation.
    """
    if call.params.get("n", 1) != 1:
        # The neutral model has one choice; asking for more and giving one would be a silent loss.
        raise bad_request("`n` must be 1 here: the reply has to be translated, which gives one choice.", "n")
    if backend.name != call.shape:
        _check_format(call)
    call, sealed = open_capsules(call, seals, profile.reasoning.sweep)
    lowered = lower_tools(call, profile, backend.name)
    encoded = backend.encode_request(lowered.call, profile)
    encoded.losses[:0] = [*sealed, *lowered.losses]
    return Translation(lowered.call, encoded, client, backend, profile, lowered.names)


def _check_format(call: Call) -> None:
    """An output format only its own wire knows (vLLM's `grammar`, ...) is a constraint lost, so a 400."""
    kind = call.params.get("format", {}).get("type", "text")
    if kind not in ("text", "json_object", "json_schema"):
        at = param_at(BY_NAME["format"].pointer(call.shape))
        raise bad_request(
            f"`{at}`: {kind!r} cannot be said to this backend; use json_schema or json_object.", at
        )
