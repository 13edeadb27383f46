"""Background responses of two gateways on one PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.app.background_asked import create, ended, running, slow_reply
from tests.app.background_shared import SHARED
from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

if TYPE_CHECKING:
    from .conftest import Postgres

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""asyncpg leaves sockets behind that a server closed."""


@pytest.mark.parametrize("scenario", SHARED)
def test_two_gateways(
    serve: Serve, scripted: ScriptedBackend, postgres: Postgres, scenario: Callable[..., None]
) -> None:
    store = {"kind": "postgres", "url": postgres.new_database(), "encryption_key": "shared"}
    config: dict[str, Any] = {
        "providers": [provider(scripted)],
        "store": store,
        "server": {"shutdown_grace_s": 0},
    }
    scenario(serve(fresh=True, **config), serve(fresh=True, **config), scripted)


def test_a_database_that_is_away_for_a_moment(
    serve: Serve, scripted: ScriptedBackend, postgres: Postgres
) -> None:
    scripted.play(slow_reply(0.5))
    store = {"kind": "postgres", "url": postgres.new_database(), "timeout_s": 2}
    with serve(fresh=True, providers=[provider(scripted)], store=store).client() as client:
        id = create(client)["id"]
        running(client, id)
        postgres.stop()
        try:
            assert client.get(f"/v1/responses/{id}").status_code == 503
            assert client.post(f"/v1/responses/{id}/cancel").status_code == 503
        finally:
            postgres.start()
        assert ended(client, id)["status"] == "completed"
