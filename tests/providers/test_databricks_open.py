"""A request to a workspace whose token changes: what is sent, and what is let go of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import orjson
import pytest

from providers.databricks import DatabricksProvider
from providers.databricks_tokens import ServicePrincipal
from providers.http import HttpClient
from providers.openai import Settings
from providers.signing import Signer
from tests.backends.workspace import CLIENT_ID, CLIENT_SECRET, Workspace

BODY = orjson.dumps({"model": "m", "messages": []})


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace() as made:
        yield made


@pytest.fixture
async def provider(workspace: Workspace) -> AsyncIterator[DatabricksProvider]:
    principal = ServicePrincipal("dbx", workspace.origin, CLIENT_ID, CLIENT_SECRET)
    settings = Settings(name="dbx", base_url=workspace.origin, kind="databricks")
    signer = Signer("dbx", principal.sign, [CLIENT_SECRET])
    made = DatabricksProvider(settings, HttpClient(), signer=signer)
    yield made
    await made.aclose()


async def test_what_is_private_is_there_for_answers_already_begun(
    workspace: Workspace, provider: DatabricksProvider
) -> None:
    private = provider.private  # as a reply's context holds it
    assert private == [CLIENT_SECRET]
    await (await provider.open("chat", "m", BODY, False)).read()
    workspace.expire()
    await (await provider.open("chat", "m", BODY, False)).read()
    assert private == [CLIENT_SECRET, "token-2-abcdefgh", "token-1-abcdefgh"]


async def test_a_client_that_goes_away_while_signing_in_again_leaves_no_exchange_open(
    workspace: Workspace, provider: DatabricksProvider
) -> None:
    await (await provider.open("chat", "m", BODY, False)).read()
    workspace.expire()
    workspace.token_pause_s = 0.5
    asking = asyncio.create_task(provider.open("chat", "m", BODY, False))
    await asyncio.sleep(0.25)
    assert len(workspace.asked("/oidc")) == 2
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    # The token that was on its way serves the next.
    upstream = await provider.open("chat", "m", BODY, False)
    assert (upstream.status, len(workspace.issued)) == (200, 2)
    await upstream.read()


async def test_an_unsigned_workspace_is_asked_unsigned(workspace: Workspace) -> None:
    made = DatabricksProvider(Settings("dbx", workspace.origin, "databricks"), HttpClient())
    upstream = await made.open("chat", "m", BODY, False)
    assert upstream.status == 401
    upstream.close()
    await made.aclose()
    (asked,) = workspace.asked("chat")
    assert "authorization" not in asked.headers
