"""The Responses shape, as clients speak it and as backends do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..dialect import Encoded, ReplyContext, StreamDecoder, StreamEncoder
from ..ir import Call, Event, Json, Shape
from ..profile import Profile
from .decode import check_request, decode_request
from .decoder import ResponsesDecoder
from .edit import edit_request, passes
from .encode import encode_request
from .encoder import ResponsesEncoder
from .reply import decode_reply


class ResponsesClient:
    """Responses as a client's shape."""

    name: Shape = "responses"

    def decode_request(self, body: Json, new_id: Callable[[str], str]) -> Call:
        return decode_request(body, new_id)

    def check(self, body: Json) -> None:
        check_request(body)

    def encoder(self, call: Call, context: ReplyContext) -> StreamEncoder:
        return ResponsesEncoder(call, context)


class ResponsesBackend:
    """Responses as a backend's shape."""

    name: Shape = "responses"

    def encode_request(self, call: Call, profile: Profile) -> Encoded:
        return encode_request(call, profile)

    def edit_request(self, body: Json, profile: Profile) -> Encoded:
        return edit_request(body, profile)

    def passes(self, body: Json, profile: Profile) -> bool:
        return passes(body, profile)

    def decoder(self, profile: Profile) -> StreamDecoder:
        return ResponsesDecoder(profile)

    def decode_reply(self, body: Json, profile: Profile) -> Iterator[Event]:
        return decode_reply(body, profile)
