"""Known vulnerabilities of what is installed, by pip-audit.

    python scripts/audit.py PIP_AUDIT [--require]

Exit 0: none is known, or the service that knows cannot be reached, which is said. 1: there are some, listed.
2: with `--require`, where nothing could be looked up. A mirror that has no such service answers too: then
every package is "not found", which pip-audit counts as success.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TIMEOUT_S = 15
LIMIT_S = 600
MOST_SKIPPED = 0.5
"""Of packages that the service does not know; more, and it is no such service."""
_NAME = re.compile(r"[A-Za-z0-9_.-]+==\S+")


def installed() -> str:
    """As a requirements file, without what is no release."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "freeze", "--exclude-editable"],
        capture_output=True,
        text=True,
        check=True,
    )
    return "\n".join(line for line in done.stdout.splitlines() if _NAME.fullmatch(line)) + "\n"


def audit(command: str, requirements: str) -> list[dict[str, Any]] | None:
    """What pip-audit says of each package; None: it could not look."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requirements.txt"
        path.write_text(requirements)
        given = ["--requirement", str(path), "--no-deps", "--disable-pip", "--progress-spinner", "off"]
        given += ["--format", "json", "--timeout", str(TIMEOUT_S)]
        try:
            done = subprocess.run([command, *given], capture_output=True, text=True, timeout=LIMIT_S)
            told: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
        except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError, KeyError):
            return None
    return told


def verdict(told: list[dict[str, Any]] | None, required: bool) -> tuple[int, list[str]]:
    """The exit status and what to say."""
    found = [each for each in told or () if "skip_reason" not in each]
    skipped = len(told or ()) - len(found)
    if told is None or not told or skipped > MOST_SKIPPED * len(told):
        return 2 * required, [
            "not audited: the service that knows of vulnerabilities cannot be reached from here"
        ]
    lines = [
        f"{each['name']} {each['version']}: {fault['id']}, mended in {_releases(fault)}"
        for each in found
        for fault in each["vulns"]
    ]
    counted = (
        f"{len(found)} packages looked up, {skipped} unknown to the service, {len(lines)} vulnerabilities"
    )
    return (1 if lines else 0), [*lines, counted]


def _releases(fault: dict[str, Any]) -> str:
    return ", ".join(fault["fix_versions"]) or "no release"


if __name__ == "__main__":
    status, lines = verdict(audit(sys.argv[1], installed()), "--require" in sys.argv)
    print("\n".join(lines))
    sys.exit(status)
