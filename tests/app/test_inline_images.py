"""Remote images for a backend that takes none by address, from the client's request to the backend's."""

from __future__ import annotations

import base64
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from yarl import URL

from providers.images import Images
from tests.app.conftest import Serve, Served
from tests.backends.loopback import Loopback, Reply
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

PNG = b"\x89PNG\r\n\x1a\n" + b"p" * 40
DATA = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
ROUTES = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}


@pytest.fixture(scope="module")
def _pictures() -> Iterator[Loopback]:
    def answer(request: Any) -> Reply:
        if request.path == "/slow.png":
            return Reply(200, {"content-type": "image/png"}, [PNG], "hang")
        if request.path.startswith("/page"):
            return Reply(200, {"content-type": "text/html"}, [b"<html>"])
        return Reply(200, {"content-type": "image/png"}, [PNG])

    with Loopback(answer) as server:
        yield server


@pytest.fixture
def pictures(_pictures: Loopback) -> Loopback:
    """A server of images on this machine."""
    _pictures.requests.clear()
    return _pictures


def provider(backend: ScriptedBackend, images: str = "inline", **more: Any) -> dict[str, Any]:
    account = {"name": "p", "kind": "openai", "base_url": f"{backend.origin}/v1", "models": ["m"]}
    return {**account, "overrides": {"messages": {"remote_images": images}}, **more}


def reaching(served: Served, pictures: Loopback, **limits: Any) -> Served:
    """The gateway may reach the server of images, although its address is not public."""
    ports = frozenset({URL(pictures.origin).port or 0})
    served.gateway.images = Images(allows=lambda _: True, ports=ports, **limits)
    return served


def asking(client: str, *urls: str) -> dict[str, Any]:
    """A request of this shape with a text and these images."""
    if client == "chat":
        parts = [{"type": "image_url", "image_url": {"url": url, "detail": "low"}} for url in urls]
        return {"model": "p/m", "messages": [user({"type": "text", "text": "see"}, *parts)]}
    parts = [{"type": "input_image", "image_url": url, "detail": "low"} for url in urls]
    return {"model": "p/m", "input": [user({"type": "input_text", "text": "see"}, *parts)]}


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def content(body: Any) -> Any:
    return (body.get("messages") or body["input"])[-1]["content"]


@pytest.fixture
def post(serve: Serve, scripted: ScriptedBackend, pictures: Loopback) -> Iterator[Any]:
    """Ask the gateway in front of a backend of one wire."""
    clients: list[httpx.Client] = []

    def send(wire: str, shape: str, body: Any, images: str = "inline") -> httpx.Response:
        served = reaching(serve(providers=[provider(scripted, images, wire=wire)]), pictures)
        clients.append(served.client())
        return clients[-1].post(ROUTES[shape], json=body)

    yield send
    for client in clients:
        client.close()


# --- what the backend gets -------------------------------------------------------------


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("shape", ["chat", "responses"])
def test_images_go_in_the_request_itself(
    post: Any, scripted: ScriptedBackend, pictures: Loopback, shape: str, wire: str
) -> None:
    url = f"{pictures.origin}/a.png"
    reply = post(wire, shape, asking(shape, url, "data:image/gif;base64,R0lG", url))
    assert reply.status_code == 200
    body = scripted.bodies()[-1]
    _, first, second, third = content(body)
    image = first["image_url"]
    assert (image["url"] if wire == "chat" else image) == DATA
    assert third == first
    assert "R0lG" in str(second)
    assert "low" in str(first)
    assert body["model"] == "m"
    assert pictures.origin not in str(body)
    assert len(pictures.requests) == 1
    assert reply.headers.get("x-dragoman-dropped") is None


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_images_in_the_output_of_a_tool(
    post: Any, scripted: ScriptedBackend, pictures: Loopback, wire: str
) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    shot = {"type": "input_image", "image_url": f"{pictures.origin}/a.png"}
    output = {"type": "function_call_output", "call_id": "c", "output": [shot]}
    reply = post(wire, "responses", {"model": "p/m", "input": [user(), call, output]})
    assert reply.status_code == 200
    assert DATA in str(scripted.bodies()[-1])
    assert pictures.origin not in str(scripted.bodies()[-1])


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_nobody_asked_for_it(post: Any, scripted: ScriptedBackend, pictures: Loopback, wire: str) -> None:
    url = f"{pictures.origin}/a.png"
    assert post(wire, wire, asking(wire, url), "keep").status_code == 200
    assert url in str(scripted.bodies()[-1])
    assert pictures.requests == []


def test_a_request_without_images_passes_as_it_is(post: Any, scripted: ScriptedBackend) -> None:
    assert post("chat", "chat", asking("chat", "data:image/png;base64,AAAA")).status_code == 200
    assert "data:image/png;base64,AAAA" in str(scripted.bodies()[-1])


def test_embeddings_have_no_images(serve: Serve, scripted: ScriptedBackend, pictures: Loopback) -> None:
    served = reaching(serve(providers=[provider(scripted, wire="chat")]), pictures)
    part = {"type": "image_url", "image_url": {"url": f"{pictures.origin}/a.png"}}
    ask = {"model": "p/m", "messages": [{"role": "user", "content": [part]}]}
    with served.client() as client:
        assert client.post("/v1/embeddings", json=ask).status_code == 200
    assert pictures.requests == []


def workspace(backend: ScriptedBackend, model: str, **more: Any) -> dict[str, Any]:
    account = {"name": "p", "kind": "databricks", "base_url": backend.origin, "api_key": "dapi-key-of-ours"}
    return {**account, "models": [model], **more}


@pytest.mark.parametrize("shape", ["chat", "responses"])
def test_claude_on_databricks_asks_for_it(
    serve: Serve, scripted: ScriptedBackend, pictures: Loopback, shape: str
) -> None:
    model = "databricks-claude-sonnet-4-6"
    served = reaching(serve(fresh=True, providers=[workspace(scripted, model)]), pictures)
    body = {**asking(shape, f"{pictures.origin}/a.png"), "model": f"p/{model}"}
    with served.client() as client:
        assert client.post(ROUTES[shape], json=body).status_code == 200
    assert DATA in str(content(scripted.bodies()[-1]))


def test_another_surface_needs_no_second_fetch(
    serve: Serve, scripted: ScriptedBackend, pictures: Loopback
) -> None:
    model = "databricks-gpt-5-5"
    overrides = {"messages": {"remote_images": "inline"}}
    served = serve(fresh=True, providers=[workspace(scripted, model, overrides=overrides)])
    missing = {
        "error_code": "BAD_REQUEST",
        "message": "Responses API passthrough is not supported for model m",
    }
    refused = json_reply(missing, 400)
    scripted.play(lambda request: refused if request.path.endswith("responses") else None)
    body = {**asking("responses", f"{pictures.origin}/a.png"), "model": f"p/{model}"}
    with reaching(served, pictures).client() as client:
        assert client.post("/v1/responses", json=body).status_code == 200
    assert [request.path.rsplit("/", 1)[1] for request in scripted.requests] == ["responses", "completions"]
    assert all(DATA in str(body) for body in scripted.bodies())
    assert len(pictures.requests) == 1


# --- what the client is told -----------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(
    ("shape", "param"), [("chat", "messages[0].content[2]"), ("responses", "input[0].content[2]")]
)
def test_an_image_that_cannot_be_had(
    post: Any, scripted: ScriptedBackend, pictures: Loopback, shape: str, param: str, wire: str, stream: bool
) -> None:
    body = asking(shape, f"{pictures.origin}/a.png", f"{pictures.origin}/page?sig=secret")
    reply = post(wire, shape, {**body, "stream": stream})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_image_url")
    assert param in error["message"]
    assert "what is there is no image" in error["message"]
    assert "`data:` URL" in error["message"]
    assert "secret" not in reply.text
    assert scripted.requests == []


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(("shape", "param"), [("chat", "messages[0]"), ("responses", "input[0]")])
def test_refused_unseen(
    post: Any, scripted: ScriptedBackend, pictures: Loopback, shape: str, param: str, wire: str
) -> None:
    """`reject`: named by the part, or by its message where the shapes differ."""
    reply = post(wire, shape, asking(shape, f"{pictures.origin}/a.png"), "reject")
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param + ".content[1]" * (wire == shape))
    assert "data URL" in error["message"]
    assert pictures.requests == scripted.requests == []


def test_this_machine_is_not_reached(serve: Serve, scripted: ScriptedBackend, pictures: Loopback) -> None:
    """As configured by default, with the ports opened so that only the address is in the way."""
    served = reaching(serve(fresh=True, providers=[provider(scripted, wire="chat")]), pictures)
    served.gateway.images = dataclasses.replace(served.gateway.images, allows=Images().allows)
    with served.client() as client:
        reply = client.post(ROUTES["chat"], json=asking("chat", f"{pictures.origin}/a.png"))
    assert reply.status_code == 400
    assert "no public address" in reply.json()["error"]["message"]
    assert pictures.requests == scripted.requests == []


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_hangs_up_ends_the_fetch(
    serve: Serve, scripted: ScriptedBackend, pictures: Loopback, stream: bool
) -> None:
    served = reaching(serve(providers=[provider(scripted, wire="chat")]), pictures)
    body = {**asking("chat", f"{pictures.origin}/slow.png"), "stream": stream}
    with served.client() as client, pytest.raises(httpx.ReadTimeout):
        client.post(ROUTES["chat"], json=body, timeout=0.4)
    assert pictures.requests[0].gone.wait(1)
    until = time.monotonic() + 2
    while not served.log() and time.monotonic() < until:
        time.sleep(0.01)
    assert served.log()[0]["status"] == 499
    assert scripted.requests == []
