"""How background responses end that something else ends: the process or its death, the store, another one."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.state.runs import LEASE_S
from app.store import StoreDown
from config.schema import Config
from tests.backends.gateway import Gateway, config_text, toml
from tests.backends.scripted import ScriptedBackend

from .background_asked import create, ended, read, replay, running, slow_reply, until
from .background_shared import SHARED, on_loop, runs_of
from .conftest import Serve, Served, provider

ROOT = Path(__file__).parents[2]


def config(scripted: ScriptedBackend, path: Path, grace_s: float = 0, **more: Any) -> dict[str, Any]:
    store = {"kind": "sqlite", "path": str(path), "timeout_s": 2}
    return {
        "providers": [provider(scripted)],
        "store": store,
        "server": {"shutdown_grace_s": grace_s},
        **more,
    }


@pytest.mark.parametrize("scenario", SHARED)
def test_two_gateways_on_one_file(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, scenario: Callable[..., None]
) -> None:
    same = config(scripted, tmp_path / "r.db")
    scenario(serve(fresh=True, **same), serve(fresh=True, **same), scripted)


# --- the process ends ------------------------------------------------------------------


def test_the_grace_lets_runs_end(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    scripted.play(slow_reply(0.6))
    served = serve(fresh=True, **config(scripted, tmp_path / "r.db", 10))
    with served.client() as client:
        id = create(client)["id"]
        running(client, id)
    served.stop()
    assert served.ended(8)
    with serve(fresh=True, **config(scripted, tmp_path / "r.db")).client() as client:
        assert read(client, id)["status"] == "completed"


def test_after_the_grace_runs_have_failed(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    scripted.play(slow_reply())
    one = {"background": {"max_running": 1}}
    served = serve(fresh=True, **config(scripted, tmp_path / "r.db", 0.2, **one))
    with served.client() as client:
        first, second = create(client)["id"], create(client)["id"]
        running(client, first)
        until(lambda: scripted.requests)
    served.stop()
    assert served.ended(8)
    assert scripted.requests[0].gone.wait(3)
    with serve(fresh=True, **config(scripted, tmp_path / "r.db")).client() as client:
        for id, words in ((first, "shutting down"), (second, "before this response was begun")):
            done = read(client, id)
            assert (done["status"], done["error"]["code"]) == ("failed", "server_error")
            assert words in done["error"]["message"]
            assert replay(client, id)[-1]["response"] == done
    assert len(scripted.requests) == 1


def test_a_follower_of_a_gateway_that_ends_can_go_on(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path
) -> None:
    """The run is another gateway's, so only the stream ends: with an error, and under the last number."""
    scripted.play(slow_reply(3.0))
    same = config(scripted, tmp_path / "r.db")
    one, other = serve(fresh=True, **same), serve(fresh=True, **same)
    with one.client() as mine, other.client() as theirs:
        id = create(mine)["id"]
        running(theirs, id)
        with theirs.stream("GET", f"/v1/responses/{id}?stream=true") as reply:
            got = ""
            for text in reply.iter_text():
                got += text
                if "output_text.delta" in got and other.running:
                    other.stop()
        assert "event: error\n" in got
        last = max(int(part.split(",")[0]) for part in got.split('"sequence_number":')[1:])
        rest = replay(mine, id, last)
        assert (rest[0]["sequence_number"], rest[-1]["type"]) == (last + 1, "response.completed")


def _text(scripted: ScriptedBackend, path: Path, workers: int = 1) -> str:
    store = f'\n[store]\nkind = "sqlite"\npath = {toml(str(path))}\n'
    return config_text([provider(scripted)], server={"workers": workers}) + store


def test_a_run_whose_process_was_killed_has_failed(scripted: ScriptedBackend, tmp_path: Path) -> None:
    path, env = tmp_path / "store" / "r.db", {"PYTHONPATH": str(ROOT)}
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    scripted.play(slow_reply())
    with Gateway(folders[0], _text(scripted, path), env=env) as gateway, gateway.client() as client:
        made = create(client)
        running(client, made["id"])
        until(lambda: scripted.requests)
        told = []
        with client.stream("GET", f"/v1/responses/{made['id']}?stream=true") as reply:
            for line in reply.iter_lines():
                told.append(line)
                if "output_text.delta" in line:
                    break
        os.kill(gateway.process.pid, signal.SIGKILL)
        gateway.process.wait()
    with sqlite3.connect(path) as db:
        ((lease, ended_),) = db.execute("SELECT lease, ended FROM runs").fetchall()
        assert (ended_, time.time() < lease <= time.time() + LEASE_S) == (0, True)
        db.execute("UPDATE runs SET lease = lease - ?", (LEASE_S + 1,))  # that time has gone by
    with Gateway(folders[1], _text(scripted, path), env=env) as gateway, gateway.client() as client:
        body = {"model": "m", "input": "x", "previous_response_id": made["id"]}
        scripted.clear()
        assert client.post("/v1/responses", json=body).status_code == 200  # from what has failed, too
        done = read(client, made["id"])
        assert (done["status"], done["error"]["code"]) == ("failed", "server_error")
        events = replay(client, made["id"])
        assert [each["sequence_number"] for each in events] == list(range(len(events)))
        assert events[-1]["response"] == done
        seen = [line for line in told if line.startswith("data: ")]
        again = client.get(f"/v1/responses/{made['id']}?stream=true").text.split("\n")
        assert [line for line in again if line.startswith("data: ")][: len(seen)] == seen
        assert client.post(f"/v1/responses/{made['id']}/cancel").status_code == 400


def test_the_next_run_ends_those_of_a_dead_process(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.state.background.RENEW_S", 1e6)
    scripted.play(slow_reply())
    dead = serve(fresh=True, **config(scripted, tmp_path / "r.db"))
    other = serve(fresh=True, **config(scripted, tmp_path / "r.db"))

    def asked(query: str) -> Any:
        with sqlite3.connect(tmp_path / "r.db") as db:
            return db.execute(query).fetchone()[0]

    with dead.client() as client, other.client() as theirs:
        create(client)
        until(lambda: asked("SELECT last_number FROM runs") == 5)  # it tells nothing more for a while
        on_loop(dead, runs_of(dead).renew(dead.gateway.background.worker, 1))
        create(theirs)
        failed = 'SELECT count(*) FROM responses WHERE CAST(response AS TEXT) LIKE \'%"status":"failed"%\''
        until(lambda: asked(failed) == 1)


def test_several_workers(scripted: ScriptedBackend, tmp_path: Path) -> None:
    """Each request comes by a connection of its own, to whichever worker takes it."""
    env = {"PYTHONPATH": str(ROOT)}
    with Gateway(tmp_path, _text(scripted, tmp_path / "s" / "r.db", 2), env=env) as gateway:
        scripted.play(slow_reply())

        def ask(method: str, path: str, **more: Any) -> Any:
            reply = httpx.request(method, gateway.base + path, trust_env=False, timeout=20, **more)
            assert reply.status_code == 200, reply.text
            return reply.json()

        ids = [
            ask("POST", "/v1/responses", json={"model": "m", "input": "x", "background": True})["id"]
            for _ in range(6)
        ]
        until(lambda: len(scripted.requests) == 6)
        for id in ids:
            for _ in range(3):
                assert ask("GET", f"/v1/responses/{id}")["status"] == "in_progress"
            assert ask("POST", f"/v1/responses/{id}/cancel")["status"] == "cancelled"
            assert ask("GET", f"/v1/responses/{id}")["status"] == "cancelled"
        assert all(request.gone.wait(3) for request in scripted.requests)


# --- the store cannot be used ----------------------------------------------------------


class Broken:
    """Runs whose store refuses steps while `gone` is set."""

    def __init__(self, served: Served) -> None:
        runs = runs_of(served)
        self._step, self.gone = runs.step, False
        runs.step = self.step

    async def step(self, step: Any) -> bool:
        if self.gone:
            raise StoreDown("disk I/O error")
        done: bool = await self._step(step)
        return done


def test_a_store_that_comes_back_in_time(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    scripted.play(slow_reply(0.3))
    served = serve(fresh=True, **config(scripted, tmp_path / "r.db"))
    broken = Broken(served)
    with served.client() as client:
        id = create(client)["id"]
        running(client, id)
        broken.gone = True
        time.sleep(0.8)
        assert read(client, id)["status"] == "in_progress"
        broken.gone = False
        assert ended(client, id)["status"] == "completed"
        events = replay(client, id)
        assert [each["sequence_number"] for each in events] == list(range(len(events)))


def test_an_end_that_cannot_be_stored(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.state.background.END_S", 0.1)
    scripted.play(slow_reply(0.3))
    served = serve(fresh=True, **config(scripted, tmp_path / "r.db"))
    broken = Broken(served)
    with served.client() as client:
        id = create(client)["id"]
        running(client, id)
        broken.gone = True
        until(lambda: not served.gateway.background._runs)
        assert served.log("background:end_not_stored")[0]["response_id"] == id
        broken.gone = False
        on_loop(served, runs_of(served).renew(served.gateway.background.worker, 1))
        assert read(client, id)["status"] == "failed"


def test_a_run_that_cannot_be_begun(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    path.write_bytes(b"no database at all" * 100)
    with serve(fresh=True, **config(scripted, path)).client() as client:
        reply = client.post("/v1/responses", json={"model": "m", "input": "x", "background": True})
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    assert not scripted.requests


def test_a_run_that_nobody_heard_of_has_failed(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store took it, but did not answer in time; its process has other runs, and renews its leases."""
    scripted.play(slow_reply())
    served = serve(fresh=True, **config(scripted, tmp_path / "r.db"))
    with served.client() as client:
        other = create(client)["id"]
        running(client, other)
        runs, told = runs_of(served), []
        begin = runs.begin

        async def late(record: Any, *more: Any) -> None:
            await begin(record, *more)
            told.append(record.id)
            raise StoreDown("the disk is too slow")

        monkeypatch.setattr(runs, "begin", late)
        reply = client.post("/v1/responses", json={"model": "m", "input": "x", "background": True})
        assert reply.status_code == 503
        assert ended(client, told[0])["error"]["code"] == "server_error"
        assert read(client, other)["status"] == "in_progress"


def test_a_fault_of_the_watch_ends_nothing(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.play(slow_reply(0.9))
    monkeypatch.setattr("app.state.background.LOOK_S", 0.05)
    served = serve(fresh=True, **config(scripted, tmp_path / "r.db"))

    async def of(_: str) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(runs_of(served), "of", of)
    with served.client() as client:
        id = create(client)["id"]
        until(lambda: len(served.log("fault")) > 1)
        assert ended(client, id)["status"] == "completed"


def test_a_log_that_grows_too_long(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.state.background.MOST_LOGGED", 10)
    scripted.play(slow_reply())
    with serve(fresh=True, **config(scripted, tmp_path / "r.db")).client() as client:
        done = ended(client, create(client)["id"])
        assert done["status"] == "failed"
        assert "could be stored" in done["error"]["message"]


def test_more_than_is_held_waits_for_the_store(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.state.background.MOST_UNWRITTEN", 1)
    scripted.play(slow_reply(0.1))
    with serve(fresh=True, **config(scripted, tmp_path / "r.db")).client() as client:
        assert ended(client, create(client)["id"])["status"] == "completed"


# --- the configuration changes ---------------------------------------------------------


def test_a_run_ends_in_the_store_that_it_began_in(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path
) -> None:
    scripted.play(slow_reply(0.6))
    before = config(scripted, tmp_path / "r.db")
    served = serve(fresh=True, **before)
    with served.client() as client:
        id = create(client)["id"]
        running(client, id)
        after = config(scripted, tmp_path / "other.db", background={"max_queue": 0, "max_running": 1})
        on_loop(served, served.gateway.reconfigure(Config.model_validate(after)))
        assert client.get(f"/v1/responses/{id}").status_code == 404
        assert (
            client.post("/v1/responses", json={"model": "m", "input": "x", "background": True}).json()[
                "error"
            ]["code"]
            == "background_queue_full"
        )
        until(lambda: not served.gateway.background._runs)
    with serve(fresh=True, **before).client() as client:
        assert read(client, id)["status"] == "completed"
