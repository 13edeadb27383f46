"""The Codex CLI of this machine, for every test that runs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.contract.codex_cli import find_codex


@pytest.fixture
def codex_binary() -> Path:
    found = find_codex()
    if found is None and os.environ.get("DRAGOMAN_REQUIRE_CODEX") == "1":
        pytest.fail("DRAGOMAN_REQUIRE_CODEX=1, but there is no Codex CLI")
    if found is None:
        pytest.skip("no Codex CLI here: make codex")
    return found
