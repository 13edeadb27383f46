"""A gateway with each kind of store, and what is done with its conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import orjson
import pytest

from tests.app.conftest import Serve, Served, provider
from tests.backends.scripted import ScriptedBackend

Made = dict[str, Any]
New = Callable[..., str]
Ask = Callable[..., Made]
Items = Callable[[str], list[Made]]
KEYS = {"api_keys": ["alice-key", "bob-key"]}
SAID = "Hello from the backend."
ONE = {"role": "user", "content": "one"}
MISSING = [
    ("GET", ""),
    ("POST", ""),
    ("DELETE", ""),
    ("GET", "/items"),
    ("POST", "/items"),
    ("GET", "/items/msg_1"),
    ("DELETE", "/items/msg_1"),
]
"""Methods, and paths below a conversation."""


def last_response(reply: httpx.Response) -> Made:
    datas = [line[6:] for line in reply.text.split("\n") if line.startswith("data: {")]
    found: Made = orjson.loads(datas[-1])["response"]
    return found


def texts(found: list[Made]) -> list[str]:
    return [each["content"][0]["text"] for each in found]


def words(scripted: ScriptedBackend) -> list[str]:
    return [each["content"] for each in scripted.bodies()[-1]["messages"]]


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]) -> Served:
    return serve(providers=[provider(scripted)], store=store)


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


@pytest.fixture
def new(client: httpx.Client) -> New:
    """The id of a new conversation."""

    def new(**body: Any) -> str:
        reply = client.post("/v1/conversations", json=body)
        assert reply.status_code == 200, reply.text
        id: str = reply.json()["id"]
        return id

    return new


@pytest.fixture
def ask(client: httpx.Client) -> Ask:
    """The response to a request, whole or streamed."""

    def ask(conversation: Any, given: Any, stream: bool = False, **body: Any) -> Made:
        asked = {"model": "m", "conversation": conversation, "input": given, "stream": stream, **body}
        reply = client.post("/v1/responses", json=asked)
        assert reply.status_code == 200, reply.text
        found: Made = last_response(reply) if stream else reply.json()
        return found

    return ask


@pytest.fixture
def items(client: httpx.Client) -> Items:
    """All items of a conversation, the oldest first."""

    def items(id: str) -> list[Made]:
        found: list[Made] = []
        page: Made = {"has_more": True, "last_id": None}
        while page["has_more"]:
            after = {"after": page["last_id"]} if page["last_id"] else {}
            query = {"order": "asc", "limit": 100, **after}
            page = client.get(f"/v1/conversations/{id}/items", params=query).json()
            found += page["data"]
        return found

    return items
