"""The benchmark runs and judges; its figures are not looked at here, the machine is shared."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import page
from bench.load import at
from bench.report import Line, markdown, targets
from bench.servers import CONTENDERS

ROOT = Path(__file__).parents[1]
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="CPU time is read from /proc")


@pytest.mark.parametrize(
    ("line", "met"),
    [
        (Line("a", "us", 140, 100, most_ratio=1.4), True),
        (Line("a", "us", 141, 100, most_ratio=1.4), False),
        (Line("a", "us", 141, None, most_ratio=1.4), False),
        (Line("a", "us", 15, most=15), True),
        (Line("a", "us", 15.1, most=15), False),
        (Line("a", "x", 1.8, least=1.8), True),
        (Line("a", "x", 1.7, least=1.8), False),
        (Line("a", "us", 1000, 1), True),
    ],
)
def test_a_target_is_met_or_missed(line: Line, met: bool) -> None:
    assert line.met is met
    assert ("MISSED" in targets([line])) is not met


def test_a_table_has_one_width_for_each_column() -> None:
    lines = markdown(["server", "p50"], [["a", "1.25"], ["a long name", "10"]]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[-1] == "| a long name |   10 |"


@pytest.mark.parametrize(("share", "value"), [(0.5, 50.0), (0.99, 98.01)])
def test_percentiles(share: float, value: float) -> None:
    assert at([place / 1000 for place in range(100)], share) == pytest.approx(value, abs=1)
    assert at([], share) == 0
    assert at([0.25], share) == 250


def test_figures_replace_those_of_the_run_before(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"# Speed\n\n{page.BEGIN}\nold\n{page.END}\n\nMethod.\n")
    page.write(path, "new")
    assert path.read_text() == f"# Speed\n\n{page.BEGIN}\nnew\n{page.END}\n\nMethod.\n"


def test_what_is_compared_is_what_the_page_says() -> None:
    text = (ROOT / "docs" / "performance.md").read_text()
    assert all(f"| {name} " in text for name in ("direct", *CONTENDERS))
    assert page.BEGIN in text
    assert page.END in text


@LINUX
def test_it_runs() -> None:
    options = ["--quick", "--seconds", "0.2", "--rounds", "1", "--streams", "5"]
    ran = _run("bench", *options)
    assert ran.returncode in (0, 1), ran.stderr
    assert "| passed stream chunk, CPU " in ran.stdout, ran.stderr


@LINUX
def test_the_guard_runs() -> None:
    ran = _run("bench.guard", "--seconds", "0.2", "--rounds", "1")
    assert ran.returncode in (0, 1), ran.stderr
    assert "| translated request " in ran.stdout, ran.stderr


def _run(module: str, *options: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", module, *options]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=110)
