"""Gateways on one PostgreSQL: they share what they keep, and say so when it is gone."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from app.store.base import Record, StoreDown
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

if TYPE_CHECKING:
    from .conftest import Postgres

ASK = {"model": "m", "input": "hi"}

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""asyncpg leaves sockets behind that a server closed while it greeted (one that is being stopped)."""


@pytest.fixture(autouse=True)
def _sockets_left_behind() -> Iterator[None]:
    yield
    gc.collect()


def test_a_chain_alternates_between_two_gateways(
    serve: Serve, scripted: ScriptedBackend, postgres: Postgres
) -> None:
    store = {"kind": "postgres", "url": postgres.new_database(), "encryption_key": "shared"}
    config: dict[str, Any] = {"providers": [provider(scripted)], "store": store}
    with (
        serve(fresh=True, **config).client() as one,
        serve(fresh=True, **config).client() as other,
    ):
        previous: dict[str, Any] = {}
        for client in (one, other) * 5:
            made = client.post("/v1/responses", json={**ASK, **previous}).json()
            previous = {"previous_response_id": made["id"]}
        assert len(scripted.bodies()[-1]["messages"]) == 19
        assert one.get(f"/v1/responses/{made['id']}").json() == made
        assert one.delete(f"/v1/responses/{made['id']}").status_code == 200
        assert other.get(f"/v1/responses/{made['id']}").status_code == 404


def test_a_database_that_is_gone_and_back(
    serve: Serve, scripted: ScriptedBackend, postgres: Postgres
) -> None:
    store = {"kind": "postgres", "url": postgres.new_database(), "timeout_s": 2}
    with serve(fresh=True, providers=[provider(scripted)], store=store).client() as client:
        made = client.post("/v1/responses", json=ASK).json()
        postgres.stop()
        try:
            reply = client.post("/v1/responses", json=ASK)
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
            asked = len(scripted.bodies())
            assert client.post("/v1/responses", json=ASK).status_code == 503
            assert len(scripted.bodies()) == asked
            assert client.post("/v1/responses", json={**ASK, "store": False}).status_code == 200
            assert client.get(f"/v1/responses/{made['id']}").status_code == 503
        finally:
            postgres.start()
        assert client.post("/v1/responses", json=ASK).status_code == 200
        assert client.get(f"/v1/responses/{made['id']}").json() == made


def test_a_server_that_was_started_anew_is_not_noticed(
    serve: Serve, scripted: ScriptedBackend, postgres: Postgres
) -> None:
    store = {"kind": "postgres", "url": postgres.new_database()}
    with serve(fresh=True, providers=[provider(scripted)], store=store).client() as client:
        assert client.post("/v1/responses", json=ASK).status_code == 200
        postgres.stop()
        postgres.start()
        assert client.post("/v1/responses", json=ASK).status_code == 200


async def test_many_gateways_make_the_tables_at_once(postgres: Postgres) -> None:
    from app.store.postgres import PostgresStore

    url = postgres.new_database()
    stores = [PostgresStore(url, 100, 1000, 10) for _ in range(6)]
    await asyncio.gather(*(store.check() for store in stores))
    await stores[0].put(Record("o", "a", "c", None, 1, b"[]", b"{}"))
    assert await stores[5].get("o", "a") is not None
    await asyncio.gather(*(store.aclose() for store in stores))


async def test_a_newer_database_is_left_alone(postgres: Postgres) -> None:
    import asyncpg

    from app.store.postgres import PostgresStore

    url = postgres.new_database()
    db = await asyncpg.connect(url)
    await db.execute("CREATE TABLE dragoman_schema (version INTEGER NOT NULL)")
    await db.execute("INSERT INTO dragoman_schema VALUES (99)")
    await db.close()
    store = PostgresStore(url, 100, 1000, 10)
    with pytest.raises(StoreDown, match="newer version of Dragoman"):
        await store.check()
    await store.aclose()


async def test_a_database_that_is_read_only_cannot_be_used(postgres: Postgres) -> None:
    """So that no backend is asked for what cannot be kept: the connections to it are still there."""
    from app.store.postgres import PostgresStore, _takes_writes

    store = PostgresStore(postgres.new_database(), 100, 1000, 10)
    await store.check()
    async with store._found.connect() as db:  # type: ignore[union-attr]
        raw = (await db.get_raw_connection()).driver_connection
        await raw.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")  # type: ignore[union-attr]
    with pytest.raises(OSError, match="read-only"):
        await store._once(_takes_writes)
    await store.check()  # over another connection
    await store.aclose()
