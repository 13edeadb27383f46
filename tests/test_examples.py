"""Every example is run, against a real gateway where it needs one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backends.gateway import Gateway
from tests.backends.llamacpp import MODEL, LlamaServer
from tests.backends.scripted import ScriptedBackend
from tests.contract.codex_cli import KEY, find_codex

EXAMPLES = Path(__file__).parents[1] / "examples"
GREETING = "Hello from the backend."


def run(argv: list[str], **env: str) -> str:
    """What the example printed; it must end well."""
    bare = {"PATH": os.environ["PATH"], "PYTHONPATH": str(EXAMPLES.parent)}
    ran = subprocess.run(argv, env={**bare, **env}, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("key", [None, "k-1"])
def test_curl(scripted: ScriptedBackend, start_gateway: Callable[..., Gateway], key: str | None) -> None:
    base = f"{scripted.origin}/v1"
    provider = {"name": "up", "kind": "openai", "base_url": base, "models": ["m"], "wire": "chat"}
    gateway = start_gateway([provider], server={"api_keys": [key] if key else []})
    env = {"DRAGOMAN_API_KEY": key} if key else {}
    printed = run([str(EXAMPLES / "curl.sh")], DRAGOMAN_URL=gateway.base, MODEL="up/m", **env)
    assert '"id":"up/m"' in printed
    assert "event: response.completed" in printed
    assert "x-dragoman-model: up/m" in printed
    assert GREETING in printed


def test_openai_sdk(start_gateway: Callable[..., Gateway]) -> None:
    pytest.importorskip("xllamacpp", reason="no wheel of llama.cpp for this platform")
    with LlamaServer() as llama:
        base = f"{llama.origin}/v1"
        gateway = start_gateway([{"name": "up", "kind": "openai", "base_url": base, "wire": "chat"}])
        argv = [sys.executable, str(EXAMPLES / "openai_sdk.py")]
        printed = run(argv, DRAGOMAN_URL=gateway.base, MODEL=f"up/{MODEL}")
    assert "the model calls get_weather for Paris" in printed
    assert printed.strip().endswith("sunny.")


def test_openai_sdk_with_a_model_that_calls_nothing(
    scripted: ScriptedBackend, start_gateway: Callable[..., Gateway]
) -> None:
    base = f"{scripted.origin}/v1"
    gateway = start_gateway([{"name": "up", "kind": "openai", "base_url": base, "wire": "chat"}])
    argv = [sys.executable, str(EXAMPLES / "openai_sdk.py")]
    printed = run(argv, DRAGOMAN_URL=gateway.base, MODEL="up/silent")
    assert printed.splitlines() == [GREETING, GREETING]
    assert len(scripted.bodies("silent")) == 2


def test_library() -> None:
    printed = run([sys.executable, str(EXAMPLES / "library.py")])
    assert "left out: ['/truncation']" in printed
    assert "'role': 'system', 'content': 'Be brief.'" in printed
    assert printed.strip().endswith("data: [DONE]")


def test_codex_configuration(
    scripted: ScriptedBackend, start_gateway: Callable[..., Gateway], tmp_path: Path
) -> None:
    """The file as it is, but for the gateway's port."""
    codex = find_codex()
    if codex is None:
        pytest.skip("no Codex CLI here: make codex")
    base = f"{scripted.origin}/v1"
    model = "databricks-claude-sonnet-4-6"
    provider = {"name": "dbx", "kind": "openai", "base_url": base, "wire": "chat", "models": [model]}
    gateway = start_gateway([provider])
    home = tmp_path / "home"
    home.mkdir()
    config = (EXAMPLES / "codex.toml").read_text().replace("http://127.0.0.1:4000", gateway.base)
    (home / "config.toml").write_text(config)
    argv = [str(codex), "exec", "--skip-git-repo-check", "-C", str(tmp_path), "Say hello."]
    printed = run(argv, CODEX_HOME=str(home), HOME=str(home), DRAGOMAN_API_KEY=KEY)
    assert GREETING in printed
    tools = scripted.bodies(model)[-1]["tools"]
    assert "apply_patch" in [tool["function"]["name"] for tool in tools], "Codex has not read the catalogue"
