"""Models that come and go: loads, events, queues, clients that leave, processes that die."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from providers.onnx.extra import EMBEDDED, NO_EXTRA
from tests.app.conftest import Serve, Served
from tests.app.onnx_served import ENDLESS, MODEL, Json, chat, events, folded, started, until, user

LONG = {"max_tokens": 6000, **ENDLESS}


def provider_of(served: Served) -> Any:
    return served.gateway.catalog.providers[0]


def pid(served: Served) -> int:
    found: int = provider_of(served)._pool._slots["tiny-chat"].worker.pid
    return found


def state(served: Served, model: str = MODEL) -> str:
    with served.client() as client:
        told = client.get("/ready")
    assert told.status_code == 200
    found: str = told.json()["models"][model]["state"]
    return found


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def ask(served: Served, **more: Any) -> Json:
    return {"json": {"model": MODEL, "messages": [user("Say hello.")], **more}}


def test_a_model_that_is_not_loaded_is_no_fault(serve: Serve) -> None:
    served = started(serve, fresh=True)
    assert state(served) == "unloaded"
    assert chat(served).status_code == 200
    assert state(served) == "ready"


def test_the_feed_tells_what_happens(serve: Serve) -> None:
    served = started(serve, fresh=True)
    told: list[Json] = []
    with served.client() as client, client.stream("GET", "/events") as feed:
        assert feed.headers["content-type"].startswith("text/event-stream")

        def listen() -> None:
            lines = (line for line in feed.iter_lines() if line.startswith("data: "))
            told.extend(json.loads(line.removeprefix("data: ")) for line in lines)

        reader = threading.Thread(target=listen, daemon=True)
        reader.start()
        until(lambda: told)
        assert told == [{"model": MODEL, "state": "unloaded"}]
        assert chat(served).status_code == 200
        until(lambda: told[-1]["state"] == "ready" and len(told) > 4)
        served.stop()  # the feed does not hold up the end
        reader.join(10)
    assert served.ended(10)
    states = [each["state"] for each in told]
    order = list(dict.fromkeys(states))
    assert order[:4] == ["unloaded", "loading", "compiling", "ready"]
    assert states[-1] in ("ready", "unloaded")
    assert "generating" in states
    progress = [each["progress"] for each in told if each["state"] == "loading"]
    assert progress == sorted(progress)
    assert progress[-1] == 1.0


def test_the_feed_asks_for_the_key(serve: Serve) -> None:
    provider = {"name": "local", "kind": "onnx", "path": str(EMBEDDED)}
    served = serve(providers=[provider], server={"api_keys": ["k"]})
    with served.client() as client:
        assert client.get("/events").status_code == 401


def test_a_client_that_leaves_ends_its_answer(serve: Serve) -> None:
    served = started(serve, fresh=True)
    with (
        served.client() as client,
        client.stream("POST", "/v1/chat/completions", **ask(served, stream=True, **LONG)) as reply,
    ):
        lines = reply.iter_lines()
        next(lines)
        worker = provider_of(served)._pool._slots["tiny-chat"].worker
        assert worker.pending == 1
        left = time.monotonic()
    until(lambda: worker.pending == 0)
    assert time.monotonic() - left < 1.5  # a hang-up is looked for every 0.2 s
    until(lambda: state(served) == "ready")
    assert chat(served).json()["choices"][0]["message"]["content"].startswith("Hello")


def test_a_full_queue(serve: Serve) -> None:
    overrides = {"max_queue": 1}
    provider = {"name": "local", "kind": "onnx", "path": str(EMBEDDED), "overrides": overrides}
    served = serve(fresh=True, providers=[provider], server={"retry_budget_s": 0})
    with served.client() as client, ThreadPoolExecutor(2) as pool:
        with client.stream("POST", "/v1/chat/completions", **ask(served, stream=True, **LONG)) as reply:
            lines = reply.iter_lines()
            next(lines)
            waits = pool.submit(chat, served)
            until(lambda: provider_of(served)._pool.status("tiny-chat").waiting)
            refused = chat(served)
        assert waits.result().status_code == 200
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error"]["code"] == "server_is_overloaded"


def test_ten_clients_are_all_answered(serve: Serve) -> None:
    served = started(serve, max_queue=16)
    with ThreadPoolExecutor(10) as pool:
        replies = list(pool.map(lambda _: chat(served), range(10)))
    assert {reply.status_code for reply in replies} == {200}
    texts = {reply.json()["choices"][0]["message"]["content"] for reply in replies}
    assert texts == {"Hello! How can I help you today?"}


def test_a_process_that_dies(serve: Serve) -> None:
    served = started(serve, fresh=True)
    with (
        served.client() as client,
        client.stream("POST", "/v1/chat/completions", **ask(served, stream=True, **LONG)) as reply,
    ):
        lines = reply.iter_lines()
        next(lines)
        os.kill(pid(served), signal.SIGKILL)
        rest = [json.loads(each.removeprefix("data: ")) for each in lines if each.startswith("data: {")]
    assert "ended" in rest[-1]["error"]["message"]
    assert "[DONE]" not in str(rest)
    until(lambda: state(served) == "unloaded")
    assert chat(served).status_code == 200
    assert state(served) == "ready"


def test_one_that_died_while_nobody_asked_is_replaced(serve: Serve) -> None:
    served = started(serve, fresh=True)
    chat(served)
    first = pid(served)
    os.kill(first, signal.SIGKILL)
    assert chat(served).status_code == 200
    assert pid(served) != first


def test_what_is_not_used_gives_its_memory_back(serve: Serve) -> None:
    served = started(serve, fresh=True, idle_unload_s=0.2)
    chat(served)
    process = pid(served)
    until(lambda: is_gone(process))
    until(lambda: state(served) == "unloaded")
    assert chat(served).status_code == 200


def test_the_end_ends_every_process(serve: Serve) -> None:
    served = started(serve, fresh=True)
    chat(served)
    process = pid(served)
    served.stop()
    assert served.ended(10)
    assert is_gone(process)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two models, and one that lacks its template."""
    for name in ("one", "two", "bare"):
        shutil.copytree(EMBEDDED / "tiny-chat", tmp_path / name)
    (tmp_path / "bare" / "chat_template.jinja").unlink()
    return tmp_path


def test_one_model_makes_way_for_another(serve: Serve, folder: Path) -> None:
    provider = {"name": "local", "kind": "onnx", "path": str(folder), "overrides": {"max_loaded": 1}}
    served = serve(fresh=True, providers=[provider])
    until(lambda: served.gateway.catalog._listings["local"].asked)
    with ThreadPoolExecutor(6) as pool:
        names = ["one", "two"] * 3
        replies = list(pool.map(lambda name: chat(served, model=f"local/{name}"), names))
    assert {reply.status_code for reply in replies} == {200}
    states = [state(served, f"local/{name}") for name in ("one", "two")]
    assert sorted(states) == ["ready", "unloaded"]


def test_a_folder_that_cannot_be_used_says_why(serve: Serve, folder: Path) -> None:
    served = serve(fresh=True, providers=[{"name": "local", "kind": "onnx", "path": str(folder)}])
    until(lambda: served.gateway.catalog._listings["local"].asked)
    with served.client() as client:
        listed = [each["id"] for each in client.get("/v1/models").json()["data"]]
    assert "local/one" in listed
    assert "local/bare" not in listed
    refused = chat(served, model="local/bare")
    assert refused.status_code == 400
    assert "chat template" in refused.json()["error"]["message"]
    assert chat(served, model="local/none").status_code == 404


def test_a_chat_model_makes_no_embeddings(serve: Serve) -> None:
    served = started(serve)
    with served.client() as client:
        reply = client.post("/v1/embeddings", json={"model": MODEL, "input": "a"})
    assert reply.status_code == 400
    assert "makes no embeddings" in reply.json()["error"]["message"]


def test_without_the_engine_it_is_unavailable(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.registry.extra_is_installed", lambda: False)
    served = serve(fresh=True, providers=[{"name": "local", "kind": "onnx", "path": str(EMBEDDED)}])
    refused = chat(served)
    assert refused.status_code == 503
    assert NO_EXTRA in refused.json()["error"]["message"]
    with served.client() as client:
        assert "models" not in client.get("/ready").json()


def test_thinking_streams_before_the_text(serve: Serve) -> None:
    told = folded(events(chat(started(serve), "Say hello.", stream=True, reasoning_effort="low")))
    assert told["reasoning_content"]
    assert told["content"].startswith("Hello")


def test_a_feed_ends_with_its_configuration(serve: Serve) -> None:
    served = started(serve, fresh=True)
    config = served.gateway.catalog
    with served.client() as client, client.stream("GET", "/events", timeout=httpx.Timeout(10)) as feed:
        lines = feed.iter_lines()
        next(lines)
        served.call_soon(lambda: setattr(served.gateway, "catalog", None))
        assert [each for each in lines if each.startswith("data: ") and "generating" in each] == []
        served.call_soon(lambda: setattr(served.gateway, "catalog", config))
        until(lambda: served.gateway.catalog is config)


def test_a_full_queue_is_soon_forgotten(serve: Serve) -> None:
    """Of a crowd some are refused; who comes when it is over is not."""
    provider = {"name": "local", "kind": "onnx", "path": str(EMBEDDED), "overrides": {"max_queue": 1}}
    served = serve(fresh=True, providers=[provider], server={"retry_budget_s": 0})
    chat(served)
    with ThreadPoolExecutor(8) as pool:
        crowd = [
            reply.status_code
            for reply in pool.map(lambda _: chat(served, **LONG | {"max_tokens": 200}), range(8))
        ]
    assert set(crowd) == {200, 503}
    assert chat(served).status_code == 200
