"""Ollama's own chat, `/api/chat`: a backend's shape, laid over the Chat shape.

A request is written as a Chat body first, with the profile applied, and then turned into Ollama's words; a
reply is turned into Chat chunks and read by the Chat decoder. So whatever is known of Chat holds here too.
"""

from __future__ import annotations

from ..dialect import Encoded
from ..framing import NdjsonFramer
from ..ir import Json, Shape
from ..profile import Profile
from .decoder import OllamaDecoder, decode_reply
from .encode import encode_request


class OllamaBackend:
    """`/api/chat` as a backend's shape."""

    name: Shape = "ollama"
    lines = True
    framer = NdjsonFramer
    encode_request = staticmethod(encode_request)
    decoder = OllamaDecoder
    decode_reply = staticmethod(decode_reply)

    def edit_request(self, body: Json, profile: Profile) -> Encoded:
        """The same body: `encode_request` has applied the profile before there was one of this shape."""
        return Encoded(body, changed=False)

    def passes(self, body: Json, profile: Profile) -> bool:
        """Never: no client speaks this shape."""
        return False
