"""What CI must not pass over: programs that tests are skipped without."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "postgres.sh"


def test_nothing_is_installed_where_postgresql_is(tmp_path: Path) -> None:
    for name in ("initdb", "apt-get", "id"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {name} >>{tmp_path}/asked\n")
        program.chmod(0o755)
    assert subprocess.run(["/bin/sh", str(SCRIPT)], env={"PATH": str(tmp_path)}, check=False).returncode == 0
    assert not (tmp_path / "asked").exists()


def test_ci_fails_without_it() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert "sh scripts/postgres.sh || {" in text
    assert "DRAGOMAN_REQUIRE_POSTGRES=1 make test" in text
