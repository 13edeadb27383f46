"""The Chat Completions shape, as clients speak it and as backends do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..dialect import Encoded, ReplyContext, StreamDecoder, StreamEncoder
from ..errors import bad_request
from ..ir import Call, Event, Json, Shape
from ..profile import Profile
from ..request_rules import check_cache_options
from .decode import decode_request
from .decoder import ChatDecoder
from .edit import edit_request, passes
from .encode import encode_request
from .encoder import ChatEncoder
from .reply import decode_reply


class ChatClient:
    """Chat Completions as a client's shape."""

    name: Shape = "chat"

    def decode_request(self, body: Json, new_id: Callable[[str], str]) -> Call:
        return decode_request(body, new_id)

    def check(self, body: Json) -> None:
        if not body.get("messages"):
            raise bad_request("`messages` is required: a list with at least one message.", "messages")
        check_cache_options(body)

    def encoder(self, call: Call, context: ReplyContext) -> StreamEncoder:
        return ChatEncoder(call, context)


class ChatBackend:
    """Chat Completions as a backend's shape."""

    name: Shape = "chat"

    def encode_request(self, call: Call, profile: Profile) -> Encoded:
        return encode_request(call, profile)

    def edit_request(self, body: Json, profile: Profile) -> Encoded:
        return edit_request(body, profile)

    def passes(self, body: Json, profile: Profile) -> bool:
        return passes(body, profile)

    def decoder(self, profile: Profile) -> StreamDecoder:
        return ChatDecoder(profile)

    def decode_reply(self, body: Json, profile: Profile) -> Iterator[Event]:
        return decode_reply(body, profile)
