"""Servers as processes, and what the kernel says of them (Linux)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import orjson

ROOT = Path(__file__).resolve().parents[1]
_TICKS = os.sysconf("SC_CLK_TCK")
_START_S = 60.0


class Server:
    """A server process; use it as a context manager. It is up once it answers a request."""

    def __init__(self, argv: Sequence[str], port: int, environ: Mapping[str, str] | None = None) -> None:
        self._argv, self.port = argv, port
        self._environ = {**os.environ, **(environ or {})}
        self.url = f"http://127.0.0.1:{port}"
        self.start_seconds = 0.0

    def __enter__(self) -> Self:
        began = time.monotonic()
        self._process = subprocess.Popen(
            self._argv,
            cwd=ROOT,
            env=self._environ,
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
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def cpu_seconds(self) -> float:
        """User and system time so far, of it and its children (fields 14 and 15 of /proc/PID/stat)."""
        return sum(int(fields[11]) + int(fields[12]) for fields in map(_stat, self._family())) / _TICKS

    def memory_mb(self) -> float:
        """Resident memory of it and its children, in MB of 10^6 bytes."""
        return sum(_resident(pid) for pid in self._family()) / 1e6

    def _family(self) -> list[int]:
        family, parents = [self._process.pid], _parents()
        for pid in family:
            family += [child for child, parent in parents.items() if parent == pid]
        return family

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


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) * 1024


def _parents() -> dict[int, int]:
    """Every process and its parent."""
    found = {}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            found[int(each.name)] = int(_stat(int(each.name))[1])
        except OSError:  # it has ended meanwhile
            continue
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def load(url: str, body: Mapping[str, object], connections: int, seconds: float) -> dict[str, float]:
    """Drive `url` from another process; raises when a reply was not 200."""
    argv = [sys.executable, "-m", "bench.load", url, str(connections), str(seconds)]
    ran = subprocess.run(argv, cwd=ROOT, input=orjson.dumps(body), capture_output=True)
    if ran.returncode:
        raise RuntimeError(f"{url}: {ran.stderr.decode()[-2000:]}")
    counts: dict[str, float] = orjson.loads(ran.stdout)
    if counts["bad"] or not counts["replies"]:
        raise RuntimeError(f"{url}: {counts}")
    return counts


class NotHeld(Exception):
    """The server ended a stream that should have stayed open, or refused it; the text says how."""


class Held:
    """Streams that have begun and say nothing more: a context manager, inside of which all are open."""

    def __init__(self, url: str, body: Mapping[str, object], streams: int) -> None:
        self._argv = [sys.executable, "-m", "bench.load", url, str(streams), "hold"]
        self._body = orjson.dumps(body)

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._argv, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe)
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        stdin.write(self._body)
        stdin.close()
        if stdout.readline() != b"held\n":
            raise NotHeld(stderr.read().decode()[-2000:])
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
