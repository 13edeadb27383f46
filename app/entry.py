"""Entry point of the console script: hears a stop from the first moment on.

The first process of a container has no default action for SIGTERM: while the rest is imported, which takes a
good part of a second, one would go unheard, and the container be waited for and killed.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn


def main() -> None:
    signal.signal(signal.SIGTERM, _end)
    from .cli.main import main as command_line

    command_line()


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    """What the signal does by default elsewhere; who serves has an end of its own."""
    raise SystemExit(128 + number)
