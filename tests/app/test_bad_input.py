"""Bad requests over a real server: told as the client's fault, quickly, and the next one is served."""

from __future__ import annotations

import gzip
import http.client
import socket
import zlib
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.app.conftest import Serve, Served
from tests.app.test_routes import ASK, provider
from tests.backends.scripted import ScriptedBackend
from tests.laws import impossible
from tests.laws.everything import mutated
from tests.laws.impossible import CASES
from translators.ir import Shape

PATHS: dict[Shape, str] = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}
PLAIN = orjson.dumps(ASK["/chat/completions"])
LIMIT_S = 5
"""What any answer may take; the scripted backend answers at once."""
JSON = {"content-type": "application/json"}


class Line:
    """One kept-alive connection, opened anew only where the server closed it."""

    def __init__(self, served: Served) -> None:
        address = served.base.removeprefix("http://")
        self.connection = http.client.HTTPConnection(address, timeout=LIMIT_S)

    def ask(self, path: str, body: Any, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        self.connection.request("POST", path, body, {**JSON, **headers})
        reply = self.connection.getresponse()
        return reply.status, reply.headers, reply.read()


@pytest.fixture
def config(scripted: ScriptedBackend) -> dict[str, Any]:
    wires = [provider(scripted, name=wire, wire=wire, profile="openai") for wire in PATHS]
    return {"providers": wires, "server": {"max_body_bytes": 1 << 20}}


@pytest.fixture
def served(serve: Serve, config: dict[str, Any]) -> Served:
    return serve(**config)


@pytest.fixture
def line(served: Served) -> Iterator[Line]:
    line = Line(served)
    yield line
    line.connection.close()


@pytest.fixture
def forgetful(serve: Serve, config: dict[str, Any]) -> Iterator[Line]:
    """To a gateway that keeps nothing: there nobody can answer what needs an earlier response."""
    line = Line(serve(**config, store={"kind": "off"}))
    yield line
    line.connection.close()


def refused(status: int, headers: http.client.HTTPMessage, data: bytes) -> dict[str, Any]:
    """The error of an answer in OpenAI's form."""
    assert 400 <= status < 500, data
    assert headers["content-type"] == "application/json"
    error: dict[str, Any] = orjson.loads(data)["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    assert error["message"]
    return error


@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize("shape", PATHS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_any_body_is_answered(line: Line, shape: Shape, wire: str, data: st.DataObject) -> None:
    body = {**data.draw(mutated(shape)), "model": f"{wire}/m"}
    status, headers, said = line.ask(PATHS[shape], orjson.dumps(body))
    if status == 200:
        kind = "text/event-stream" if body.get("stream") is True else "application/json"
        assert headers["content-type"].startswith(kind)
    else:
        refused(status, headers, said)


@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.shape}: {case.name}")
def test_the_backend_is_not_asked_what_nobody_can_answer(
    forgetful: Line, scripted: ScriptedBackend, case: impossible.Impossible, wire: str
) -> None:
    body = orjson.dumps({**impossible.body(case), "model": f"{wire}/m"})
    if b'"temperature":null' in body:
        body = body.replace(b'"temperature":null', b'"temperature":NaN')
    elif wire == case.shape and impossible.passes(case):
        assert forgetful.ask(PATHS[case.shape], body)[0] == 200
        assert len(scripted.requests) == 1
        return
    error = refused(*forgetful.ask(PATHS[case.shape], body))
    assert error["code"] == "invalid_json" or error["param"] == case.param
    assert scripted.requests == []


BAD_BYTES: dict[str, tuple[bytes, dict[str, str]]] = {
    "nothing": (b"", {}),
    "half": (PLAIN[:-3], {}),
    "a list": (b"[1]", {}),
    "null": (b"null", {}),
    "a number": (b"1e400", {}),
    "not UTF-8": (b'{"model": "\xff\xfe"}', {}),
    "UTF-16": ('{"model": "m"}'.encode("utf-16"), {}),
    "a lone surrogate": (b'{"model": "\\ud800"}', {}),
    "NaN": (b'{"model": "chat/m", "temperature": NaN}', {}),
    "a huge number": (b'{"model": "chat/m", "seed": 1' + b"0" * 5000 + b"}", {}),
    "deep": (b'{"model": "chat/m", "input": ' + b"[" * 5000 + b"]" * 5000 + b"}", {}),
    "two objects": (PLAIN + PLAIN, {}),
    "a form": (b"model=m&input=hi", {"content-type": "application/x-www-form-urlencoded"}),
    "half a gzip": (gzip.compress(PLAIN)[:-9], {"content-encoding": "gzip"}),
    "half a zstd": (zstandard.ZstdCompressor().compress(PLAIN)[:-4], {"content-encoding": "zstd"}),
    "half a deflate": (zlib.compress(PLAIN)[:-5], {"content-encoding": "deflate"}),
    "no gzip": (PLAIN, {"content-encoding": "gzip"}),
    "a bomb": (gzip.compress(bytes(300 << 20), 9), {"content-encoding": "gzip"}),
    "brotli": (PLAIN, {"content-encoding": "br"}),
    "too much": (b'{"model": "' + b"x" * (2 << 20) + b'"}', {}),
    "many codings": (PLAIN, {"content-encoding": "gzip, gzip, gzip, gzip"}),
}


@pytest.mark.parametrize("path", PATHS.values())
@pytest.mark.parametrize("name", BAD_BYTES)
def test_bytes_that_are_no_request(line: Line, scripted: ScriptedBackend, name: str, path: str) -> None:
    body, headers = BAD_BYTES[name]
    refused(*line.ask(path, body, **headers))
    assert scripted.requests == []
    assert line.ask(PATHS["chat"], orjson.dumps({**orjson.loads(PLAIN), "model": "chat/m"}))[0] == 200


GOOD_BYTES: dict[str, tuple[Any, dict[str, str]]] = {
    "with a BOM": (b'\xef\xbb\xbf{"model":"chat/m","messages":[{"role":"user","content":"hi"}]}', {}),
    "a key twice": (b'{"model":"x","model":"chat/m","messages":[{"role":"user","content":"hi"}]}', {}),
    "in chunks": (iter([b'{"model":"chat/m","messages":', b'[{"role":"user","content":"hi"}]}']), {}),
    "as text": (
        b'{"model":"chat/m","messages":[{"role":"user","content":"hi"}]}',
        {"content-type": "text/plain"},
    ),
}


@pytest.mark.parametrize("name", GOOD_BYTES)
def test_bytes_that_are_one_in_an_odd_way(line: Line, name: str) -> None:
    body, headers = GOOD_BYTES[name]
    assert line.ask(PATHS["chat"] + "?api-version=1&x=%00", body, **headers)[0] == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", "/v1/responses"), ("PUT", "/v1/chat/completions"), ("DELETE", "/v1/responses/resp_1")),
        *(("POST", "/v1/nothing"), ("POST", "/"), ("POST", "/v1/chat/completions/x"), ("POST", "/v1/models")),
        *(("PATCH", "/v1/responses"), ("POST", "/%2e%2e/%00"), ("TRACE", "/v1/responses")),
    ],
)
def test_paths_and_methods_that_are_none(line: Line, method: str, path: str) -> None:
    line.connection.request(method, path, PLAIN, JSON)
    reply = line.connection.getresponse()
    refused(reply.status, reply.headers, reply.read())
    assert reply.status in (400, 404, 405)


@pytest.mark.parametrize(
    "head",
    [
        b"POST /v1/responses HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 200_000 + b"\r\ncontent-length: 0\r\n\r\n",
        b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/responses HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ],
    ids=["huge header", "negative length", "bad chunk", "nonsense", "TLS"],
)
def test_what_is_not_http_is_hung_up_on(served: Served, line: Line, head: bytes) -> None:
    host, port = served.base.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=LIMIT_S) as raw:
        try:
            raw.sendall(head)
            raw.shutdown(socket.SHUT_WR)
            said = raw.recv(1 << 16)
        except OSError:  # it has hung up before it was told everything
            said = b""
    assert said == b"" or said.startswith(b"HTTP/1.1 4")
    assert line.ask(PATHS["chat"], orjson.dumps({**orjson.loads(PLAIN), "model": "chat/m"}))[0] == 200
