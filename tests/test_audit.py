"""`make audit`: what is said of vulnerabilities, and of a service that cannot be asked."""

from __future__ import annotations

import stat
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import orjson
import pytest

SCRIPT = Path(__file__).parents[1] / "scripts/audit.py"


@pytest.fixture(scope="module")
def audit() -> Any:
    spec = spec_from_file_location("audit", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GOOD = {"name": "a", "version": "1", "vulns": []}
BAD = {
    "name": "b",
    "version": "2",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"]}, {"id": "X-2", "fix_versions": []}],
}
UNKNOWN = {"name": "c", "version": "3", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("told", "required", "status", "said"),
    [
        ([GOOD], False, 0, "1 packages looked up, 0 unknown to the service, 0 vulnerabilities"),
        ([GOOD, GOOD, UNKNOWN], True, 0, "1 unknown"),
        ([GOOD, BAD], False, 1, "b 2: PYSEC-1, mended in 3"),
        ([GOOD, BAD], False, 1, "b 2: X-2, mended in no release"),
        ([UNKNOWN, UNKNOWN], False, 0, "not audited"),
        ([UNKNOWN, UNKNOWN, GOOD], True, 2, "not audited"),
        ([], True, 2, "not audited"),
        (None, False, 0, "not audited"),
        (None, True, 2, "not audited"),
    ],
)
def test_the_verdict(audit: Any, told: Any, required: bool, status: int, said: str) -> None:
    found, lines = audit.verdict(told, required)
    assert found == status
    assert said in "\n".join(lines)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (orjson.dumps({"dependencies": [GOOD]}).decode(), [GOOD]),
        ("Traceback: no connection", None),
        ("", None),
    ],
)
def test_what_pip_audit_says_is_read(audit: Any, tmp_path: Path, output: str, expected: Any) -> None:
    command = tmp_path / "pip-audit"
    command.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\nexit 1\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    assert audit.audit(str(command), "a==1\n") == expected
    assert audit.audit(str(tmp_path / "none"), "a==1\n") is None


def test_what_is_installed_is_asked_for(audit: Any) -> None:
    names = {line.partition("==")[0].lower() for line in audit.installed().splitlines()}
    assert "aiohttp" in names
    assert "dragoman" not in names
