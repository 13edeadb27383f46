"""What happens to answers when their store fails: nothing is acknowledged and lost."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from config.schema import Config
from tests.backends.scripted import ScriptedBackend

from .background_asked import until
from .conftest import Serve, Served, provider

ASK = {"model": "m", "input": "hi"}
TERMINAL = b"event: response.completed\n"


class Broken:
    """A store whose disk is gone while `gone` is set."""

    def __init__(self, served: Served) -> None:
        store = served.gateway.state._store  # type: ignore[union-attr]
        self._put, self._store = store.put, store
        self.gone = False
        store.put = self.put

    async def put(self, record: Any) -> None:
        from app.store import StoreDown

        if self.gone:
            raise StoreDown("disk I/O error")
        await self._put(record)


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> Iterator[Served]:
    store = {"kind": "sqlite", "path": str(tmp_path / "r.db"), "timeout_s": 0.3}
    return serve(fresh=True, providers=[provider(scripted)], store=store)


def test_an_answer_that_cannot_be_stored_is_not_told(served: Served, scripted: ScriptedBackend) -> None:
    broken = Broken(served)
    with served.client() as client:
        before = client.post("/v1/responses", json=ASK).json()
        broken.gone = True
        reply = client.post("/v1/responses", json=ASK)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
        assert reply.json()["error"]["code"] == "store_unavailable"
        assert client.post("/v1/responses", json={**ASK, "store": False}).status_code == 200
        assert client.post(
            "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "x"}]}
        )
        broken.gone = False
        assert client.post("/v1/responses", json=ASK).status_code == 200
        assert client.get(f"/v1/responses/{before['id']}").status_code == 200
    assert len(scripted.bodies()) == 5  # no answer was asked for again
    assert [len(served.log(event)) for event in ("store:down", "store:up")] == [1, 1]


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_stream_that_cannot_be_stored_fails(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, wire: str
) -> None:
    store = {"kind": "sqlite", "path": str(tmp_path / "r.db")}
    served = serve(fresh=True, providers=[provider(scripted, wire)], store=store)
    Broken(served).gone = True
    with served.client() as client:
        reply = client.post("/v1/responses", json={**ASK, "stream": True})
    assert TERMINAL not in reply.content
    lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
    assert lines.index("[DONE]") == len(lines) - 1
    events = [orjson.loads(line) for line in lines[:-1]]
    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["status"] == "failed"
    assert events[-1]["response"]["error"]["message"]


def test_a_locked_file(served: Served, tmp_path: Path, scripted: ScriptedBackend) -> None:
    with served.client() as client:
        made = client.post("/v1/responses", json=ASK).json()
        lock = sqlite3.connect(tmp_path / "r.db", isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        assert client.post("/v1/responses", json=ASK).status_code == 503
        asked = len(scripted.bodies())
        assert client.post("/v1/responses", json=ASK).status_code == 503
        assert len(scripted.bodies()) == asked  # the backend is spared once it is known
        assert client.post("/v1/responses", json={**ASK, "store": False}).status_code == 200
        assert client.get(f"/v1/responses/{made['id']}").status_code == 200  # reading goes on
        lock.execute("ROLLBACK")
        lock.close()
        assert client.post("/v1/responses", json=ASK).status_code == 200


def test_a_file_that_is_none(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    path.write_bytes(b"no database at all" * 100)
    served = serve(fresh=True, providers=[provider(scripted)], store={"kind": "sqlite", "path": str(path)})
    with served.client() as client:
        assert client.post("/v1/responses", json=ASK).status_code == 503
        assert client.get("/v1/responses/resp_x").status_code == 503
        assert client.post("/v1/responses", json={**ASK, "store": False}).status_code == 200


def test_a_full_disk(served: Served, tmp_path: Path) -> None:
    with served.client() as client:
        made = client.post("/v1/responses", json=ASK).json()
        served.gateway.state._store._writer._db.execute("PRAGMA max_page_count=1")  # type: ignore[union-attr]
        big = {**ASK, "input": "x" * 500_000}
        assert client.post("/v1/responses", json=big).status_code == 503
        assert client.get(f"/v1/responses/{made['id']}").json() == made
        assert client.post("/v1/responses", json=ASK).status_code == 200


def _slow_commits(served: Served, seconds: float) -> list[float]:
    """From now on the disk takes that long for each commit, or what is put in the list in its place."""
    takes = [seconds]
    db = served.gateway.state._store._writer._db  # type: ignore[union-attr]
    db.set_trace_callback(lambda text: time.sleep(takes[0]) if text == "COMMIT" else None)
    return takes


def test_a_slow_disk_is_waited_for(served: Served) -> None:
    """What waits is written together, and nobody is told an end before it is on the disk."""
    with served.client() as client, concurrent.futures.ThreadPoolExecutor(20) as pool:
        assert client.post("/v1/responses", json=ASK).status_code == 200
        _slow_commits(served, 0.3)

        def ask(number: int) -> tuple[bool, float]:
            began = time.monotonic()
            got = client.post("/v1/responses", json={**ASK, "stream": number % 2 == 0})
            return TERMINAL in got.content or got.json()["status"] == "completed", time.monotonic() - began

        began = time.monotonic()
        told = list(pool.map(ask, range(20)))
        assert all(completed for completed, _ in told)
        assert min(took for _, took in told) >= 0.3
        assert time.monotonic() - began < 20 * 0.3


def test_a_disk_that_is_too_slow(served: Served) -> None:
    with served.client() as client:
        assert client.post("/v1/responses", json=ASK).status_code == 200
        takes = _slow_commits(served, 2.5)
        reply = client.post("/v1/responses", json=ASK)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
        assert client.post("/v1/responses", json={**ASK, "store": False}).status_code == 200
        takes[0] = 0
        until(lambda: client.post("/v1/responses", json=ASK).status_code == 200)


def test_another_store_after_a_reload(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    config = {"providers": [provider(scripted)], "store": {"kind": "sqlite", "path": str(tmp_path / "a.db")}}
    served = serve(fresh=True, **config)
    with served.client() as client:
        made = client.post("/v1/responses", json=ASK).json()
        at = f"/v1/responses/{made['id']}"
        _reconfigure(served, config | {"aliases": {"x": "p/m"}})
        assert client.get(at).status_code == 200
        _reconfigure(served, config | {"store": {"kind": "sqlite", "path": str(tmp_path / "b.db")}})
        assert client.get(at).status_code == 404
        _reconfigure(served, config | {"store": {"kind": "off"}})
        assert client.post("/v1/responses", json=ASK).json()["store"] is False
        _reconfigure(served, config)
        assert client.get(at).json() == made


def _reconfigure(served: Served, config: dict[str, Any]) -> None:
    done: concurrent.futures.Future[None] = concurrent.futures.Future()

    async def adopt() -> None:
        await served.gateway.reconfigure(Config.model_validate(config))
        done.set_result(None)

    served.call_soon(lambda: asyncio.ensure_future(adopt()))
    done.result(10)
