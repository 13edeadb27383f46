"""An Ollama behind the gateway: the double with its models, a server in front of it, and how it is asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.app.conftest import Serve, Served
from tests.backends.ollama_double import Model, OllamaDouble

Json = dict[str, Any]
PIXEL = "iVBORw0KGgo="
TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"const": 1, "pattern": "x"}}},
    },
}
FLAT = {"type": "function", **TOOL["function"]}  # type: ignore[dict-item]


def models() -> list[Model]:
    return [
        Model("qwen3:8b"),
        Model("plain:latest", ("completion",), digest="sha256:aaaa", context=8192, family="llama"),
        Model("gpt-oss:20b", family="gptoss", digest="sha256:bbbb", context=131072),
        Model("llama3:8b", ("completion", "tools", "thinking"), family="llama", digest="sha256:cccc"),
        Model("embed:latest", ("embedding",), digest="sha256:dddd", context=512, family="bert"),
    ]


def started(serve: Serve, server: OllamaDouble, wait: bool = True, **more: Any) -> Served:
    """The application in front of `server`, when it knows its models."""
    provider = {"name": "p", "kind": "ollama", "base_url": server.origin, **more}
    served = serve(fresh=True, providers=[provider])
    listing = served.gateway.catalog._listings["p"]
    deadline = time.monotonic() + 5
    while wait and not listing.asked and time.monotonic() < deadline:
        time.sleep(0.005)
    return served


Start = Callable[..., Served]


def chat(served: Served, headers: Any = None, **body: Any) -> httpx.Response:
    asked = {"model": "p/qwen3:8b", "messages": [{"role": "user", "content": "hi"}], **body}
    with served.client() as client:
        return client.post("/v1/chat/completions", json=asked, headers=headers)


def responses(served: Served, **body: Any) -> httpx.Response:
    with served.client() as client:
        return client.post("/v1/responses", json={"model": "p/qwen3:8b", "input": "hi", **body})


def dropped(answer: httpx.Response) -> list[str]:
    return answer.headers.get("x-dragoman-dropped", "").split(",")


def chunks(answer: httpx.Response) -> list[Json]:
    found = [row[6:] for row in answer.text.splitlines() if row.startswith("data: ")]
    assert found[-1] == "[DONE]", answer.text
    return [json.loads(row) for row in found[:-1]]
