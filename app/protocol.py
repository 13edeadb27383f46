"""HTTP/1.1 as uvicorn reads it, also from clients that would rather speak HTTP/2, or none at all.

Java's HttpClient asks every plain-http origin for it, with `Upgrade: h2c` on its first request.
A server may ignore that. llhttp takes the request to end with its head, and its body is lost:
the client is told that it sent none (Spring AI and LangChain4j users meet this with uvicorn).
"""

from __future__ import annotations

import re

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from translators.errors import bad_request

from .errors import error_body

_HEAD_BYTES = 4096
_UPGRADE = re.compile(rb"(?<=\r\n)upgrade:[ \t]*h2c[ \t]*\r\n", re.IGNORECASE)


class Http(HttpToolsProtocol):
    """Passes over the wish for HTTP/2."""

    def data_received(self, data: bytes) -> None:
        cycle: RequestResponseCycle | None = self.cycle
        begins = cycle is None or cycle.response_complete
        if begins and data.find(b"h2c", 0, _HEAD_BYTES) >= 0:
            data = without_upgrade(data)
        super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        """What no request could be read from is answered in our clients' shape too."""
        body = error_body(bad_request("the request is not valid HTTP", code="invalid_http"))
        head = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
        self.transport.write(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        self.transport.close()


def without_upgrade(data: bytes) -> bytes:
    """The beginning of a request without that header; its body is left alone."""
    head, blank, body = data.partition(b"\r\n\r\n")
    return _UPGRADE.sub(b"", head + blank) + body
