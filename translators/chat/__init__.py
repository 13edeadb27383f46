"""The Chat Completions shape, as clients speak it and as backends do."""

from __future__ import annotations

from ..framing import SseFramer
from ..ir import Shape
from .check import check_request
from .decode import decode_request
from .decoder import ChatDecoder
from .edit import edit_request, passes
from .encode import encode_request
from .encoder import ChatEncoder
from .reply import decode_reply


class ChatClient:
    """Chat Completions as a client's shape."""

    name: Shape = "chat"
    decode_request = staticmethod(decode_request)
    check = staticmethod(check_request)
    encoder = ChatEncoder


class ChatBackend:
    """Chat Completions as a backend's shape."""

    name: Shape = "chat"
    lines = False
    framer = SseFramer
    encode_request = staticmethod(encode_request)
    edit_request = staticmethod(edit_request)
    passes = staticmethod(passes)
    decoder = ChatDecoder
    decode_reply = staticmethod(decode_reply)
