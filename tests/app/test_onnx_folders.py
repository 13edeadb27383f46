"""Models in other folders than the packaged one: other layouts, other abilities, what their owner says."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.events import local_models
from app.main import create_app
from config.schema import Config
from tests.app.conftest import Serve, Served
from tests.app.onnx_served import WEATHER, chat, message, until
from tests.providers.onnx.layouts import TINY, community, copied


def served_from(serve: Serve, folder: Path, **overrides: object) -> Served:
    provider = {"name": "local", "kind": "onnx", "path": str(folder), "overrides": overrides}
    served = serve(fresh=True, providers=[provider])
    until(lambda: served.gateway.catalog._listings["local"].asked)
    return served


def test_a_repository_of_the_hub(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is laid out for the engine by links in the cache; its makers say that it draws."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    served = served_from(serve, community(tmp_path / "models" / "hub").parent)
    greedy = message(served, "Say hello.", model="local/hub", temperature=0)
    assert greedy["content"] == "Hello! How can I help you today?"
    assert (tmp_path / "cache" / "dragoman" / "onnx").is_dir()
    drawn = {message(served, "x", model="local/hub", seed=each, max_tokens=8)["content"] for each in range(8)}
    assert len(drawn) > 1


def test_one_that_cannot_be_laid_out(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    provider = {"name": "local", "kind": "onnx", "path": str(community(tmp_path / "models" / "hub").parent)}
    served = serve(fresh=True, providers=[provider], server={"retry_budget_s": 0})
    refused = chat(served, model="local/hub")
    assert refused.status_code == 503
    assert "cannot be laid out" in refused.json()["error"]["message"]


def test_a_model_without_tools_refuses_them(serve: Serve, tmp_path: Path) -> None:
    folder = copied(tmp_path / "plain")
    (folder / "chat_template.jinja").write_text(
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
        "{% endfor %}<|im_start|>assistant\n"
    )
    served = served_from(serve, tmp_path)
    refused = chat(served, model="local/plain", tools=[WEATHER])
    assert refused.status_code == 400
    assert "tools" in refused.json()["error"]["param"]
    assert chat(served, model="local/plain").json()["choices"][0]["message"]["content"]


def test_the_context_is_as_configured(serve: Serve) -> None:
    served = served_from(serve, TINY, num_ctx=64, threads=1)
    with served.client() as client:
        listed = client.get("/v1/models").json()["models"]
    assert {each["context_window"] for each in listed if each["slug"] == "local/tiny-chat"} == {64}
    refused = chat(served, "hello world " * 40)
    assert refused.json()["error"]["code"] == "context_length_exceeded"
    assert "64" in refused.json()["error"]["message"]


def test_a_folder_that_is_not_there(serve: Serve, tmp_path: Path) -> None:
    served = served_from(serve, tmp_path / "nowhere")
    refused = chat(served, model="local/nowhere")
    assert refused.status_code == 400
    assert "is no folder" in refused.json()["error"]["message"]


def test_the_models_are_listed_from_the_start(tmp_path: Path) -> None:
    """Before the first request, and before anything was asked in the background."""
    copied(tmp_path / "one")
    config = {"providers": [{"name": "local", "kind": "onnx", "path": str(tmp_path)}]}
    gateway = create_app(Config.model_validate(config)).state.gateway
    assert [each.id for each in gateway.catalog.listed("local")] == ["one"]
    assert list(local_models(gateway.catalog.providers)) == ["local/one"]
