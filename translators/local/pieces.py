"""What a text parser makes of a local model's output, in the order of the output."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias


class Thought(NamedTuple):
    text: str


class Text(NamedTuple):
    text: str


class Call(NamedTuple):
    """A call begins. `id` is what the format writes (Kimi, Mistral), else None."""

    name: str
    id: str | None = None


class Arguments(NamedTuple):
    """The JSON text of an object."""

    text: str


class CallEnd(NamedTuple):
    pass


Piece: TypeAlias = Thought | Text | Call | Arguments | CallEnd


class Found(NamedTuple):
    """A whole call; `arguments` is the JSON text of an object."""

    name: str
    arguments: str
    id: str | None = None

    def pieces(self) -> list[Piece]:
        return [Call(self.name, self.id), Arguments(self.arguments), CallEnd()]


class TextParser(Protocol):
    """Whatever the cuts of the text that is fed, the pieces add up to the same.

    A call is given out when it is whole, with its arguments in one piece: only then it is known
    that the markup is not broken, and one that the token limit has cut is never taken for whole.
    """

    dropped: str
    """What is no part of the answer: the markup of the call that the limit has cut, noise between calls, a
    message to a tool that nobody offered."""

    @property
    def thinking(self) -> bool:
        """Whether the text that comes next is a thought, as far as is known."""

    def feed(self, text: str) -> list[Piece]: ...

    def close(self, cut: bool) -> list[Piece]:
        """The rest. `cut`: the output was ended by the token limit, not by the model."""
