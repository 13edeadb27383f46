"""A clock that a test sets, and look-ups of names that it answers."""

from __future__ import annotations

import socket
from typing import Any

import pytest


class Clock:
    """Seconds since the epoch, until a test moves them."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """Host name -> the addresses of each look-up in turn, the last of them again and again."""
    known: dict[str, list[list[str]]] = {}

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        answers = known.get(host)
        if answers is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [_info(address, port) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


def _info(address: str, port: int) -> Any:
    if ":" in address:
        return (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
