"""Workspaces that nothing is configured for: service principals, and profiles that only the SDK knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.cli.discover import discover

HOST = "https://dbc-1.cloud.databricks.com"
PAIR = {"DATABRICKS_CLIENT_ID": "id", "DATABRICKS_CLIENT_SECRET": "very-secret"}


def look(environ: dict[str, str], home: Path) -> Any:
    return discover(environ, {}, home, (), embedded=False)


def test_a_service_principal_in_the_environment(tmp_path: Path) -> None:
    found = look({"DATABRICKS_HOST": HOST, **PAIR}, tmp_path)
    (provider,) = found.config.providers
    assert (provider.base_url, provider.client_id, provider.api_key) == (HOST, "id", None)
    assert provider.client_secret.get_secret_value() == "very-secret"
    assert "very-secret" not in "\n".join(found.lines)


def test_a_token_comes_first(tmp_path: Path) -> None:
    (provider,) = look({"DATABRICKS_HOST": HOST, "DATABRICKS_TOKEN": "t", **PAIR}, tmp_path).config.providers
    assert (provider.api_key.get_secret_value(), provider.client_id) == ("t", None)


PROFILES = [
    ("client_id = id\nclient_secret = very-secret\n", True, True),
    ("client_id = id\nclient_secret = very-secret\n", False, True),
    ("auth_type = databricks-cli\n", True, True),
    ("auth_type = databricks-cli\n", False, False),
    ("auth_type = pat\n", True, False),
    ("client_id = id\n", True, False),
]


@pytest.mark.parametrize(("keys", "sdk", "used"), PROFILES)
def test_a_profile(keys: str, sdk: bool, used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.cli.discover.sdk_is_installed", lambda: sdk)
    (tmp_path / ".databrickscfg").write_text(f"[work]\nhost = {HOST}/\n{keys}")
    found = look({"DATABRICKS_CONFIG_PROFILE": "work"}, tmp_path)
    named = [(each.base_url, each.config_profile, each.client_secret) for each in found.config.providers]
    assert named == ([(HOST, "work", None)] if used else [])
    assert any(".[databricks]" in line for line in found.lines) is (not used and "databricks-cli" in keys)


@pytest.mark.parametrize("name", ["DATABRICKS_HOST", "DATABRICKS_API_BASE"])
def test_what_could_be_signed_with_is_told(name: str, tmp_path: Path) -> None:
    first = look({name: HOST}, tmp_path).lines[0]
    assert "DATABRICKS_CLIENT_SECRET" in first
    assert 'auth = "sdk"' in first
