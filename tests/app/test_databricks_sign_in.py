"""A gateway in front of a workspace whose tokens come, expire and fail to come."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from providers import databricks_tokens
from tests.backends import replies
from tests.backends.loopback import Reply
from tests.backends.workspace import CLIENT_ID, CLIENT_SECRET, Workspace

from .conftest import Serve, Served

MODEL = "databricks-claude-x"
CHAT = {"model": f"dbx/{MODEL}", "messages": [{"role": "user", "content": "Hello"}]}
RESPONSES = {"model": f"dbx/{MODEL}", "input": "Hello"}
SHAPES = [("/v1/chat/completions", CHAT), ("/v1/responses", RESPONSES)]

Start = Callable[..., Served]


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace() as made:
        yield made


@pytest.fixture
def start(workspace: Workspace, serve: Serve) -> Start:
    """A gateway that signs in as the service principal; its model list is configured."""

    def begin(server: Mapping[str, Any] | None = None, **more: Any) -> Served:
        account = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "models": [MODEL]}
        provider = {"name": "dbx", "kind": "databricks", "base_url": workspace.origin, **account, **more}
        provider = {key: value for key, value in provider.items() if value is not None}
        return serve(fresh=True, server=server or {}, providers=[provider])

    return begin


async def burst(served: Served, count: int) -> list[httpx.Response]:
    async with httpx.AsyncClient(base_url=served.base, trust_env=False, timeout=20) as client:
        return list(
            await asyncio.gather(
                *(client.post(*SHAPES[at % 2][:1], json=SHAPES[at % 2][1]) for at in range(count))
            )
        )


async def test_a_burst_signs_in_once(workspace: Workspace, start: Start) -> None:
    workspace.token_pause_s = 0.2
    answers = await burst(start(), 50)
    assert {answer.status_code for answer in answers} == {200}
    assert len(workspace.asked("/oidc")) == 1
    tokens = {each.headers["authorization"] for each in workspace.server.requests if "/oidc" not in each.path}
    assert tokens == {"Bearer token-1-abcdefgh"}


@pytest.mark.parametrize("refusal", [401, 403])
async def test_a_burst_on_an_expired_token_signs_in_once_more(
    workspace: Workspace, start: Start, refusal: int
) -> None:
    workspace.refusal, workspace.token_pause_s = refusal, 0.1
    served = start()
    await burst(served, 2)
    workspace.expire()
    answers = await burst(served, 50)
    assert {answer.status_code for answer in answers} == {200}
    assert len(workspace.asked("/oidc")) == 2


def test_a_token_is_renewed_before_it_ends(workspace: Workspace, start: Start) -> None:
    workspace.expires_in = 2
    served = start()
    with served.client() as client:
        for _ in range(12):
            assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
            time.sleep(0.1)
    # Renewed after 1 s, in the background, and never after a refusal.
    assert len(workspace.issued) == 2
    assert not served.log("signed_in_again")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("path", "body"), SHAPES)
def test_a_stream_is_asked_for_again_before_its_first_byte(
    workspace: Workspace, start: Start, path: str, body: Mapping[str, Any], stream: bool
) -> None:
    served = start()
    with served.client() as client:
        client.post(path, json=body)
        workspace.expire()
        answer = client.post(path, json={**body, "stream": stream})
    assert answer.status_code == 200
    assert b"Hello from the backend." in answer.content or b'"Hel' in answer.content
    assert len(workspace.issued) == 2


def test_what_no_token_may_do_is_refused_without_a_token_each_time(
    workspace: Workspace, start: Start
) -> None:
    workspace.forbidden = {"databricks-claude-secret"}
    served = start()
    with served.client() as client:
        for _ in range(5):
            answer = client.post(
                "/v1/chat/completions", json={**CHAT, "model": "dbx/databricks-claude-secret"}
            )
            assert (answer.status_code, answer.json()["error"]["message"]) == (403, "You may not.")
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
    assert len(workspace.issued) == 2


def test_a_refusal_never_quotes_a_token(workspace: Workspace, start: Start) -> None:
    """Neither of those that the gateway learned while it ran."""
    served = start()
    workspace.token_reply = replies.json_reply({"access_token": "never-good-12345678", "expires_in": 3600})
    for refusal, status in ((401, 502), (403, 403)):
        workspace.refusal = refusal
        with served.client() as client:
            for path, body in SHAPES:
                answer = client.post(path, json=body)
                assert answer.status_code == status
                assert "[redacted]" in answer.json()["error"]["message"]
                assert "never-good" not in answer.text
    written = served.log_file.getvalue().decode()
    assert "never-good" not in written
    assert CLIENT_SECRET not in written


DOWN = [
    (replies.json_reply({"error": "invalid_client", "error_description": CLIENT_SECRET}, 401), 1),
    (replies.json_reply({"error": "temporarily_unavailable"}, 503), 2),
    (Reply(200, {"content-length": "9"}, [b"{"], "cut"), 2),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("reply", "tries"), DOWN, ids=["refused", "down", "broken"])
@pytest.mark.parametrize(("path", "body"), SHAPES)
def test_a_token_endpoint_that_fails_is_a_clean_502(
    workspace: Workspace,
    start: Start,
    path: str,
    body: Mapping[str, Any],
    reply: Reply,
    tries: int,
    stream: bool,
) -> None:
    workspace.token_reply = reply
    served = start({"retry_budget_s": 0.8})
    with served.client() as client:
        answer = client.post(path, json={**body, "stream": stream})
    error = answer.json()["error"]
    assert (answer.status_code, error["type"], error["code"]) == (502, "upstream_error", "upstream_auth")
    assert error["message"].startswith("provider dbx: the workspace's token endpoint")
    assert CLIENT_SECRET not in answer.text
    assert 1 <= len(workspace.asked("/oidc")) <= tries
    assert not workspace.asked("/serving-endpoints")


def test_a_token_endpoint_that_hangs_is_a_timeout(
    workspace: Workspace, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databricks_tokens, "TOKEN_S", 0.5)
    workspace.token_reply = Reply(200, {"content-length": "9"}, [], "hang")
    served = start()
    began = time.monotonic()
    with served.client() as client:
        answer = client.post("/v1/responses", json=RESPONSES)
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "upstream_timeout")
    assert time.monotonic() - began < 8
    workspace.token_reply = None
    time.sleep(0.3)
    with served.client() as client:
        assert client.post("/v1/responses", json=RESPONSES).status_code == 200


def test_an_endpoint_that_fails_once_costs_no_request(workspace: Workspace, start: Start) -> None:
    workspace.token_reply = Reply(503, {}, [b"{}"])
    served = start()
    with served.client() as client:
        threading.Timer(0.2, setattr, (workspace, "token_reply", None)).start()
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200


def test_models_are_listed_with_a_fresh_token(workspace: Workspace, start: Start) -> None:
    service = {"name": "model-services/system.ai.claude-y"}
    workspace.services[""] = replies.json_reply({"model_services": [service]})
    workspace.token_reply = replies.json_reply({"access_token": "stale-token-1", "expires_in": 3600})
    threading.Timer(0.3, setattr, (workspace, "token_reply", None)).start()
    workspace.token_pause_s = 0.5
    served = start(models=None)
    deadline = time.monotonic() + 8
    listed: set[str] = set()
    with served.client() as client:
        while time.monotonic() < deadline and "dbx/system.ai.claude-y" not in listed:
            listed = {each["id"] for each in client.get("/v1/models").json()["data"]}
            time.sleep(0.05)
    assert {f"dbx/{MODEL}", "dbx/system.ai.claude-y"} <= listed


def test_a_profile_is_enough(
    workspace: Workspace, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token in ~/.databrickscfg that someone replaces while the gateway runs."""
    path = tmp_path / ".databrickscfg"
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(path))
    path.write_text(f"[work]\nhost = {workspace.origin}\ntoken = dapi-first\n")
    workspace.valid = {"dapi-first"}
    provider = {"name": "dbx", "kind": "databricks", "config_profile": "work", "models": [MODEL]}
    with serve(fresh=True, providers=[provider]).client() as client:
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
        path.write_text(f"[work]\nhost = {workspace.origin}\ntoken = dapi-second\n")
        workspace.valid = {"dapi-second"}
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
        workspace.expire()
        answer = client.post("/v1/chat/completions", json=CHAT)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_auth")
    assert "dapi-" not in answer.text


UNAVAILABLE: list[tuple[dict[str, Any], str]] = [
    ({"config_profile": "absent"}, "has no profile 'absent'"),
    ({"auth": "pat"}, "no workspace is known"),
    ({"auth": "sdk", "base_url": "https://h"}, "pip install '.[databricks]'"),
]


@pytest.mark.parametrize(("given", "words"), UNAVAILABLE, ids=["profile", "host", "extra"])
def test_an_account_that_cannot_be_used_says_what_to_do(
    given: dict[str, Any], words: str, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.delenv("DATABRICKS_HOST", raising=False)
    monkeypatch.setattr("providers.registry.sdk_is_installed", lambda: False)
    provider = {"name": "dbx", "kind": "databricks", "models": [MODEL], **given}
    with serve(fresh=True, providers=[provider]).client() as client:
        answer = client.post("/v1/chat/completions", json=CHAT)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "provider_unavailable")
    assert words in answer.json()["error"]["message"]


def test_the_sdk_signs_a_request(workspace: Workspace, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    class Account:
        def __init__(self, **_: Any) -> None:
            workspace.valid = {"from-the-sdk-1234"}

        def authenticate(self) -> dict[str, str]:
            return {"Authorization": "Bearer from-the-sdk-1234", "X-Databricks-Azure-Thing": "1"}

    monkeypatch.setattr("databricks.sdk.core.Config", Account)
    served = start(auth="sdk", client_id=None, client_secret=None)
    with served.client() as client:
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200
    (asked,) = workspace.asked("/serving-endpoints")
    assert asked.headers["x-databricks-azure-thing"] == "1"
    assert orjson.loads(asked.body)["model"] == MODEL
