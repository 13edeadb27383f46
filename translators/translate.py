"""Lane *translate*, end to end but for the socket.

body -> decode_request -> Call -> lower_tools -> encode_request -> backend body
reply -> decoder -> events -> RestoreTools -> encoder -> client bytes
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .dialect import BackendDialect, ClientDialect, Encoded, ReplyContext
from .errors import ProxyError
from .ir import Call, Failed, Json, Usage
from .profile import Profile
from .stream import Restorer, StreamTranslator
from .tools import RestoreTools, lower_tools


@dataclass(slots=True)
class Translation:
    """A request ready for the backend, and how its reply finds back to the client."""

    call: Call
    encoded: Encoded
    client: ClientDialect
    backend: BackendDialect
    profile: Profile
    restorer: Restorer | None

    def stream(self, context: ReplyContext) -> StreamTranslator:
        """A translator for one streamed reply."""
        decoder = self.backend.decoder(self.profile)
        return StreamTranslator(decoder, self.client.encoder(self.call, context), self.restorer)

    def reply(self, body: Json, context: ReplyContext) -> tuple[Json, Usage | None]:
        """The client's body for a non-streamed reply: the fold of the events of its stream.

        Raises the `ProxyError` that the reply carries, if it carries one.
        """
        encoder = self.client.encoder(self.call, context)
        for event in self.backend.decode_reply(body, self.profile):
            for each in (event,) if self.restorer is None else self.restorer.feed(event):
                if isinstance(each, Failed):
                    raise each.error
                encoder.feed(each)
        return encoder.body(), encoder.usage


def translate_request(
    call: Call, client: ClientDialect, backend: BackendDialect, profile: Profile
) -> Translation:
    """Lower and encode `call` for a backend; raises `ProxyError` for what cannot be carried.

    `call` is the client's as decoded; each target of a fallback chain gets its own translation.
    """
    lowered = lower_tools(call, profile)
    encoded = backend.encode_request(lowered.call, profile)
    encoded.losses[:0] = lowered.losses
    encoded.repairs += lowered.repairs
    restorer = RestoreTools(lowered.names) if lowered.names else None
    return Translation(lowered.call, encoded, client, backend, profile, restorer)


def fold(translator: StreamTranslator, chunks: Iterable[bytes]) -> None:
    """Feed a whole stream to a translator whose encoder then holds the body; raises its error."""
    for chunk in chunks:
        translator.feed(chunk)
    translator.close()
    if translator.error is not None:
        raise translator.error


__all__ = ["ProxyError", "Translation", "fold", "translate_request"]
