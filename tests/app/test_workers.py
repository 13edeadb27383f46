"""The parent of several workers, with workers that are real processes and do what the test says.

`Workers` forks, which a test process with its threads must not do: each test is a script.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import pytest

SCRIPT = """
import os, signal, sys, time
from app.workers import Workers
{work}
def say(word):
    return lambda: print(word, flush=True)
sys.exit(Workers(2, work, say("ready"), say("stopping")).run())
"""


def start(work: str) -> subprocess.Popen[str]:
    script = SCRIPT.format(work=textwrap.dedent(work))
    return subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def steady() -> Iterator[subprocess.Popen[str]]:
    process = start(
        """
        def work(ready, parent, place):
            assert parent == os.getppid()
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
            ready()
            time.sleep(30)
        """
    )
    yield process
    process.kill()
    process.communicate()


def test_it_announces_itself_when_all_are_ready_and_stops_them(steady: subprocess.Popen[str]) -> None:
    assert steady.stdout is not None
    assert steady.stdout.readline() == "ready\n"
    steady.terminate()
    assert steady.wait(10) == 0
    assert steady.stdout.read() == "stopping\n"


@pytest.mark.parametrize("ending", ["raise ValueError('no good')", "sys.exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_worker_that_does_not_start_ends_it_all(ending: str) -> None:
    process = start(
        f"""
        def work(ready, parent, place):
            {ending}
        """
    )
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, "stopping\n")
    assert ("no good" in err) == ("ValueError" in ending)


def test_a_replacement_that_does_not_start_ends_it_all() -> None:
    process = start(
        """
        born = time.time()
        def work(ready, parent, place):
            if time.time() - born > 0.5:
                return
            ready()
            time.sleep(1)
        """
    )
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (1, "ready\nstopping\n")
    assert "died; starting another" in err


def test_a_stop_while_they_start() -> None:
    process = start(
        """
        def work(ready, parent, place):
            os.write(1, b"born\\n")
            time.sleep(30)
        """
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(0.2)
    process.terminate()
    process.communicate(timeout=20)
    assert (first, process.returncode) == ("born\n", 0)
