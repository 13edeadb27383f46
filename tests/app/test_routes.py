"""The HTTP surface, over a real server: paths, keys, errors, headers."""

from __future__ import annotations

import gzip
import http.client
import time
import zlib
from collections.abc import Iterator
from typing import Any

import httpx
import orjson
import pytest
import zstandard

from tests.app.conftest import Serve, Served, provider
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

KEY = "sk-c04d9e72ab5f1836d7"


@pytest.fixture
def served(serve: Serve, scripted: ScriptedBackend) -> Served:
    return serve(providers=[provider(scripted)], aliases={"gpt-5": "p/m"})


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


ASK = {
    "/responses": {"model": "p/m", "input": "hi"},
    "/chat/completions": {"model": "p/m", "messages": [{"role": "user", "content": "hi"}]},
    "/embeddings": {"model": "p/m", "input": "hi"},
}


@pytest.mark.parametrize("prefix", ["/v1", ""])
@pytest.mark.parametrize("path", ASK)
def test_answers_with_and_without_v1(client: httpx.Client, prefix: str, path: str) -> None:
    reply = client.post(prefix + path, json=ASK[path])
    assert reply.status_code == 200
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-dragoman-model"] == "p/m"
    assert "server" not in reply.headers or reply.headers["server"] != "dragoman"
    assert reply.json()["object"] in ("response", "chat.completion", "list")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/responses/compact", 405),
        ("GET", "/v1/responses/input_tokens", 405),
        ("POST", "/v1/responses/", 404),
        ("DELETE", "/x", 404),
        ("GET", "/v1/chat/completions", 405),
        ("PUT", "/v1/responses", 405),
        ("GET", "/v1/responses", 405),
        ("POST", "/v1/models", 405),
        ("POST", "/health", 405),
    ],
)
def test_wrong_routes_and_methods(client: httpx.Client, method: str, path: str, status: int) -> None:
    reply = client.request(method, path, content=b"{}" if method != "GET" else None)
    error = reply.json()["error"]
    assert reply.status_code == status
    assert set(error) == {"message", "type", "param", "code"}
    if status == 404:
        assert error["message"] == f"unsupported route {method} {path}"
    else:
        assert reply.headers["allow"]


def test_health_and_readiness_need_no_key(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"api_keys": [KEY]})
    with served.client() as client:
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/").json() == {"status": "ok"}
        assert client.head("/health").status_code == 200
        assert client.get("/ready").json() == {"status": "ready"}


@pytest.mark.parametrize(
    ("providers", "words"),
    [
        ([], "no provider is configured"),
        ([{"name": "local", "kind": "onnx", "path": "x"}], "local:"),
    ],
)
def test_not_ready(serve: Serve, providers: list[Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.registry.extra_is_installed", lambda: False)
    with serve(fresh=True, providers=providers).client() as client:
        reply = client.get("/ready")
        assert (reply.status_code, words in reply.json()["error"]["message"]) == (503, True)
        assert client.get("/health").status_code == 200


def test_keys(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"api_keys": ["another-key", KEY]})
    with served.client() as client:
        for headers in ({"authorization": f"Bearer {KEY}"}, {"x-api-key": "another-key"}):
            assert client.post("/v1/responses", json=ASK["/responses"], headers=headers).status_code == 200
        for path in ("/v1/models", "/v1/models/m", "/models"):
            assert client.get(path).status_code == 401
        wrong = {"authorization": "Bearer sk-wrong-1234567890"}
        reply = client.post("/v1/responses", json=ASK["/responses"], headers=wrong)
        assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
        assert reply.headers["x-request-id"]
    assert len(scripted.requests) == 2
    assert "sk-wrong" not in reply.text + served.log_file.getvalue().decode()
    assert all(request.headers.get("x-api-key") is None for request in scripted.requests)


@pytest.mark.parametrize(
    ("raw", "status", "param", "code"),
    [
        (b"{bad", 400, None, "invalid_json"),
        (b"[]", 400, None, "invalid_json"),
        (b'{"input": "x"}', 400, "model", None),
        (b'{"model": "nowhere/m", "input": "x"}', 404, "model", "model_not_found"),
        (b'{"model": "p/m"}', 400, "input", None),
        (b'{"model": "p/m", "input": "x", "stream": 3}', 400, "stream", None),
        (b'{"model": "p/m", "input": "x", "previous_response_id": "resp_1"}', 400, "previous_response_id",
         "previous_response_not_found"),
        (b'{"model": "p/m", "input": "x", "background": true, "store": false}', 400, "background", None),
        (b'{"model": "p/m", "input": "x", "conversation": 3}', 400, "conversation", None),
        (b'{"model": "p/m", "input": "x", "conversation": "c"}', 404, "conversation",
         "conversation_not_found"),
    ],
)  # fmt: skip
def test_faults_of_a_request(client: httpx.Client, raw: bytes, status: int, param: Any, code: Any) -> None:
    reply = client.post("/v1/responses", content=raw)
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (status, param)
    assert code is None or error["code"] == code
    assert reply.headers["x-request-id"].startswith("req_")


def test_an_encoded_body(client: httpx.Client, scripted: ScriptedBackend) -> None:
    raw = orjson.dumps(ASK["/responses"])
    packed = {
        "gzip": gzip.compress(raw),
        "deflate": zlib.compress(raw),
        "zstd": zstandard.ZstdCompressor().compress(raw),
    }
    for encoding, content in packed.items():
        reply = client.post("/v1/responses", content=content, headers={"content-encoding": encoding})
        assert reply.status_code == 200, reply.text
    reply = client.post("/v1/responses", content=raw, headers={"content-encoding": "br"})
    assert reply.status_code == 415
    assert len(scripted.requests) == 3


def test_a_body_over_the_limit(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"max_body_bytes": 1000})
    with served.client() as client:
        big = {"model": "p/m", "input": "x" * 2000}
        reply = client.post("/v1/responses", json=big)
        assert (reply.status_code, "1000" in reply.json()["error"]["message"]) == (413, True)
        packed = gzip.compress(orjson.dumps(big))
        reply = client.post("/v1/responses", content=packed, headers={"content-encoding": "gzip"})
        assert reply.status_code == 413
        assert client.post("/v1/responses", json=ASK["/responses"]).status_code == 200
    assert len(scripted.requests) == 1


def test_a_websocket_upgrade_is_426_where_it_is_off(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], server={"websocket": False})
    host = served.base.removeprefix("http://")
    for path in ("/v1/responses", "/responses"):
        connection = http.client.HTTPConnection(host, timeout=5)
        headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        assert reply.status == 426
        assert orjson.loads(reply.read())["error"]["code"] == "websocket_not_supported"
        connection.close()
    assert served.log("library") == []


def test_request_ids(client: httpx.Client) -> None:
    ask, path = ASK["/responses"], "/v1/responses"
    one, two = (client.post(path, json=ask).headers["x-request-id"] for _ in range(2))
    assert one != two
    assert client.post(path, json=ask, headers={"x-request-id": "mine-1"}).headers["x-request-id"] == "mine-1"
    reply = client.post(path, json={"model": "none", "input": "x"}, headers={"x-request-id": "mine-2"})
    assert (reply.status_code, reply.headers["x-request-id"]) == (404, "mine-2")


def test_one_log_line_for_each_request(served: Served, client: httpx.Client) -> None:
    client.post("/v1/responses", json={**ASK["/responses"], "metadata": {"a": "b"}})
    client.post("/v1/responses", json={"model": "none", "input": "x"})
    client.get("/v1/models")
    for _ in range(100):
        lines = served.log()
        if len(lines) == 3:
            break
        time.sleep(0.01)
    first, second, third = lines
    wanted = {
        "status": 200,
        "model": "p/m",
        "target": "p/m",
        "lane": "translate",
        "surface": "chat",
        "stream": False,
        "attempts": 1,
        "input_tokens": 11,
        "output_tokens": 7,
        "dropped": ["/metadata"],
        "error": None,
    }
    assert wanted.items() <= first.items()
    assert first["total_ms"] > 0
    assert (second["status"], second["error_code"]) == (404, "model_not_found")
    assert third["route"] == "GET /v1/models"


def test_what_was_left_out_is_told(client: httpx.Client) -> None:
    ask = {**ASK["/responses"], "metadata": {"a": "b"}}
    reply = client.post("/v1/responses", json=ask)
    assert reply.headers["x-dragoman-dropped"] == "/metadata"
    reply = client.post("/v1/responses", json=ask, headers={"x-dragoman-strict": "true"})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "metadata")
    assert "x-dragoman-dropped" not in client.post("/v1/responses", json=ASK["/responses"]).headers


def test_repairs_are_counted(client: httpx.Client) -> None:
    history = [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"role": "user", "content": "and?"},
    ]
    reply = client.post("/v1/responses", json={"model": "p/m", "input": history})
    assert reply.headers["x-dragoman-repairs"] == "1"


def test_a_fault_of_ours_is_a_500_and_has_its_stack_in_the_log(
    served: Served, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(name: str, *, embeddings: bool = False) -> Any:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(served.gateway.catalog, "find", broken)
    reply = client.post("/v1/responses", json=ASK["/responses"])
    assert (reply.status_code, reply.json()["error"]["type"]) == (500, "server_error")
    assert "bug" not in reply.text
    assert "a bug" in served.log("fault")[0]["exception"]


def test_embeddings_pass_untouched(client: httpx.Client, scripted: ScriptedBackend) -> None:
    raw = b'{ "model" : "p/m", "input": ["a"], "encoding_format": "base64", "dimensions": 4 }'
    reply = client.post("/v1/embeddings", content=raw)
    assert scripted.requests[-1].body == raw.replace(b"p/m", b"m")
    assert scripted.requests[-1].path == "/v1/embeddings"
    assert reply.json()["data"][0]["embedding"] == [0.25, -0.5, 0.75]
    assert reply.json()["model"] == "m"


def test_a_backend_without_embeddings(serve: Serve, scripted: ScriptedBackend) -> None:
    plain = provider(scripted, overrides={"wire": {"embeddings": None}})
    with serve(providers=[plain]).client() as client:
        reply = client.post("/v1/embeddings", json=ASK["/embeddings"])
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "model")
    assert (reply.headers["x-dragoman-model"], scripted.requests) == ("p/m", [])


def test_an_embeddings_error(client: httpx.Client, scripted: ScriptedBackend) -> None:
    scripted.play(json_reply({"error": {"message": "too long", "code": "string_above_max_length"}}, 400))
    reply = client.post("/v1/embeddings", json=ASK["/embeddings"])
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "string_above_max_length")
    scripted.play(json_reply({"error": {"message": "gone wrong"}}))
    assert client.post("/v1/embeddings", json=ASK["/embeddings"]).status_code == 502
