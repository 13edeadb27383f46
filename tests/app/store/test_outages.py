"""Stores that fail under a real gateway: nothing is told that is lost, and it goes on when they are back."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.backends.gateway import Gateway
from tests.backends.scripted import ScriptedBackend

from .processes import Told, ask, gateway, is_whole

if TYPE_CHECKING:
    from .conftest import Postgres

Outage = Callable[[], AbstractContextManager[None]]

CLIENTS, STATELESS = 12, 3
TIMEOUT_S = 1


def _during(base: str, outage: Outage) -> list[list[Told]]:
    """What clients are told who ask on and on while the store fails and comes back, each for itself."""
    over = threading.Event()

    def go_on(place: int) -> list[Told]:
        told = []
        while not over.is_set():
            told.append(ask(base, f"{place}/{len(told)}", place % 2 == 0, store=place >= STATELESS))
            time.sleep(0.02)
        return told

    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        pending = [pool.submit(go_on, place) for place in range(CLIENTS)]
        try:
            time.sleep(1)
            with outage():
                _until(lambda: ask(base, "is it away?", False).status == 503)
                time.sleep(2 * TIMEOUT_S + 0.5)  # whoever waited behind that one is refused too
            _until(lambda: ask(base, "is it back?", False).status == 200)
            time.sleep(0.5)
        finally:
            over.set()
        return [future.result() for future in pending]


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end, "it did not come to that in time"


def _nothing_is_lost(running: Gateway, outage: Outage) -> None:
    told = _during(running.base, outage)
    stored, others = list(chain(*told[STATELESS:])), list(chain(*told[:STATELESS]))
    assert {(each.status, each.failed) for each in others} == {(200, False)}
    assert all(each.id for each in others)
    refused = [each for each in stored if each.id is None]
    assert refused
    for each in refused:
        assert (each.status, each.retry_after, each.failed) in {(503, "5", False), (200, None, True)}
    with running.client() as client:
        for each in stored:
            if each.id is not None:
                is_whole(client, each.id, each.text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store" / "r.db"


@pytest.fixture
def on_file(tmp_path: Path, scripted: ScriptedBackend, file: Path) -> Iterator[Gateway]:
    store = {"kind": "sqlite", "path": str(file), "timeout_s": TIMEOUT_S}
    with gateway(tmp_path / "g", scripted, store) as running:
        yield running


@pytest.fixture
def on_postgres(tmp_path: Path, scripted: ScriptedBackend, postgres: Postgres) -> Iterator[Gateway]:
    store = {"kind": "postgres", "url": postgres.new_database(), "timeout_s": TIMEOUT_S}
    with gateway(tmp_path / "g", scripted, store) as running:
        yield running


def test_a_database_that_is_stopped_and_started(on_postgres: Gateway, postgres: Postgres) -> None:
    @contextlib.contextmanager
    def stopped() -> Iterator[None]:
        postgres.stop()
        try:
            yield
        finally:
            postgres.start()

    _nothing_is_lost(on_postgres, stopped)


def test_a_database_that_hangs(on_postgres: Gateway, postgres: Postgres) -> None:
    """Its processes stand still, as on a disk or a machine that does not answer."""

    @contextlib.contextmanager
    def hanging() -> Iterator[None]:
        pids = postgres.processes()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    _nothing_is_lost(on_postgres, hanging)


REFUSALS = {
    "read-only, as after a failover": (
        ["ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"],
        ["ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"],
    ),
    "a disk that is full": (
        [
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$",
            "CREATE TRIGGER refuse BEFORE INSERT ON responses EXECUTE FUNCTION refuse()",
        ],
        ["DROP TRIGGER refuse ON responses"],
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_database_that_refuses_writes(
    tmp_path: Path, scripted: ScriptedBackend, postgres: Postgres, name: str
) -> None:
    url = postgres.new_database()

    async def say(statements: Sequence[str]) -> None:
        import asyncpg

        db = await asyncpg.connect(url, server_settings={"default_transaction_read_only": "off"})
        for statement in statements:
            await db.execute(statement)
        await db.close()

    @contextlib.contextmanager
    def refusing() -> Iterator[None]:
        begin, end = REFUSALS[name]
        asyncio.run(say(begin))
        try:
            yield
        finally:
            asyncio.run(say(end))

    store = {"kind": "postgres", "url": url, "timeout_s": TIMEOUT_S}
    with gateway(tmp_path / "g", scripted, store) as running:
        _nothing_is_lost(running, refusing)


LOCK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_file_that_another_process_locks(on_file: Gateway, file: Path) -> None:
    @contextlib.contextmanager
    def locked() -> Iterator[None]:
        pipe: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", LOCK, str(file)], **pipe) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"locked\n"
            yield
            other.communicate()

    _nothing_is_lost(on_file, locked)


def test_a_disk_that_is_full(on_file: Gateway) -> None:
    """No file may be written any more, the log neither: the kernel refuses it as on a full disk."""

    @contextlib.contextmanager
    def full() -> Iterator[None]:
        pid, (_, most) = on_file.process.pid, resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
        try:
            yield
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))

    _nothing_is_lost(on_file, full)


def test_what_is_read_already_can_be_read_on_a_full_disk(on_file: Gateway) -> None:
    body = {"model": "m", "input": "x"}
    with on_file.client() as client:
        made = client.post("/v1/responses", json=body).json()
        assert client.get(f"/v1/responses/{made['id']}").json() == made
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(on_file.process.pid, resource.RLIMIT_FSIZE, (0, most))
        reply = client.post("/v1/responses", json=body)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
        assert client.get(f"/v1/responses/{made['id']}").json() == made
