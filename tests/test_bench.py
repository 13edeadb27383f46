"""The benchmark runs and judges; its figures are not looked at here, the machine is shared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import Line, table

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("line", "met"),
    [
        (Line("a", "us", 160, 100, most_ratio=1.6), True),
        (Line("a", "us", 161, 100, most_ratio=1.6), False),
        (Line("a", "us", 161, None, most_ratio=1.6), False),
        (Line("a", "us", 20, most=20), True),
        (Line("a", "us", 20.1, most=20), False),
        (Line("a", "us", 1000, 1), True),
    ],
)
def test_a_target_is_met_or_missed(line: Line, met: bool) -> None:
    assert line.met is met
    assert ("MISSED" in line.row()) is not met


def test_every_target_of_the_project_is_in_the_table() -> None:
    names = ["passed request", "passed stream chunk", "translated request", "translated delta"]
    costs = {(name, server): 10.0 for name in names for server in ("relay", "dragoman")}
    targets = {line.name: line.target for line in table(costs, [0.4], (60, 70))}
    assert targets == {
        "passed request": "<= 1.6 x",
        "passed stream chunk": "<= 1.3 x",
        "translated request": "",
        "translated delta": "<= 20 us",
        "start": "<= 1500 ms",
        "idle memory": "<= 90 MB",
    }


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="CPU time is read from /proc")
def test_it_runs() -> None:
    argv = [sys.executable, "-m", "bench", "--seconds", "0.2", "--rounds", "1", "--connections", "2"]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode in (0, 1), ran.stderr
    assert "passed stream chunk" in ran.stdout, ran.stderr
