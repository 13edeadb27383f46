"""The faults of the chaos backend, by what a gateway must make of each."""

from __future__ import annotations

import asyncio
import gzip
import zlib

from .chaos_fault import CHUNKED, Asked, chunk, fault, length

HUGE_TEXT = "0123456789abcdef" * (3 << 18)
"""12 MiB."""


@fault("ok")
async def well(asked: Asked) -> None:
    """As HTTP wants it; the connection is used again."""
    data = asked.answer()
    await asked.send(asked.head(length(data)), data)


# --- cuts ------------------------------------------------------------------------------


@fault(502)
async def close(asked: Asked) -> None:
    """No answer at all."""
    asked.writer.close()


@fault(502)
async def reset(asked: Asked) -> None:
    asked.reset()


@fault(502)
async def reset_in_head(asked: Asked) -> None:
    await asked.send(b"HTTP/1.1 200 OK\r\ncontent-ty")
    asked.reset()


@fault(502)
async def reset_after_head(asked: Asked) -> None:
    await asked.send(asked.head(CHUNKED))
    asked.reset()


@fault("failed", 502)
async def cut_in_a_frame(asked: Asked) -> None:
    data = asked.answer()
    at = data.rindex(b'"finish_reason":"stop"' if asked.is_chat else b"completed")
    await asked.chunks(data[:at], end=False)
    await asyncio.sleep(0.05)
    asked.reset()


@fault("failed", 502)
async def cut_in_a_character(asked: Asked) -> None:
    data = asked.answer()
    await asked.chunks(data[: data.index("🌍".encode()) + 2])


@fault("failed", 502)
async def end_in_a_frame(asked: Asked) -> None:
    """HTTP's end is right, the stream's is not."""
    data = asked.answer()
    await asked.chunks(data[: data.rindex(b'"finish_reason":"stop"' if asked.is_chat else b"completed")])


@fault("ok")
async def reset_after_the_end(asked: Asked) -> None:
    data = asked.answer()
    await asked.send(asked.head(length(data)), data)
    await asyncio.sleep(0.05)
    asked.reset()


# --- silence, and drops of it ----------------------------------------------------------


@fault(504, slow=True)
async def stall(asked: Asked) -> None:
    await asked.linger()


@fault(504, slow=True)
async def stall_after_head(asked: Asked) -> None:
    await asked.send(asked.head(CHUNKED))
    await asked.linger()


@fault("failed", 504, slow=True)
async def stall_in_a_frame(asked: Asked) -> None:
    data = asked.answer()
    await asked.chunks(data[: len(data) // 2], end=False)
    await asked.linger()


@fault("ok")
async def drip(asked: Asked) -> None:
    """A byte at a time."""
    await asked.send(asked.head(CHUNKED))
    for at in range(len(data := asked.answer())):
        await asked.send(chunk(data[at : at + 1]))
        await asyncio.sleep(0)
    await asked.send(chunk(b""))


@fault(504, slow=True)
async def drip_a_head(asked: Asked) -> None:
    """Never silent for long, and never done with its headers."""
    await asked.send(b"HTTP/1.1 200 OK\r\nx-drop: ")
    while not asked.reader.at_eof():
        await asked.send(b"y")
        await asyncio.sleep(0.05)


# --- what is no answer -----------------------------------------------------------------


@fault(502)
async def garbage(asked: Asked) -> None:
    await asked.send(bytes(range(256)) * 4)
    asked.writer.close()


@fault(502)
async def garbage_body(asked: Asked) -> None:
    await asked.chunks(bytes(range(256)) * 16)


@fault("failed", 502)
async def garbage_among_frames(asked: Asked) -> None:
    frames = asked.frames()
    await asked.chunks(*frames[:3], b"data: {no json\n\n", bytes(range(128, 256)) * 8)


@fault("ok")
async def finish_twice(asked: Asked) -> None:
    await asked.chunks(asked.answer(), *(asked.frames()[-3:] if asked.stream else []))


@fault("ok", text=HUGE_TEXT)
async def huge_event(asked: Asked) -> None:
    """12 MiB in one event."""
    text = HUGE_TEXT.encode()
    data = asked.answer("@").replace(b'"@"', b'"' + text + b'"')
    await asked.send(
        asked.head(CHUNKED), *(chunk(data[at : at + 2**16]) for at in range(0, len(data), 2**16))
    )
    await asked.send(chunk(b""))


# --- HTTP that lies --------------------------------------------------------------------


@fault("ok", 502)
async def length_beyond_the_end(asked: Asked) -> None:
    """A stream has told its end before the connection does; of a body more was promised."""
    data = asked.answer()
    await asked.send(asked.head(length(data, 9)), data)
    asked.writer.close()


@fault("failed", 502)
async def length_before_the_end(asked: Asked) -> None:
    """What is left over is no part of this answer, and of no other."""
    data = asked.answer()
    cut = data.rindex(b'"finish_reason":"stop"' if asked.is_chat else b"completed")
    # Kept open, the rest might come when the next request waits already, and nothing would tell it apart.
    await asked.send(asked.head(length(data[:cut]), "connection: close"), data[:cut])
    await asyncio.sleep(0.05)
    await asked.send(data[cut:])
    asked.writer.close()


@fault("ok", 502)
async def chunk_without_end(asked: Asked) -> None:
    """A stream has told its end within it."""
    data = asked.answer()
    await asked.send(
        asked.head(CHUNKED), chunk(data[: len(data) // 2]), b"7fffffff\r\n", data[len(data) // 2 :]
    )
    await asyncio.sleep(0.05)
    asked.writer.close()


@fault("failed", 502)
async def chunk_of_no_size(asked: Asked) -> None:
    data = asked.answer()
    await asked.send(asked.head(CHUNKED), chunk(data[: len(data) // 2]))
    await asyncio.sleep(0.05)
    await asked.send(b"-5\r\n", data[len(data) // 2 :])
    await asked.linger()


@fault(502)
async def two_lengths(asked: Asked) -> None:
    data = asked.answer()
    await asked.send(asked.head(length(data), length(data, -3)), data)
    asked.writer.close()


@fault("ok")
async def http_1_0(asked: Asked) -> None:
    """No length: the connection's end is the body's."""
    await asked.send(asked.head(protocol="1.0"), asked.answer())
    asked.writer.close()


@fault("ok")
async def many_interim_answers(asked: Asked) -> None:
    await asked.send(
        *[b"HTTP/1.1 100 Continue\r\n\r\n"] * 500, b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    )
    await well(asked)


@fault(504, slow=True)
async def endless_interim_answers(asked: Asked) -> None:
    while not asked.reader.at_eof():
        await asked.send(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)
        await asyncio.sleep(0.01)


@fault(502)
async def switching_protocols(asked: Asked) -> None:
    await asked.send(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")
    await asked.linger()


@fault(502)
async def long_header(asked: Asked) -> None:
    await asked.send(asked.head("x-long: " + "y" * (1 << 20)), asked.answer())
    await asked.linger()


@fault(502)
async def endless_headers(asked: Asked) -> None:
    await asked.send(b"HTTP/1.1 200 OK\r\n")
    while not asked.reader.at_eof():
        await asked.send(b"x-more: and more\r\n" * 1000)


@fault(502)
async def redirect_to_itself(asked: Asked) -> None:
    await asked.send(asked.head("location: /v1/chat/completions", "content-length: 0", status="307 Again"))


@fault(500)
async def error_cut_short(asked: Asked) -> None:
    body = b'{"error": {"message": "out of'
    await asked.send(asked.head(length(body, 50), status="500 Oh"), body)
    asked.reset()


@fault(413)
async def refusal_before_the_end_of_the_request(asked: Asked) -> None:
    body = b'{"error": {"message": "too much"}}'
    await asked.send(asked.head(length(body), "connection: close", status="413 No"), body)
    asked.writer.close()


# --- codings ---------------------------------------------------------------------------


@fault("ok")
async def gzip_unasked(asked: Asked) -> None:
    data = gzip.compress(asked.answer())
    await asked.send(asked.head("content-encoding: gzip", length(data)), data)


@fault(502)
async def gzip_that_is_none(asked: Asked) -> None:
    data = asked.answer()
    await asked.send(asked.head("content-encoding: gzip", length(data)), data)


@fault("failed", 502)
async def gzip_cut_short(asked: Asked) -> None:
    packer = zlib.compressobj(wbits=31)
    data = asked.answer()
    half = packer.compress(data[: len(data) // 2]) + packer.flush(zlib.Z_SYNC_FLUSH)
    await asked.send(asked.head("content-encoding: gzip", CHUNKED), chunk(half))
    await asyncio.sleep(0.05)
    await asked.send(chunk(b""))


@fault(502)
async def unknown_coding(asked: Asked) -> None:
    data = asked.answer()[::-1]
    await asked.send(asked.head("content-encoding: rot13", length(data)), data)


_BOMB = gzip.compress(bytes(16 << 20), 9) * 64
"""A gibibyte of zeros in a mebibyte."""


@fault(502)
async def gzip_bomb(asked: Asked) -> None:
    await asked.send(asked.head("content-encoding: gzip", length(_BOMB)), _BOMB)


@fault(502)
async def endless_body(asked: Asked) -> None:
    """Blanks at first, so that it could still become something."""
    await asked.send(asked.head(CHUNKED))
    piece = chunk(b'{"a":[' + b"0," * 2**19)
    while not asked.reader.at_eof():
        await asked.send(piece)


@fault("ok")
async def surplus(asked: Asked) -> None:
    """An answer that nobody asked for behind the right one: no later request may get it."""
    data = asked.answer()
    await asked.send(
        asked.head(length(data)) + data + b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nsurplus!!"
    )


@fault("failed", 502)
async def endless_event(asked: Asked) -> None:
    """A stream whose second event never ends."""
    await asked.send(asked.head(CHUNKED), chunk(b"".join(asked.frames()[:3])), chunk(b'data: {"a":"'))
    piece = chunk(b"0" * 2**20)
    while not asked.reader.at_eof():
        await asked.send(piece)


@fault("ok")
async def trickle(asked: Asked) -> None:
    """The right answer, slowly: time for a client to leave."""
    frames = asked.frames() if asked.stream else [asked.answer()]
    await asked.send(asked.head(CHUNKED))
    for frame in frames:
        await asyncio.sleep(0.03)
        await asked.send(chunk(frame))
    await asked.send(chunk(b""))
