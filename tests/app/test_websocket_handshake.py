"""Who may open a WebSocket, and what the others are told, as HTTP."""

from __future__ import annotations

import asyncio
import http.client
import socket
from typing import Any

import orjson
import pytest
from websockets.exceptions import InvalidStatus

from config.schema import Config
from tests.app.conftest import Serve, Served, provider
from tests.app.sockets import Talk, handshake, logged, rest_of
from tests.backends.scripted import ScriptedBackend

KEYS = {"api_keys": ["right"]}


def refused(served: Served, **options: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, error and headers of the answer to a handshake."""
    with pytest.raises(InvalidStatus) as caught, Talk(served, **options):
        pass
    reply = caught.value.response
    assert reply.body is not None
    return reply.status_code, orjson.loads(reply.body)["error"], dict(reply.headers.raw_items())


def answered(served: Served, request: bytes) -> http.client.HTTPResponse:
    """What HTTP comes back for these bytes."""
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(request)
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        reply.read()
        return reply


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer wrong"}, {"x-api-key": "wrong"}])
def test_a_wrong_key_is_401(serve: Serve, scripted: ScriptedBackend, headers: dict[str, str]) -> None:
    served = serve(providers=[provider(scripted)], server=KEYS)
    status, error, told = refused(served, additional_headers={**headers, "x-request-id": "mine"})
    assert (status, error["code"], told["x-request-id"]) == (401, "invalid_api_key", "mine")
    assert told["content-type"] == "application/json"
    (line,) = logged(served)
    assert (line["route"], line["status"], line["request_id"]) == ("WEBSOCKET /v1/responses", 401, "mine")


@pytest.mark.parametrize("headers", [{"authorization": "Bearer right"}, {"x-api-key": "right"}])
def test_the_right_key_is_let_in(serve: Serve, scripted: ScriptedBackend, headers: dict[str, str]) -> None:
    served = serve(providers=[provider(scripted)], server=KEYS)
    with Talk(served, additional_headers=headers) as talk:
        talk.answer(input="hi")


def test_a_key_that_was_taken_away_is_refused_from_then_on(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(fresh=True, providers=[provider(scripted)], server=KEYS)
    with Talk(served, additional_headers={"x-api-key": "right"}) as talk:
        talk.answer(input="hi")
        new = Config.model_validate({"providers": [provider(scripted)], "server": {"api_keys": ["new"]}})
        reconfigure(served, new)
        assert talk.error(input="hi")["status"] == 401


def reconfigure(served: Served, config: Config) -> None:
    loop = next(iter(served._server.servers)).get_loop()
    asyncio.run_coroutine_threadsafe(served.gateway.reconfigure(config), loop).result(5)


@pytest.mark.parametrize(
    ("origin", "allowed", "status"),
    [
        ("http://evil.example", [], 403),
        ("null", [], 403),
        ("http://[", [], 403),
        ("http://evil.example", ["https://evil.example"], 403),
        ("https://chat.example", ["https://chat.example"], 101),
        ("https://any.example", ["*"], 101),
        (None, [], 101),
        ("same", [], 101),
    ],
)
def test_pages_of_other_origins_are_refused(
    serve: Serve, scripted: ScriptedBackend, origin: str | None, allowed: list[str], status: int
) -> None:
    """A browser asks nobody whether a page may open one; without keys it could use any local gateway."""
    served = serve(providers=[provider(scripted)], server={"cors_origins": allowed})
    origin = served.base if origin == "same" else origin
    headers = {} if origin is None else {"origin": origin}
    if status == 101:
        with Talk(served, additional_headers=headers) as talk:
            talk.answer(input="hi")
    else:
        got, error, _ = refused(served, additional_headers=headers)
        assert (got, error["code"]) == (status, "origin_not_allowed")


@pytest.mark.parametrize("path", ["/v1/responses", "/responses", "/responses?api-version=1"])
def test_it_can_be_turned_off(serve: Serve, scripted: ScriptedBackend, path: str) -> None:
    served = serve(providers=[provider(scripted)], server={"websocket": False})
    status, error, told = refused(served, path=path)
    assert (status, error["code"]) == (426, "websocket_not_supported")
    assert told["connection"] == "close"


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/", "/v1/responses/resp_1"])
def test_other_paths_stay_what_they_are(serve: Serve, scripted: ScriptedBackend, path: str) -> None:
    served = serve(providers=[provider(scripted)])
    reply = answered(served, handshake(path=path))
    assert reply.status in (200, 404, 405)


@pytest.mark.parametrize(
    "change",
    [
        (b"sec-websocket-version: 13", b"sec-websocket-version: 8"),
        (b"sec-websocket-version: 13\r\n", b""),
        (b"sec-websocket-key", b"x-key"),
        (b"sec-websocket-key: ", b"sec-websocket-key: longer"),
        (b"upgrade: websocket", b"upgrade: web"),
        (b"GET ", b"POST "),
    ],
)
def test_what_is_no_handshake_is_an_ordinary_request(
    serve: Serve, scripted: ScriptedBackend, change: tuple[bytes, bytes]
) -> None:
    served = serve(providers=[provider(scripted)])
    reply = answered(served, handshake().replace(*change))
    assert reply.status in (400, 405)
    assert reply.headers["content-type"] == "application/json"


def test_a_key_that_is_no_base64_is_400(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    head, _, rest = handshake().partition(b"sec-websocket-key: ")
    reply = answered(served, head + b"sec-websocket-key: " + b"!" * 24 + rest[24:])
    assert reply.status == 400


def test_it_does_not_overtake_an_answer(serve: Serve, scripted: ScriptedBackend) -> None:
    """Sent behind a request that is being answered, it would write into that answer."""
    served = serve(providers=[provider(scripted)])
    before = (
        b'POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: 27\r\n\r\n{"model":"p/m","input":"x"}'
    )
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(before + handshake())
        read = rest_of(connection)
    assert read.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 426" in read


def test_long_headers_and_an_early_answer(serve: Serve, scripted: ScriptedBackend) -> None:
    """Codex sends its turn's metadata in one header, which grows with the workspace."""
    served = serve(providers=[provider(scripted)])
    headers = {"x-codex-turn-metadata": "x" * 20_000, "session-id": "s" * 9000}
    with Talk(served, additional_headers=headers) as talk:
        talk.answer(input="hi")


def test_a_second_request_over_the_same_connection_may_open_one(
    serve: Serve, scripted: ScriptedBackend
) -> None:
    served = serve(providers=[provider(scripted)])
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b"200 OK" in connection.recv(4096)
        connection.sendall(handshake())
        assert connection.recv(4096).startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize("offered", ["deflate", None])
def test_compression_is_the_clients_choice(
    serve: Serve, scripted: ScriptedBackend, offered: str | None
) -> None:
    served = serve(providers=[provider(scripted)])
    with Talk(served, compression=offered) as talk:
        assert bool(talk.socket.protocol.extensions) == (offered is not None)
        talk.answer(input="hi" * 1000)


@pytest.mark.parametrize("value", ["perhaps", 3, []])
def test_the_setting_is_a_truth_value(value: Any) -> None:
    with pytest.raises(ValueError, match="websocket"):
        Config.model_validate({"server": {"websocket": value}})
