"""A receiver of traces that never ends its answer, or sends more of it than anybody reads."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from app.telemetry import otel_sdk
from app.telemetry.otel import OpenTelemetry
from app.telemetry.telemetry import open_telemetry
from app.telemetry.trace import Trace
from config.schema import Telemetry

PIECE = b"x" * (1 << 16)
ENDLESS = {
    "a length": b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
    "chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n" % (1 << 40),
    "until it closes": b"HTTP/1.1 200 OK\r\n\r\n",
    "a redirect": b"HTTP/1.1 307 Elsewhere\r\nlocation: /v1/traces\r\ncontent-length: 99999999999\r\n\r\n",
    "a refusal": b"HTTP/1.1 400 No\r\n\r\n",
}


class Flood:
    """Reads a request, and then sends `head` and what follows until nobody takes it any more."""

    def __init__(self, head: bytes, piece: bytes = PIECE, pause_s: float = 0) -> None:
        self._head, self._piece, self._pause_s = head, piece, pause_s
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.sent, self.connections = 0, 0
        self.dropped = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _run(self) -> None:
        try:
            while True:
                peer, _ = self._socket.accept()
                self.connections += 1
                threading.Thread(target=self._flood, args=(peer,), daemon=True).start()
        except OSError:
            pass

    def _flood(self, peer: socket.socket) -> None:
        with peer:
            peer.settimeout(20)
            try:
                peer.recv(1 << 20)
                peer.sendall(self._head)
                while self.sent < 1 << 30:
                    peer.sendall(self._piece)
                    self.sent += len(self._piece)
                    time.sleep(self._pause_s)
            except OSError:
                self.dropped.set()


@contextmanager
def flooding(head: bytes, piece: bytes = PIECE, pause_s: float = 0) -> Iterator[Flood]:
    flood = Flood(head, piece, pause_s)
    yield flood
    flood.close()


def opened(address: str, **environ: str) -> OpenTelemetry:
    found = open_telemetry(Telemetry(endpoint=address), {"OTEL_METRICS_EXPORTER": "none", **environ})
    assert isinstance(found, OpenTelemetry)
    return found


def note(telemetry: OpenTelemetry) -> None:
    trace = Trace(b"r1", "RUN it", target="p/m", status=200)
    telemetry.begin(trace, "run").end(trace)


@pytest.mark.parametrize("how", ENDLESS)
async def test_no_more_is_read_than_an_answer_holds(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "30")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with flooding(ENDLESS[how]) as flood:
        telemetry = opened(flood.address)
        note(telemetry)
        assert flood.dropped.wait(10)
        await telemetry.aclose()
    assert flood.sent < 64 << 20, "what the system's buffers hold"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10
    assert telemetry.trouble == (None if how != "a refusal" else "the receiver takes no traces")


async def test_an_answer_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes within the library's timeout, which is one for each read."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "30")
    monkeypatch.setattr(otel_sdk, "ANSWER_S", 0.2)
    with flooding(ENDLESS["a length"], b"x", 0.05) as flood:
        telemetry = opened(flood.address)
        note(telemetry)
        assert flood.dropped.wait(10)
        await telemetry.aclose()


def test_a_session_that_the_environment_names_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever signs requests does it with a session of their own."""
    given: list[object] = []

    def exporter(*_: object, session: object, **more: object) -> OTLPSpanExporter:
        given.append(session)
        return OTLPSpanExporter()

    monkeypatch.setattr(otel_sdk, "OTLPSpanExporter", exporter)
    for name in ("OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER", "NONE_OF_ITS"):
        opened("http://127.0.0.1:9", **{name: "signer"})._sdk.close()
    assert [session is None for session in given] == [True, False]
