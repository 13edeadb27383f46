"""Servers as processes, and what the kernel says of them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import orjson

ROOT = Path(__file__).resolve().parents[1]
_TICKS = os.sysconf("SC_CLK_TCK")
_START_S = 20.0


class Server:
    """A server process; use it as a context manager. It is up once it answers a request."""

    def __init__(self, argv: Sequence[str], port: int) -> None:
        self._argv, self.port = argv, port
        self.url = f"http://127.0.0.1:{port}"
        self.start_seconds = 0.0

    def __enter__(self) -> Self:
        began = time.monotonic()
        self._process = subprocess.Popen(
            self._argv,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() - began > _START_S:
                self.__exit__()
                raise RuntimeError(f"did not start: {' '.join(self._argv)}")
            time.sleep(0.005)
        self.start_seconds = time.monotonic() - began
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(15)

    def cpu_seconds(self) -> float:
        """User and system time so far (Linux: fields 14 and 15 of /proc/PID/stat)."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_mb(self) -> float:
        """Resident memory, in MB of 10^6 bytes."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        return kib * 1024 / 1e6

    def _answers(self) -> bool:
        """Whether it says anything; a socket may take connections before its server is ready."""
        with socket.socket() as probe:
            probe.settimeout(_START_S)
            try:
                probe.connect(("127.0.0.1", self.port))
                probe.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
                return bool(probe.recv(1))
            except OSError:
                return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def load(url: str, body: dict[str, object], connections: int, seconds: float) -> dict[str, int]:
    """Drive `url` from another process; raises when a reply was not 200."""
    argv = [sys.executable, "-m", "bench.load", url, str(connections), str(seconds)]
    ran = subprocess.run([*argv, orjson.dumps(body).decode()], cwd=ROOT, capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{url}: {ran.stderr[-2000:]}")
    counts: dict[str, int] = orjson.loads(ran.stdout)
    if counts["bad"] or not counts["replies"]:
        raise RuntimeError(f"{url}: {counts}")
    return counts
