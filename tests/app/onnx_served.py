"""The model of the package behind the gateway, and how it is asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx

from providers.onnx.extra import EMBEDDED
from tests.app.conftest import Serve, Served

Json = dict[str, Any]
MODEL = "local/tiny-chat"
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather for a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
FLAT = {"type": "function", **WEATHER["function"]}
ENDLESS = {"logit_bias": {"2": -100}}
"""The end of the text is made impossible: the answer goes on to the limit."""


def started(serve: Serve, *, fresh: bool = False, **overrides: Any) -> Served:
    """The application with the model listed."""
    provider = {"name": "local", "kind": "onnx", "path": str(EMBEDDED), "overrides": overrides}
    served = serve(fresh=fresh, providers=[provider])
    until(lambda: served.gateway.catalog._listings["local"].asked)
    return served


def until(holds: Callable[[], Any], seconds: float = 10.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
    return found


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def chat(served: Served, text: str = "Say hello.", **more: Any) -> httpx.Response:
    with served.client() as client:
        return client.post("/v1/chat/completions", json={"model": MODEL, "messages": [user(text)], **more})


def message(served: Served, text: str, **more: Any) -> Json:
    reply = chat(served, text, **more)
    assert reply.status_code == 200, reply.text
    found: Json = reply.json()["choices"][0]["message"]
    return found


def events(reply: httpx.Response) -> list[Json]:
    """The data of every event but `[DONE]`."""
    assert reply.status_code == 200, reply.text
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def folded(chunks: list[Json]) -> Json:
    """What the deltas of a Chat stream of one answer add up to."""
    held: Json = {"content": "", "reasoning_content": "", "tool_calls": [], "finish": None}
    for choice in (each["choices"][0] for each in chunks if each["choices"]):
        delta = choice["delta"]
        held["content"] += delta.get("content") or ""
        held["reasoning_content"] += delta.get("reasoning_content") or ""
        held["finish"] = choice["finish_reason"] or held["finish"]
        for call in delta.get("tool_calls", ()):
            if "id" in call:
                held["tool_calls"].append([call["function"]["name"], ""])
            held["tool_calls"][call["index"]][1] += call["function"]["arguments"]
    return held


def calls(told: Json) -> list[tuple[str, Json]]:
    return [(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in told]  # type: ignore[index]


def responses(served: Served, text: Any = "Say hello.", /, **more: Any) -> httpx.Response:
    with served.client() as client:
        return client.post("/v1/responses", json={"model": MODEL, "input": text, **more})


def output(reply: httpx.Response, kind: str) -> list[Json]:
    assert reply.status_code == 200, reply.text
    return [each for each in reply.json()["output"] if each["type"] == kind]
