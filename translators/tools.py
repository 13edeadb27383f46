"""Tools the backend does not know, said with tools it does know, and back.

(signatures; to be written)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .dialect import Loss
from .ir import Call, Event, ToolKind
from .profile import Profile


@dataclass(frozen=True, slots=True)
class Original:
    """What a lowered name stands for."""

    kind: ToolKind | str
    name: str
    namespace: str | None = None


@dataclass(slots=True)
class Lowered:
    call: Call
    names: Mapping[str, Original]
    losses: list[Loss] = field(default_factory=list)
    repairs: int = 0


def lower_tools(call: Call, profile: Profile) -> Lowered:
    raise NotImplementedError


class RestoreTools:
    def __init__(self, names: Mapping[str, Original]) -> None: ...
    def feed(self, event: Event) -> Iterable[Event]:
        raise NotImplementedError
