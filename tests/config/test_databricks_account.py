"""Which workspace, and what to sign with: configuration, environment, profile file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from config.databricks_account import Account, find_account, home_folder, read_profile
from config.schema import ProviderConfig

A, B = "https://a.cloud.databricks.com", "https://b.cloud.databricks.com"
FILE = f"""
[DEFAULT]
host = {A}/
token = dapi-default

[machine]
host = {B}
client_id = id-b
client_secret = secret-b%

[login]
host = {B}
auth_type = databricks-cli

[hostonly]
host = {B}

[azure]
host = {B}
azure_tenant_id = t
token = dapi-azure
auth_type = azure-cli

[old]
host = {B}
token = dapi-old
client_id = id-b
client_secret = secret-b
auth_type = oauth-m2m

[nohost]
token = dapi-nohost
"""
ENV_PAT = {"DATABRICKS_HOST": A, "DATABRICKS_TOKEN": "dapi-env"}
ENV_M2M = {"DATABRICKS_HOST": A, "DATABRICKS_CLIENT_ID": "id-e", "DATABRICKS_CLIENT_SECRET": "secret-e"}
PAIR = {"client_id": "id", "client_secret": "secret"}

FOUND: list[tuple[str, dict[str, Any], dict[str, str], Account]] = [
    # what the configuration says is all there is
    ("key", {"base_url": A, "api_key": "k"}, ENV_M2M, Account(A, "pat", "k")),
    ("pair", {"base_url": B, **PAIR}, ENV_PAT, Account(B, "oauth-m2m", "", "id", "secret")),
    (
        "pair said",
        {"base_url": B, **PAIR, "auth": "oauth-m2m"},
        {},
        Account(B, "oauth-m2m", "", "id", "secret"),
    ),
    ("key, host there", {"api_key": "k", "auth": "pat"}, ENV_PAT, Account(A, "pat", "k")),
    # nothing is said: what is found serves its own host
    ("env pat", {"base_url": A}, ENV_PAT, Account(A, "pat", "dapi-env")),
    ("env m2m", {"base_url": A}, ENV_M2M, Account(A, "oauth-m2m", "", "id-e", "secret-e")),
    ("env other host", {"base_url": B}, ENV_PAT, Account(B)),
    ("env no host", {"base_url": B}, {"DATABRICKS_TOKEN": "dapi-env"}, Account(B)),
    ("env azure", {"base_url": A}, {"DATABRICKS_HOST": A, "ARM_CLIENT_ID": "x"}, Account(A, "sdk")),
    (
        "env type wins",
        {"base_url": A},
        {**ENV_PAT, "DATABRICKS_AUTH_TYPE": "azure-cli"},
        Account(A, "sdk"),
    ),
    (
        "env pat before azure",
        {"base_url": A},
        {**ENV_PAT, "ARM_CLIENT_ID": "x"},
        Account(A, "pat", "dapi-env"),
    ),
    (
        "other names",
        {"base_url": A},
        {"DATABRICKS_API_BASE": A + "/serving-endpoints", "DATABRICKS_API_KEY": "k "},
        Account(A, "pat", "k"),
    ),
    ("default profile", {"base_url": A}, {}, Account(A, "pat", "dapi-default", profile="DEFAULT")),
    ("default elsewhere", {"base_url": B}, {}, Account(B)),
    ("broken env host", {"base_url": B}, {**ENV_PAT, "DATABRICKS_HOST": "ftp://x"}, Account(B)),
    (
        "profile by variable",
        {"base_url": B},
        {"DATABRICKS_CONFIG_PROFILE": "login"},
        Account(B, "sdk", profile="login"),
    ),
    # a way is named: credentials that tell no host are meant for this one
    ("auth pat", {"base_url": B, "auth": "pat"}, {"DATABRICKS_TOKEN": "t"}, Account(B, "pat", "t")),
    (
        "auth pat, the variables another's",
        {"base_url": A, "auth": "pat"},
        {**ENV_PAT, "DATABRICKS_HOST": B},
        Account(A, "pat", "dapi-default", profile="DEFAULT"),
    ),
    ("auth pat, both another's", {"base_url": "https://c", "auth": "pat"}, {**ENV_PAT}, None),
    ("auth m2m", {"auth": "oauth-m2m"}, ENV_M2M, Account(A, "oauth-m2m", "", "id-e", "secret-e")),
    ("auth pat, no host", {"auth": "pat"}, {}, Account(A, "pat", "dapi-default", profile="DEFAULT")),
    ("auth sdk", {"base_url": B, "auth": "sdk"}, {}, Account(B, "sdk")),
    ("auth sdk, profile", {"auth": "sdk"}, {}, Account(A, "sdk", "dapi-default", profile="DEFAULT")),
    ("never another's", {"auth": "pat"}, {"DATABRICKS_HOST": B}, None),
    # a profile is named: it alone speaks, whatever stands in the environment
    (
        "profile m2m",
        {"config_profile": "machine"},
        ENV_PAT,
        Account(B, "oauth-m2m", "", "id-b", "secret-b%", "machine"),
    ),
    ("profile login", {"config_profile": "login"}, ENV_PAT, Account(B, "sdk", profile="login")),
    ("profile host only", {"config_profile": "hostonly"}, {}, Account(B, "sdk", profile="hostonly")),
    ("profile azure", {"config_profile": "azure"}, {}, Account(B, "sdk", profile="azure")),
    (
        "profile type wins",
        {"config_profile": "old"},
        {},
        Account(B, "oauth-m2m", "", "id-b", "secret-b", "old"),
    ),
    (
        "profile at another address",
        {"config_profile": "nohost", "base_url": A},
        {},
        Account(A, "pat", "dapi-nohost", profile="nohost"),
    ),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".databrickscfg").write_text(FILE)
    return tmp_path


def provider(**given: Any) -> ProviderConfig:
    return ProviderConfig.model_validate({"name": "dbx", "kind": "databricks", **given})


@pytest.mark.parametrize(
    ("given", "environ", "account"), [each[1:] for each in FOUND], ids=[each[0] for each in FOUND]
)
def test_an_account_is_found(
    given: dict[str, Any], environ: dict[str, str], account: Account | None, home: Path
) -> None:
    if account is None:
        with pytest.raises(ValueError, match='auth = "pat" finds no token'):
            find_account(provider(**given), environ, home)
    else:
        assert find_account(provider(**given), environ, home) == account


MISSING = [
    ({"auth": "sdk"}, {"DATABRICKS_CONFIG_PROFILE": "nohost"}, "no workspace is known"),
    ({"auth": "pat"}, {"DATABRICKS_CONFIG_PROFILE": "absent"}, "no workspace is known"),
    ({"config_profile": "absent"}, {}, "has no profile 'absent'"),
    ({"auth": "oauth-m2m", "base_url": A}, {}, "finds no service principal"),
    ({"auth": "oauth-m2m", "config_profile": "nohost", "base_url": A}, {}, "finds no service principal"),
    ({"auth": "pat", "config_profile": "login"}, {}, "finds no token"),
]


@pytest.mark.parametrize(("given", "environ", "words"), MISSING)
def test_what_is_missing_is_said(
    given: dict[str, Any], environ: dict[str, str], words: str, home: Path
) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        find_account(provider(**given), environ, home)
    assert "dapi" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"no section", b"[a]\n[a]\n", b"\xff"])
def test_a_file_that_is_none_holds_nothing(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    environ = {"DATABRICKS_CONFIG_FILE": "~/file"}
    assert find_account(provider(base_url=A), environ, tmp_path) == Account(A)


def test_the_file_may_be_elsewhere_and_name_its_default(tmp_path: Path) -> None:
    (tmp_path / "there").write_text(
        f"[__settings__]\ndefault_profile = mine\n[mine]\nhost = {A}\ntoken = t\n"
    )
    environ = {"DATABRICKS_CONFIG_FILE": str(tmp_path / "there")}
    assert find_account(provider(base_url=A), environ, tmp_path) == Account(A, "pat", "t", profile="mine")
    assert read_profile(environ, tmp_path, "mine")["token"] == "t"
    assert read_profile(environ, tmp_path, "other") == {}


def test_secrets_do_not_show() -> None:
    shown = repr(Account(A, "pat", "dapi-1", "id", "secret-1")) + repr(provider(base_url=A, **PAIR))
    assert "dapi" not in shown
    assert "'secret'" not in shown


def test_a_user_without_a_home_has_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", nowhere)
    assert find_account(provider(base_url=A), {}, home_folder()) == Account(A)
