"""The backend under both: every byte made beforehand, one write per chunk.

python -m bench.backend PORT
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import orjson
import uvloop

CHUNKS = 100
TOKEN = "token "
_BASE = {"id": "chatcmpl-bench", "created": 1_700_000_000, "model": "fast", "system_fingerprint": "fp"}
_USAGE = {"prompt_tokens": 11, "completion_tokens": CHUNKS, "total_tokens": 11 + CHUNKS}


def _chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    body = {**_BASE, "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + orjson.dumps(body) + b"\n\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _whole() -> bytes:
    message = {"role": "assistant", "content": "Hello from the backend", "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    body = orjson.dumps({**_BASE, "object": "chat.completion", "choices": [choice], "usage": _USAGE})
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


WHOLE = _whole()
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
TEXT = [_framed(_chunk({"role": "assistant", "content": ""}))]
TEXT += [_framed(_chunk({"content": TOKEN}))] * CHUNKS
TEXT.append(_framed(_chunk({}, "stop")))
USAGE = _framed(
    b"data: "
    + orjson.dumps({**_BASE, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})
    + b"\n\n"
)
IDLE = b'"idle"'
"""The model whose streams begin and say nothing more."""
END = [_framed(b"data: [DONE]\n\n"), b"0\r\n\r\n"]


class Exchange(asyncio.Protocol):
    """One connection; requests come one after another."""

    def __init__(self) -> None:
        self._buffer = b""
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data  # a large body comes in pieces of up to 256 KiB: few enough
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = _content_length(head)
        if len(rest) < length:
            return
        body, self._buffer = rest[:length], rest[length:]
        if b'"stream":true' not in body.replace(b'": ', b'":'):
            self._transport.write(WHOLE)
            return
        if IDLE in body:
            self._transport.write(STREAM_HEAD + TEXT[0] + TEXT[1])
            return
        usage = [USAGE] if b"include_usage" in body else []
        task = asyncio.ensure_future(self._stream([*TEXT, *usage, *END]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stream(self, writes: list[bytes]) -> None:
        """Yield between writes, so that chunks leave as segments of their own."""
        self._transport.write(STREAM_HEAD)
        for write in writes:
            self._transport.write(write)
            await asyncio.sleep(0)


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Exchange, "127.0.0.1", port, backlog=1024)
    print(f"backend listening on http://127.0.0.1:{port}", file=sys.stderr, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
