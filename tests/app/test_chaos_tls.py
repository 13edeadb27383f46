"""Backends that speak TLS, rightly and wrongly, behind a real gateway process that trusts one authority."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.app.test_chaos import BODIES, told
from tests.backends.chaos import FAULTS, ChaosBackend
from tests.backends.gateway import Gateway, config_text
from tests.backends.raw import RawBackend
from tests.backends.tls import Authority, new_authority, stranger

Contexts = Callable[[Authority], ssl.SSLContext]
WRONG: dict[str, Contexts] = {
    "stranger": lambda _: stranger("localhost"),
    "other-name": lambda authority: authority.context("elsewhere.example"),
    "expired": lambda authority: authority.context("localhost", expired=True),
}
LATE_S = 3.0


class Hello(RawBackend):
    """Takes a client's TLS hello and answers in no TLS: by these bytes, or by a reset."""

    def __init__(self, answer: bytes | None) -> None:
        super().__init__()
        self._answer = answer
        self.origin = f"https://localhost:{self.port}"

    def answer(self, connection: socket.socket) -> None:
        connection.recv(65536)
        if self._answer is None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            connection.sendall(self._answer)


HELLOS = {
    "handshake-reset": None,
    "handshake-cut": b"\x16\x03\x03\x00\x7a\x02",
    "no-tls": b"HTTP/1.1 400 No\r\n\r\n",
}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("tls")
    authority = new_authority(folder)
    with contextlib.ExitStack() as stack:
        right = {"right": authority.context("localhost")}
        contexts = right | {name: make(authority) for name, make in WRONG.items()}
        origins = {
            name: stack.enter_context(ChaosBackend(context)).origin for name, context in contexts.items()
        }
        origins |= {name: stack.enter_context(Hello(answer)).origin for name, answer in HELLOS.items()}
        providers = [
            {"name": name, "kind": "openai", "base_url": f"{origin}/v1", "wire": "chat", "models": ["well"]}
            for name, origin in origins.items()
        ]
        limits = {"retry_budget_s": 0, "idle_timeout_s": 1, "keepalive_s": 30, "connect_timeout_s": 2}
        config = config_text(providers, server=limits)
        env = {"SSL_CERT_FILE": str(authority.file)}
        yield stack.enter_context(Gateway(folder, config, env=env))


def outcome(gateway: Gateway, model: str, path: str, stream: bool) -> Any:
    began = time.monotonic()
    with gateway.client() as client:
        reply = client.post(path, json={**BODIES[path], "model": model, "stream": stream})
    assert time.monotonic() - began < LATE_S
    return told(reply)[0], reply


CUTS = [
    "well",
    "cut-in-a-frame",
    "end-in-a-frame",
    "reset-after-head",
    "stall-in-a-frame",
    "http-1-0",
    "drip",
]
"""Faults that TLS tells in another way: what is cut has no `close_notify`."""


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("name", CUTS)
def test_a_fault_within_tls_ends_as_it_does_without(
    gateway: Gateway, name: str, path: str, stream: bool
) -> None:
    fault = FAULTS[name]
    found, reply = outcome(gateway, f"right/{name}", path, stream)
    assert found == (fault.streamed if stream else fault.whole), reply.text


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("name", [*WRONG, *HELLOS])
def test_a_wrong_certificate_or_handshake_is_a_503(
    gateway: Gateway, name: str, path: str, stream: bool
) -> None:
    found, reply = outcome(gateway, f"{name}/well", path, stream)
    assert found == 503, reply.text
    message = reply.json()["error"]["message"]
    assert ("certificate" in message) is (name in WRONG)
    assert "localhost" not in message
    assert name in message


def test_nothing_of_it_is_a_fault_of_ours(gateway: Gateway) -> None:
    async def all_of_them() -> None:
        ways = [(f"{name}/well", "/v1/responses") for name in (*WRONG, *HELLOS)]
        await asyncio.gather(*(asyncio.to_thread(outcome, gateway, *way, True) for way in ways))

    asyncio.run(all_of_them())
    log = gateway.log()
    assert '"event":"fault"' not in log
    assert '"event":"library"' not in log
    assert "Traceback" not in log
