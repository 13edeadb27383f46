"""The commands as a stranger types them: the installed script, a bare environment."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from providers.quirks import REFRESH_S
from tests.backends.gateway import COMMAND, Gateway, config_text
from tests.backends.loopback import Reply, Request
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend


def check(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    path = folder / "dragoman.toml"
    path.write_text(text)
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    argv = [str(COMMAND), "check", "--config", str(path)]
    return subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, timeout=30)


def test_serve_finds_what_the_environment_offers(scripted: ScriptedBackend, tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": f"{scripted.origin}/v1", "OPENAI_API_KEY": "sk-a-key-of-mine"}
    with Gateway(tmp_path, env=env) as gateway, gateway.client() as client:
        said = gateway.log()
        assert f"provider openai at {scripted.origin}/v1" in said
        assert "sk-a-key" not in said
        reply = client.post("/v1/responses", json={"model": "openai/m", "input": "hi", "stream": True})
        assert "Hello " in reply.text
        assert reply.headers["x-dragoman-model"] == "openai/m"


def test_serve_with_nothing_says_what_to_do(tmp_path: Path) -> None:
    with Gateway(tmp_path) as gateway, gateway.client() as client:
        assert client.get("/health").status_code == 200
        owners = {model["owned_by"] for model in client.get("/v1/models").json()["data"]}
        assert owners == {"embedded"}
        missing = client.post("/v1/responses", json={"model": "gpt-5", "input": "hi"})
        assert missing.status_code == 404
        assert missing.json()["error"]["code"] == "model_not_found"
        said = gateway.log()
        assert gateway.stop() == 0
    assert "OPENAI_API_KEY" in said
    assert "DATABRICKS_HOST" in said


def test_the_file_in_the_folder_is_found(scripted: ScriptedBackend, tmp_path: Path) -> None:
    provider = {"name": "mine", "kind": "openai", "base_url": f"{scripted.origin}/v1", "models": ["m"]}
    (tmp_path / "dragoman.toml").write_text(config_text([provider]))
    with Gateway(tmp_path) as gateway, gateway.client() as client:
        ids = [model["id"] for model in client.get("/v1/models").json()["data"]]
    assert "mine/m" in ids


def test_check_takes_a_good_file(tmp_path: Path) -> None:
    ran = check(tmp_path, config_text([{"name": "a", "kind": "openai", "base_url": "http://h/v1"}]))
    assert ran.returncode == 0, ran.stderr


def test_check_lists_every_error(tmp_path: Path) -> None:
    text = """
[server]
prot = 1
[[providers]]
name = "A b"
kind = "openai"
base_url = "http://h/v1"
api_key = "${NOT_SET_ANYWHERE}"
[providers.overrides]
request = {drpo = ["metadata"]}
"""
    ran = check(tmp_path, text)
    assert ran.returncode == 2
    said = ran.stdout + ran.stderr
    for part in ("prot", "did you mean", "port", "NOT_SET_ANYWHERE", "drpo", "drop", "name"):
        assert part in said, said


def test_a_websocket_that_is_turned_off_is_told_to_use_post(tmp_path: Path) -> None:
    """426 makes Codex fall back at once; any other refusal costs it seven tries."""
    upgrade = {"upgrade": "websocket", "connection": "upgrade", "sec-websocket-version": "13"}
    off = config_text([], server={"websocket": False})
    with Gateway(tmp_path, off) as gateway, gateway.client() as client:
        headers = {**upgrade, "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="}
        assert client.get("/v1/responses", headers=headers).status_code == 426


def test_what_a_backend_refuses_is_learned_for_good(scripted: ScriptedBackend, tmp_path: Path) -> None:
    """One refused request, then none: not in this process, not in the next, until it is forgotten."""

    def answer(request: Request) -> Reply | None:
        words = {"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
        return json_reply(words, 422) if "seed" in request.json else None

    def ask(gateway: Gateway) -> str:
        body = {"model": "p/m", "messages": [{"role": "user", "content": "hi"}], "seed": 7}
        with gateway.client() as client:
            reply = client.post("/v1/chat/completions", json=body)
        assert reply.status_code == 200, reply.text
        return reply.headers["x-dragoman-dropped"]

    def quirks(*arguments: str) -> str:
        argv = [str(COMMAND), "quirks", *arguments]
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=30, check=True).stdout

    scripted.play(answer)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    provider = {"name": "p", "kind": "openai", "base_url": f"{scripted.origin}/v1", "wire": "chat"}
    text = config_text([provider])
    with Gateway(tmp_path, text, env=env) as gateway:
        assert [ask(gateway), ask(gateway)] == ["/seed", "/seed"]
        assert len(scripted.requests) == 3
        assert '"provider:field_rejected"' in gateway.log()
    assert "seed" in quirks("m")
    with Gateway(tmp_path, text, env=env) as gateway:
        assert ask(gateway) == "/seed"
        assert len(scripted.requests) == 4
        assert quirks("--forget", "p/m") == "forgotten: 1\n"
        time.sleep(REFRESH_S)
        assert ask(gateway) == "/seed"
        assert len(scripted.requests) == 6
