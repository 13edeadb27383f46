"""A real PostgreSQL for the tests, where the machine has the programs (Debian package `postgresql`).

It runs in a folder of its own and on a port of its own; `scripts/postgres.sh` installs the programs.
`DRAGOMAN_REQUIRE_POSTGRES=1` makes missing ones a failure: so CI runs.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from app.store.base import ResponseStore
from app.store.memory import MemoryStore
from app.store.sealed import SealedStore
from app.store.sqlite import SqliteStore

TTL_S = 1000.0
KINDS = ["memory", "sqlite", "sqlite-sealed", "postgres"]


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    named = shutil.which("initdb")
    return found[0].parent if found else Path(named).resolve().parent if named else None


def _as_nobody(command: list[str]) -> list[str]:
    """PostgreSQL does not run as root."""
    if os.getuid() != 0:
        return command
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]


class Postgres:
    """A server that can be stopped and started again."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._data = programs, folder / "data"
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        if os.getuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        self._run("initdb", "-D", str(self._data), "-U", "tester", "-A", "trust", "-N", "--no-instructions")

    def _run(self, program: str, *arguments: str) -> None:
        command = _as_nobody([str(self._programs / program), *arguments])
        done = subprocess.run(
            command, cwd=self._folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout!r} {done.stderr!r}")

    def start(self) -> None:
        options = f"-p {self.port} -k {self._folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", str(self._data), "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")

    def processes(self) -> list[int]:
        """The server and those that work for its clients."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def new_database(self) -> str:
        name = f"t{uuid.uuid4().hex}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "tester", name)
        return f"postgresql://tester@127.0.0.1:{self.port}/{name}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    programs = _programs()
    lacking = [name for name in ("sqlalchemy", "asyncpg") if importlib.util.find_spec(name) is None]
    if programs is None or lacking:
        if os.environ.get("DRAGOMAN_REQUIRE_POSTGRES"):
            pytest.fail("PostgreSQL or its Python packages are missing")
        pytest.skip("no PostgreSQL here")
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        server = Postgres(programs, Path(folder))
        server.start()
        yield server
        server.stop()


class Clock:
    def __init__(self) -> None:
        self.time = 1_700_000_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> AsyncIterator[ResponseStore]:
    """With room for 10,000 bytes."""
    kind, most = request.param, 10_000
    made: ResponseStore
    if kind == "memory":
        made = MemoryStore(TTL_S, most, clock)
    elif kind == "postgres":
        from app.store.postgres import PostgresStore

        url = request.getfixturevalue("postgres").new_database()
        made = PostgresStore(url, TTL_S, most, 10, clock)
    else:
        made = SqliteStore(tmp_path / "deep" / "r.db", TTL_S, most, 5, clock)
    if kind.endswith("-sealed"):
        made = SealedStore(made, "secret")
    yield made
    await made.aclose()
