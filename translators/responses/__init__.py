"""The Responses shape, as clients speak it and as backends do."""

from __future__ import annotations

from ..framing import SseFramer
from ..ir import Shape
from .check import check_request
from .decode import decode_request
from .decoder import ResponsesDecoder
from .edit import edit_request, passes
from .encode import encode_request
from .encoder import ResponsesEncoder
from .reply import decode_reply


class ResponsesClient:
    """Responses as a client's shape."""

    name: Shape = "responses"
    decode_request = staticmethod(decode_request)
    check = staticmethod(check_request)
    encoder = ResponsesEncoder


class ResponsesBackend:
    """Responses as a backend's shape."""

    name: Shape = "responses"
    lines = False
    framer = SseFramer
    encode_request = staticmethod(encode_request)
    edit_request = staticmethod(edit_request)
    passes = staticmethod(passes)
    decoder = ResponsesDecoder
    decode_reply = staticmethod(decode_reply)
