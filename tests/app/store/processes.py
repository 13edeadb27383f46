"""Real gateways on one store, and clients that note exactly what they were told."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson

from tests.app.conftest import provider
from tests.backends.gateway import Gateway, config_text, toml
from tests.backends.scripted import ScriptedBackend

SAID = "Hello from the backend."
_ENV = {"PYTHONPATH": str(Path(__file__).parents[3]), "DRAGOMAN_LOG_LEVEL": "warning"}
_LAST = b"event: response.completed\n"
_FAILED = b"event: response.failed\n"


def gateway(folder: Path, scripted: ScriptedBackend, store: dict[str, Any], workers: int = 1) -> Gateway:
    folder.mkdir(exist_ok=True)
    text = config_text([provider(scripted)], server={"workers": workers, "shutdown_grace_s": 1})
    return Gateway(folder, f"{text}\n[store]\n{_lines(store)}", env=_ENV)


def _lines(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {toml(value)}\n" for key, value in table.items())


@dataclass(slots=True)
class Told:
    """What reached the client of one request."""

    text: str
    id: str | None = None
    """Of a response whose end reached it."""
    status: int = 0
    retry_after: str | None = None
    failed: bool = False
    """It was a stream, and its end said that."""


def ask(base: str, text: str, stream: bool, **more: Any) -> Told:
    """One request over a connection of its own; whatever happens to that is no error."""
    told, got = Told(text), b""
    body = {"model": "m", "input": text, "stream": stream, **more}
    try:
        with httpx.stream("POST", f"{base}/v1/responses", json=body, trust_env=False, timeout=30) as reply:
            told.status, told.retry_after = reply.status_code, reply.headers.get("retry-after")
            for chunk in reply.iter_raw():
                got += chunk
            whole = not stream and reply.status_code == 200  # the length was as announced
    except httpx.HTTPError:
        whole = False
    if whole:
        told.id = orjson.loads(got)["id"]
    elif b"\n\n" in (end := got.partition(_LAST)[2]):
        told.id = orjson.loads(end.partition(b"\n\n")[0].removeprefix(b"data: "))["response"]["id"]
    told.failed = _FAILED in got
    return told


def asked_at_once(
    pool: concurrent.futures.Executor, base: str, texts: Iterable[str], **more: Any
) -> list[concurrent.futures.Future[Told]]:
    """Streams and whole answers by turns."""
    return [pool.submit(ask, base, text, at % 2 == 0, **more) for at, text in enumerate(texts)]


def is_whole(client: httpx.Client, id: str, given: str | None = None) -> None:
    """The response is there with all that belongs to it."""
    at = f"/v1/responses/{id}"
    kept = client.get(at).json()
    assert (kept["id"], kept["status"]) == (id, "completed")
    ((item,), (part,)) = kept["output"], kept["output"][0]["content"]
    assert (item["status"], part["text"]) == ("completed", SAID)
    (own,) = client.get(f"{at}/input_items").json()["data"]
    assert given in (None, own["content"][0]["text"])
