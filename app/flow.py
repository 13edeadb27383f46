"""When a connection is read, and when not."""

from __future__ import annotations

import asyncio
from collections.abc import Sized

from uvicorn.protocols.http.flow_control import FlowControl

MOST_BEHIND = 8
"""Requests that may wait behind one that is being answered while more is read."""


class Flow(FlowControl):
    """Reads nothing more while many requests wait: uvicorn reads as many again with each that is answered."""

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if self.read_paused and len(self._waiting) <= MOST_BEHIND:
            super().resume_reading()
