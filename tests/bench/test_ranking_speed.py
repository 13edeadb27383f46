"""The benchmark of the ranking runs; its figures are not looked at here, the machine is shared."""

from __future__ import annotations

import pytest

from . import ranking_speed


def test_it_measures_and_prints(capsys: pytest.CaptureFixture[str]) -> None:
    ranking_speed.main([120])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["us", "120"]
    assert len(lines) == 12
    assert all(float(line.split()[-1]) > 0 for line in lines[1:])
