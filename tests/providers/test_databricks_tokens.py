"""Signing in to a workspace: a service principal against a scripted one, the SDK with real strategies."""

from __future__ import annotations

import asyncio
import base64
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from providers import databricks_tokens
from providers.databricks_tokens import Sdk, ServicePrincipal, kept_token, lasting, sdk_is_installed
from tests.backends import replies
from tests.backends.loopback import Reply
from tests.backends.workspace import CLIENT_ID, CLIENT_SECRET, Workspace
from translators.errors import ProxyError


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with Workspace() as made:
        yield made


def principal(workspace: Workspace, secret: str = CLIENT_SECRET) -> ServicePrincipal:
    return ServicePrincipal("dbx", workspace.origin, CLIENT_ID, secret)


async def test_a_service_principal_gets_a_token(workspace: Workspace) -> None:
    signature = await principal(workspace).sign(False)
    assert signature.headers == {"Authorization": "Bearer token-1-abcdefgh"}
    assert (signature.renew_s, signature.dies_s) == (3000, 3560)
    (asked,) = workspace.asked("/oidc")
    basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
    assert (asked.method, asked.headers["authorization"]) == ("POST", f"Basic {basic}")
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert CLIENT_SECRET not in repr(principal(workspace))


LIVES = [
    # expires_in, renewed from, dead from
    (3600, 3000, 3560),
    (1000, 500, 960),
    (60, 30, 45),
    (2.0, 1, 1.5),
    (None, 1200, 1760),
    (0, 1200, 1760),
    (-5, 1200, 1760),
    ("3600", 1200, 1760),
    (True, 1200, 1760),
    (float("nan"), 1200, 1760),
]


@pytest.mark.parametrize(("told", "renew", "dies"), LIVES, ids=str)
def test_how_long_a_token_is_used(told: Any, renew: float, dies: float) -> None:
    signature = lasting({}, told)
    assert (signature.renew_s, signature.dies_s) == (renew, dies)


REFUSED, BROKEN = ("upstream_auth", 502, "upstream_auth"), ("upstream", 502, "upstream_auth")
SECRETIVE = {"error": f"bad {CLIENT_SECRET}", "error_description": CLIENT_SECRET}
ANSWERS = [
    (replies.json_reply({"error": "invalid_client"}, 401), REFUSED, "status 401 (invalid_client)"),
    (replies.json_reply(SECRETIVE, 400), REFUSED, "status 400"),
    (replies.json_reply([], 404), REFUSED, "status 404"),
    (Reply(302, {"location": "/login", "content-length": "0"}), REFUSED, "status 302"),
    (replies.json_reply({}, 503), BROKEN, "status 503"),
    (replies.json_reply({"error": "slow_down"}, 429), BROKEN, "status 429 (slow_down)"),
    (replies.json_reply({"token": "x"}), REFUSED, "gave no token"),
    (replies.json_reply({"access_token": "a\r\nb: c"}), REFUSED, "gave no token"),
    (Reply(200, {"content-type": "text/html"}, [b"<html>Sign in</html>"]), REFUSED, "gave no token"),
    (Reply(200, {"content-length": "100"}, [b"{"], "cut"), BROKEN, "could not be reached"),
]


@pytest.mark.parametrize(("reply", "kind", "words"), ANSWERS, ids=[each[2] for each in ANSWERS])
async def test_a_token_endpoint_that_gives_none(
    workspace: Workspace, reply: Reply, kind: tuple[str, int, str], words: str
) -> None:
    workspace.token_reply = reply
    with pytest.raises(ProxyError) as caught:
        await principal(workspace).sign(False)
    error = caught.value
    assert (error.kind, error.http_status, error.body()["code"]) == kind
    assert str(error).startswith("provider dbx: the workspace's token endpoint ")
    assert words in str(error)
    assert CLIENT_SECRET not in str(error)
    assert workspace.origin not in str(error)


async def test_a_wrong_secret_is_not_repeated(workspace: Workspace) -> None:
    with pytest.raises(ProxyError, match="invalid_client") as caught:
        await principal(workspace, "dose-wrong").sign(False)
    assert "dose" not in str(caught.value)


async def test_nobody_there(workspace: Workspace) -> None:
    with pytest.raises(ProxyError, match="could not be reached") as caught:
        await ServicePrincipal("dbx", "http://127.0.0.1:1", CLIENT_ID, CLIENT_SECRET).sign(False)
    assert (caught.value.kind, caught.value.code) == ("upstream", "upstream_auth")


@pytest.mark.parametrize("pieces", [[], [b"{", *[b" ", 0.05] * 40]], ids=["silent", "slow"])
async def test_a_token_endpoint_that_hangs(
    workspace: Workspace, pieces: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databricks_tokens, "TOKEN_S", 0.3)
    workspace.token_reply = Reply(200, {"content-length": "1000"}, pieces, "hang")
    began = time.monotonic()
    with pytest.raises(ProxyError, match=r"did not answer within 0\.3 s") as caught:
        await principal(workspace).sign(False)
    assert caught.value.http_status == 504
    assert time.monotonic() - began < 1.5


async def test_a_kept_token_is_read_each_time() -> None:
    held: list[str | None] = ["dapi-2", "dapi-1", None]
    sign = kept_token("dbx", lambda: held.pop(0))
    assert (await sign(False)).headers == {"Authorization": "Bearer dapi-2"}
    assert (await sign(True)).headers == {"Authorization": "Bearer dapi-1"}
    with pytest.raises(ProxyError, match="holds no token any more"):
        await sign(True)


# --- the SDK ---------------------------------------------------------------------------

CLI = """#!{python}
import json, sys, time, pathlib
count = pathlib.Path({count!r})
if "version" in sys.argv:
    print(json.dumps({{"Major": 0, "Minor": 250, "Patch": 0, "Version": "0.250.0"}}))
    sys.exit()
n = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(n))
token = {{"access_token": f"cli-token-{{n}}", "token_type": "Bearer", "expiry": "2999-01-01T00:00:00Z"}}
print(json.dumps(token))
"""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home folder of its own, and nothing of Databricks in the environment."""
    for name in ("DATABRICKS_TOKEN", "DATABRICKS_HOST", "DATABRICKS_CONFIG_PROFILE", "DATABRICKS_CLIENT_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def install_cli(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str = CLI) -> None:
    path = folder / "databricks"
    path.write_text(text.format(python=sys.executable, count=str(folder / "count")) + " " * 1024 * 1024)
    path.chmod(0o755)
    monkeypatch.setenv("DATABRICKS_CLI_PATH", str(path))


async def test_the_sdk_signs_in_through_the_command_line_of_a_profile(
    bare: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_cli(bare, monkeypatch)
    (bare / ".databrickscfg").write_text(f"[work]\nhost = {workspace.origin}\nauth_type = databricks-cli\n")
    sdk = Sdk("dbx", workspace.origin, "work")
    signature = await sdk.sign(False)
    assert signature.headers == {"Authorization": "Bearer cli-token-1"}
    assert signature.renew_s < signature.dies_s < 40
    assert (await sdk.sign(False)).headers == {"Authorization": "Bearer cli-token-1"}  # it keeps it itself
    assert (await sdk.sign(True)).headers == {"Authorization": "Bearer cli-token-2"}


async def test_the_sdk_signs_in_from_the_environment(
    bare: Path, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABRICKS_USERNAME", "me")
    monkeypatch.setenv("DATABRICKS_PASSWORD", "swordfish")
    signature = await Sdk("dbx", workspace.origin).sign(False)
    assert signature.headers == {"Authorization": "Basic " + base64.b64encode(b"me:swordfish").decode()}


async def test_an_sdk_that_cannot_sign_in_says_why_in_the_log_only(
    bare: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    (bare / ".databrickscfg").write_text(f"[work]\nhost = {workspace.origin}\nauth_type = databricks-cli\n")
    with pytest.raises(ProxyError, match=r"could not sign in \(\w+\); the gateway's log says why") as caught:
        await Sdk("dbx", workspace.origin, "none").sign(False)
    assert (caught.value.kind, caught.value.http_status) == ("upstream_auth", 502)
    assert "has no none profile" in capsys.readouterr().out


class Config:
    """Stands in for the SDK's, where what matters is what it does to us."""

    made: ClassVar[list[dict[str, Any]]] = []
    raises: Exception | None = None
    holds: threading.Event | None = None

    def __init__(self, **given: Any) -> None:
        self.made.append(given)

    def authenticate(self) -> dict[str, str]:
        assert threading.current_thread() is not threading.main_thread()
        if self.holds is not None:
            self.holds.wait(5)
        if self.raises is not None:
            raise self.raises
        return {"Authorization": "Bearer x", "X-Databricks-Azure-Workspace-Resource-Id": "/subscriptions/1"}


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> type[Config]:
    made = type("Stub", (Config,), {"made": []})
    monkeypatch.setattr("databricks.sdk.core.Config", made)
    return made


async def test_all_headers_of_the_sdk_are_sent(stub: type[Config]) -> None:
    signature = await Sdk("dbx", "https://h", "p").sign(False)
    assert set(signature.headers) == {"Authorization", "X-Databricks-Azure-Workspace-Resource-Id"}
    assert {"host": "https://h", "profile": "p"}.items() <= stub.made[0].items()


async def test_a_network_failure_of_the_sdk_may_pass(stub: type[Config]) -> None:
    from requests.exceptions import ConnectTimeout

    stub.raises = ConnectTimeout("https://login.example.org is slow")
    with pytest.raises(ProxyError, match="ConnectTimeout") as caught:
        await Sdk("dbx", "https://h").sign(False)
    assert (caught.value.kind, caught.value.code) == ("upstream", "upstream_auth")
    assert "login" not in str(caught.value)


async def test_a_sign_in_that_waits_for_a_person_holds_nothing_up(
    stub: type[Config], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databricks_tokens, "SDK_S", 0.1)
    stub.holds = threading.Event()
    sdk = Sdk("dbx", "https://h")
    before = threading.active_count()
    for _ in range(3):
        with pytest.raises(ProxyError, match="did not sign in within") as caught:
            await sdk.sign(False)
        assert caught.value.http_status == 504
    assert threading.active_count() == before + 1
    stub.holds.set()
    await asyncio.sleep(0.05)
    assert threading.active_count() == before
    assert (await sdk.sign(False)).headers["Authorization"] == "Bearer x"


def test_the_sdk_is_looked_for_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sdk_is_installed()
    monkeypatch.setitem(sys.modules, "databricks", None)
    monkeypatch.delitem(sys.modules, "databricks.sdk", raising=False)
    assert not sdk_is_installed()
