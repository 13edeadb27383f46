"""What the watcher of a Chat stream knows of one choice; n > 1 streams several."""

from __future__ import annotations

from ..ir import Json
from ..profile import ToolDelta
from ..toolcalls import Piece, ToolCallAssembler


class Choice:
    """`pieces`: what its calls have given out and no frame has told yet."""

    def __init__(self, rules: ToolDelta) -> None:
        self.calls = ToolCallAssembler(rules)
        self.pieces: list[Piece] = []
        self.finished = self.begun = self.roled = self.in_messages = False

    def in_call(self) -> bool:
        """Whether a frame that got lost may have held a piece of a call's arguments."""
        return bool(self.calls.calls) and not self.finished

    def has_role_again(self, delta: Json) -> bool:
        """Take a role out that has been told: accumulators of clients join it to the first."""
        if not self.roled:
            self.roled = "role" in delta
            return False
        return delta.pop("role", None) is not None
