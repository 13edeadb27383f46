"""Why a model's process does not do what it was asked; crosses the socket as an `error` frame."""

from __future__ import annotations

from dataclasses import dataclass

from translators.errors import Kind


@dataclass(slots=True, eq=False)
class Refused(Exception):
    """A request that cannot be answered, in words for the client; the process goes on."""

    kind: Kind
    message: str
    param: str | None = None

    def __str__(self) -> str:
        return self.message


def too_long(limit: int, tokens: int, what: str) -> Refused:
    """The 400 of an input over the context; the words are the ones that clients look for."""
    return Refused(
        "context_length",
        f"This model's maximum context length is {limit} tokens, but {what} has {tokens} tokens.",
    )


def first_line(error: BaseException) -> str:
    """The engine's errors go on with a picture of the grammar or a stack of file names."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
