"""Backends below HTTP: whatever comes, they do to the connection what they are made for."""

from __future__ import annotations

import contextlib
import socket
import threading
from abc import ABC, abstractmethod
from typing import Self


class RawBackend(ABC):
    """Takes one connection after the other; use it as a context manager."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port: int = self._listening.getsockname()[1]

    @abstractmethod
    def answer(self, connection: socket.socket) -> None:
        """Read and write; the connection is closed afterwards."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._listening.close()

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # the end
            while True:
                connection, _ = self._listening.accept()
                with connection, contextlib.suppress(ConnectionError):
                    self.answer(connection)
