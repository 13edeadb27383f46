"""schemathesis' own command against a gateway process: examples, every boundary, sequences of requests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.backends.scripted import ScriptedBackend
from tests.conftest import StartGateway

ROOT = Path(__file__).parents[3]
COMMAND = Path(sys.executable).with_name("schemathesis")
EXAMPLES = os.environ.get("DRAGOMAN_FUZZ_EXAMPLES", "4")
ARGUMENTS = [
    *("--exclude-path", "/events"),  # ends when its client leaves
    *("--exclude-operation-id-regex", "Bare$"),  # the same ones without /v1
    *("--phases", "examples,coverage,fuzzing,stateful", "--max-examples", EXAMPLES),
    # Ranges, and what is asked together, are for the backend to judge: not everything that fits is answered.
    *("--exclude-checks", "positive_data_acceptance"),
    *("--suppress-health-check", "all", "--generation-database", "none", "--no-color"),
]


def test_it_finds_nothing(start_gateway: StartGateway, scripted: ScriptedBackend, tmp_path: Path) -> None:
    url = f"{scripted.origin}/v1"
    providers = [
        {"name": wire, "kind": "openai", "base_url": url, "wire": wire, "models": ["m"]}
        for wire in ("chat", "responses")
    ]
    gateway = start_gateway(providers)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "SCHEMATHESIS_HOOKS": "tests.app.openapi.hooks",
    }
    argv = [str(COMMAND), "run", f"{gateway.base}/openapi.json", *ARGUMENTS]
    ran = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert "passed" in ran.stdout
    assert '"level":"error"' not in gateway.log()
