"""Conversations that several gateways share, and long ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from app.store.conversations import Conversation, Entry
from app.store.sqlite import SqliteStore
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

if TYPE_CHECKING:
    from .conftest import Postgres

SAID = "Hello from the backend."


@pytest.fixture(params=["sqlite", "postgres"])
def pair(
    request: pytest.FixtureRequest, serve: Serve, scripted: ScriptedBackend, tmp_path: Path
) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Clients of two gateways with one store."""
    store: dict[str, Any] = {"kind": "sqlite", "path": str(tmp_path / "r.db")}
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        store = {"kind": "postgres", "url": postgres.new_database(), "encryption_key": "shared"}
    config: dict[str, Any] = {"providers": [provider(scripted)], "store": store}
    with (
        serve(fresh=True, **config).client() as one,
        serve(fresh=True, **config).client() as other,
    ):
        yield one, other


def texts(client: httpx.Client, id: str) -> list[str]:
    page = client.get(f"/v1/conversations/{id}/items", params={"order": "asc", "limit": 100}).json()
    return [each["content"][0]["text"] for each in page["data"]]


def test_turns_alternate_between_two_gateways(
    pair: tuple[httpx.Client, httpx.Client], scripted: ScriptedBackend
) -> None:
    one, other = pair
    id = one.post("/v1/conversations", json={}).json()["id"]
    for turn, client in zip(range(6), cycle(pair), strict=False):
        asked = {"model": "m", "input": f"turn {turn}", "conversation": id, "stream": turn % 3 == 0}
        assert client.post("/v1/responses", json=asked).status_code == 200
    assert len(scripted.bodies()[-1]["messages"]) == 11
    wanted = [text for turn in range(6) for text in (f"turn {turn}", SAID)]
    assert texts(one, id) == texts(other, id) == wanted
    assert other.post(f"/v1/conversations/{id}", json={"metadata": {"a": "b"}}).status_code == 200
    assert one.get(f"/v1/conversations/{id}").json()["metadata"] == {"a": "b"}
    assert one.delete(f"/v1/conversations/{id}").status_code == 200
    assert other.get(f"/v1/conversations/{id}").status_code == 404


def test_turns_at_once_on_two_gateways(pair: tuple[httpx.Client, httpx.Client]) -> None:
    id = pair[0].post("/v1/conversations", json={}).json()["id"]
    given = [f"turn {number}" for number in range(16)]

    def ask(client: httpx.Client, text: str) -> int:
        asked = {"model": "m", "input": text, "conversation": id}
        return client.post("/v1/responses", json=asked).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, cycle(pair), given)) == {200}
    found = texts(pair[1], id)
    assert sorted(found[::2]) == sorted(given)
    assert found[1::2] == [SAID] * len(given)


def test_a_database_that_is_gone(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    """Nothing is acknowledged and lost: no answer of whatever kind without its turn."""
    (tmp_path / "file").write_text("")
    store = {"kind": "sqlite", "path": str(tmp_path / "file" / "r.db"), "timeout_s": 1}
    with serve(fresh=True, providers=[provider(scripted)], store=store).client() as client:
        for more in ({}, {"store": False}):
            asked = {"model": "m", "input": "x", "conversation": "conv_1", **more}
            reply = client.post("/v1/responses", json=asked)
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
        assert client.post("/v1/conversations", json={}).status_code == 503
        assert client.get("/v1/conversations/conv_1").status_code == 503
    assert not scripted.bodies()


async def test_thousands_of_items_are_read_in_linear_time(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "r.db", 1000, 1 << 30, 5)
    took = {}
    for count in (1000, 4000):
        id = f"conv_{count}"
        await store.conversations.create(Conversation("o", id, 1, b"{}"), [])
        for first in range(0, count, 500):
            turn = [Entry(f"msg_{place}", b"x" * 200) for place in range(first, first + 500)]
            await store.conversations.add("o", id, turn)
        began = time.perf_counter()
        for _ in range(5):
            found = await store.conversations.entries("o", id, 1 << 30)
        took[count] = time.perf_counter() - began
        assert [entry.id for entry in found or ()] == [f"msg_{place}" for place in range(count)]
    await store.aclose()
    assert took[4000] < 12 * took[1000]


def test_a_conversation_of_500_turns_goes_on(serve: Serve, scripted: ScriptedBackend, tmp_path: Path) -> None:
    store = {"kind": "sqlite", "path": str(tmp_path / "r.db")}
    served = serve(fresh=True, providers=[provider(scripted)], store=store)
    with served.client() as client:
        id = client.post("/v1/conversations", json={}).json()["id"]
        for first in range(0, 1000, 20):
            given = [
                {"role": ("user", "assistant")[place % 2], "content": f"item {place}"}
                for place in range(first, first + 20)
            ]
            assert client.post(f"/v1/conversations/{id}/items", json={"items": given}).status_code == 200
        reply = client.post("/v1/responses", json={"model": "m", "input": "last", "conversation": id})
        assert reply.status_code == 200
        told = [each["content"] for each in scripted.bodies()[-1]["messages"]]
        assert told == [*(f"item {place}" for place in range(1000)), "last"]
        page = client.get(f"/v1/conversations/{id}/items?limit=2").json()
        assert [each["content"][0]["text"] for each in page["data"]] == [SAID, "last"]


async def test_a_turn_that_was_committed_though_its_connection_was_lost(postgres: Postgres) -> None:
    """Then it is tried again, and must not be there twice."""
    from app.store.postgres import PostgresStore

    store = PostgresStore(postgres.new_database(), 100, 1 << 20, 10)
    await store.conversations.create(Conversation("o", "conv_a", 1, b"{}"), [])
    once, lost = store._once, asyncio.Event()

    async def lose(work: Any) -> Any:
        done = await once(work)
        if not lost.is_set():
            lost.set()
            raise OSError("the connection was lost")
        return done

    store._once = lose  # type: ignore[method-assign]
    assert await store.conversations.add("o", "conv_a", [Entry("a", b"1"), Entry("b", b"2")]) == ()
    assert lost.is_set()
    assert await store.conversations.entries("o", "conv_a", 99) == [Entry("a", b"1"), Entry("b", b"2")]
    lost.clear()
    made = Conversation("o", "conv_b", 1, b"{}")
    await store.conversations.create(made, [Entry("a", b"1")])
    assert await store.conversations.entries("o", "conv_b", 99) == [Entry("a", b"1")]
    await store.aclose()
