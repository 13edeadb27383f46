"""The keys file under a gateway that serves: taken up when it changes, with no request dropped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from config.problems import ConfigErrors
from tests.app.conftest import Serve, Served, provider
from tests.app.keyed import entry, signed, written
from tests.backends.gateway import Gateway, config_text
from tests.backends.loopback import Reply, Request
from tests.backends.replies import chat_completion, json_reply
from tests.backends.scripted import ScriptedBackend

ASK = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.access.keys_file.LOOK_S", 0.05)


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def status(gateway: Served, name: str) -> int:
    with gateway.client(headers=signed(name)) as client:
        return client.post("/v1/chat/completions", json=ASK).status_code


def test_a_key_comes_and_goes(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    server = {"keys_file": written(path, entry("a"))}
    gateway = serve(fresh=True, server=server, providers=[provider(scripted)])
    assert (status(gateway, "a"), status(gateway, "b")) == (200, 401)
    written(path, entry("a", disabled=True), entry("b", models=["p/other"]))
    until(lambda: status(gateway, "b") == 404)
    assert status(gateway, "a") == 401
    assert [line["keys"] for line in gateway.log("keys_reloaded")] == [2]
    written(path)
    until(lambda: status(gateway, "b") == 401)


def test_a_request_under_way_ends_well(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    keys = written(path, entry("a", limits={"concurrency": 1}))
    gateway = serve(fresh=True, server={"keys_file": keys}, providers=[provider(scripted)])
    asked, go_on = threading.Event(), threading.Event()

    def wait(_: Request) -> Reply:
        asked.set()
        go_on.wait(30)
        return json_reply(chat_completion("late"))

    scripted.play(wait)
    answers: list[httpx.Response] = []
    with gateway.client(headers=signed("a")) as client:
        slow = threading.Thread(target=lambda: answers.append(client.post("/v1/chat/completions", json=ASK)))
        slow.start()
        assert asked.wait(30)
        written(path, entry("b"))
        until(lambda: bool(gateway.log("keys_reloaded")))
        assert status(gateway, "a") == 401
        go_on.set()
        slow.join()
    assert answers[0].status_code == 200
    assert gateway.gateway.limiter().running == {}


@pytest.mark.parametrize(
    "text", ["[[keys]]\nname = 'a'\nhsh = 'x'", "[[keys", None], ids=["faults", "no-toml", "gone"]
)
def test_a_bad_file_keeps_the_old_keys_and_says_why(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path, text: str | None
) -> None:
    path = tmp_path / "keys.toml"
    server = {"keys_file": written(path, entry("a"))}
    gateway = serve(fresh=True, server=server, providers=[provider(scripted)])
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    until(lambda: bool(gateway.log("keys_not_loaded")))
    time.sleep(0.3)
    (said,) = gateway.log("keys_not_loaded")
    assert all(line.startswith(str(path)) for line in said["errors"])
    if text and "hsh" in text:
        assert 'keys[0].hsh: unknown key, did you mean "hash"?' in str(said["errors"])
    assert status(gateway, "a") == 200
    written(path, entry("b"))
    until(lambda: status(gateway, "b") == 200)
    assert status(gateway, "a") == 401


def test_a_file_that_is_bad_from_the_start_lets_nobody_in(
    serve: Serve, scripted: ScriptedBackend, tmp_path: Path
) -> None:
    """As for a worker that is started again; `dragoman serve` itself refuses to start."""
    path = tmp_path / "keys.toml"
    path.write_text("[[keys")
    gateway = serve(fresh=True, server={"keys_file": str(path)}, providers=[provider(scripted)])
    assert len(gateway.log("keys_not_loaded")) == 1
    assert status(gateway, "a") == 401
    written(path, entry("a"))
    until(lambda: status(gateway, "a") == 200)


async def test_another_configuration_reads_its_own_file(tmp_path: Path) -> None:
    from app.access.keys_file import read_keys
    from config.schema import Server

    one = read_keys(Server(keys_file=written(tmp_path / "one.toml", entry("a"))))
    assert one.entries is not None
    (tmp_path / "two.toml").write_text("[[keys")
    with pytest.raises(ConfigErrors):
        read_keys(Server(keys_file=str(tmp_path / "two.toml")), one)
    (tmp_path / "one.toml").write_text("[[keys")
    assert read_keys(Server(keys_file=str(tmp_path / "one.toml")), one).entries == one.entries
    assert read_keys(Server(), one).entries is None


def test_the_command_refuses_to_start_with_a_bad_file(tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text("[[keys]]\nname = 'a'\n")
    config = config_text([], server={"keys_file": "keys.toml", "host": "0.0.0.0"})
    with (
        pytest.raises(RuntimeError, match=r"keys\.toml:1: keys\[0\]\.hash: is required"),
        Gateway(tmp_path, config),
    ):
        pass


def test_all_workers_follow_the_file(scripted: ScriptedBackend, tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    text = config_text([provider(scripted)], server={"keys_file": written(path, entry("a")), "workers": 2})
    with Gateway(tmp_path, text) as gateway:
        written(path, entry("b"))
        until(lambda: gateway.log().count("keys_reloaded") == 2)
        for _ in range(6):
            with gateway.client(headers=signed("b")) as client:
                assert client.post("/v1/chat/completions", json=ASK).status_code == 200
            with gateway.client(headers=signed("a")) as client:
                assert client.post("/v1/chat/completions", json=ASK).status_code == 401
