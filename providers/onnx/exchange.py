"""One request under way in a task of its own, so that it can be ended at any moment and from anywhere.

Waiting for a turn, loading, reading the prompt, generating: ending the task ends each of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from translators.errors import ProxyError

_END = b""


class Exchange:
    """Runs `work`; its pieces are read by iterating. `ProxyError`s of it are raised there."""

    def __init__(self, work: AsyncGenerator[bytes, None]) -> None:
        self._pieces: asyncio.Queue[bytes | BaseException] = asyncio.Queue()
        self._first: bytes | None = None
        self.task = asyncio.create_task(self._run(work))

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        piece, self._first = self._first, None
        if piece is None:
            piece = await self._next()
        if piece is _END:
            self._first = _END  # for whoever asks again
            raise StopAsyncIteration
        return piece

    async def begun(self) -> None:
        """Wait for the first piece and leave it there; raises what went wrong before it."""
        try:
            self._first = await self._next()
        except BaseException:
            self.close()
            raise

    async def _next(self) -> bytes:
        piece = await self._pieces.get()
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def close(self) -> None:
        self.task.cancel()

    async def _run(self, work: AsyncGenerator[bytes, None]) -> None:
        end: bytes | BaseException = _END
        try:
            async with aclosing(work):
                async for piece in work:
                    self._pieces.put_nowait(piece)
        except asyncio.CancelledError:
            end = ProxyError("unavailable", "the answer was ended")
            raise
        except Exception as error:
            end = error
        finally:
            self._pieces.put_nowait(end)
            del end  # a failure knows this call
