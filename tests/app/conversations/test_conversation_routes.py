"""The routes of conversations over HTTP, and what is wrong with requests to them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.app.conftest import Serve, provider
from tests.backends.scripted import ScriptedBackend

from .conftest import KEYS, MISSING, ONE, Made, New, texts


@pytest.mark.parametrize("prefix", ["/v1", ""])
def test_a_life(client: httpx.Client, prefix: str) -> None:
    made = client.post(f"{prefix}/conversations", json={"metadata": {"topic": "a"}, "items": [ONE]}).json()
    assert set(made) == {"id", "object", "created_at", "metadata"}
    assert (made["object"], made["metadata"]) == ("conversation", {"topic": "a"})
    assert made["id"].startswith("conv_")
    at = f"{prefix}/conversations/{made['id']}"
    assert client.get(at).json() == made
    changed = {**made, "metadata": {"topic": "b"}}
    assert client.post(at, json={"metadata": {"topic": "b"}}).json() == changed
    assert client.post(at, json={"metadata": None}).json()["metadata"] == {}
    page = client.get(f"{at}/items").json()
    (item,) = page["data"]
    text = {"type": "input_text", "text": "one"}
    assert item == {
        "type": "message",
        "id": item["id"],
        "status": "completed",
        "role": "user",
        "content": [text],
    }
    assert page == {
        "object": "list",
        "data": [item],
        "first_id": item["id"],
        "last_id": item["id"],
        "has_more": False,
    }
    assert client.get(f"{at}/items/{item['id']}").json() == item
    assert client.delete(f"{at}/items/{item['id']}").json()["id"] == made["id"]
    assert client.get(f"{at}/items").json()["data"] == []
    assert client.delete(at).json() == {"id": made["id"], "object": "conversation.deleted", "deleted": True}
    assert client.get(at).status_code == 404


def test_one_may_be_made_of_nothing(client: httpx.Client) -> None:
    for body in (b"{}", b'\xef\xbb\xbf{"metadata":null,"items":null}'):
        made = client.post("/v1/conversations", content=body)
        assert (made.status_code, made.json()["metadata"]) == (200, {})


@pytest.mark.parametrize("id", ["conv_nowhere", "%00", "%C3%A4", "x" * 900])
@pytest.mark.parametrize(("method", "path"), MISSING)
def test_what_was_never_there(client: httpx.Client, method: str, path: str, id: str) -> None:
    body = {"metadata": {}, "items": [ONE]} if method == "POST" else None
    reply = client.request(method, f"/v1/conversations/{id}{path}", json=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"]) == (404, "conversation_not_found")
    assert error["message"].startswith("Conversation with id '")
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("item", ["msg_nowhere", "%00"])
def test_an_item_that_was_never_there(client: httpx.Client, new: New, method: str, item: str) -> None:
    reply = client.request(method, f"/v1/conversations/{new(items=[ONE])}/items/{item}")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "item_not_found")


PAIRS = {f"k{number}": "v" for number in range(17)}
BAD = [
    ({"metadata": PAIRS}, "metadata", "object_above_max_properties"),
    ({"metadata": {"k" * 65: "v"}}, "metadata", "string_above_max_length"),
    ({"metadata": {"k": "v" * 513}}, "metadata.k", "string_above_max_length"),
    ({"metadata": {"k": 1}}, "metadata.k", "invalid_type"),
    ({"metadata": []}, "metadata", "invalid_type"),
    ({"items": {}}, "items", "invalid_type"),
    ({"items": "x"}, "items", "invalid_type"),
    ({"items": [ONE] * 21}, "items", "array_above_max_length"),
    ({"items": [ONE, "x"]}, "items[1]", "invalid_type"),
    ({"items": [{**ONE, "id": ""}]}, "items[0].id", "invalid_value"),
    ({"items": [{**ONE, "id": "\0"}]}, "items[0].id", "invalid_value"),
    ({"items": [{**ONE, "id": "x" * 257}]}, "items[0].id", "invalid_value"),
    ({"items": [{**ONE, "id": "msg_1"}] * 2}, "items", "item_already_exists"),
    ({"items": [ONE, {"role": "king", "content": "x"}]}, "items[1].role", None),
    ({"items": [{"role": "user", "content": 7}]}, "items[0].content", None),
    ({"items": [{"type": "input_text", "text": "x"}]}, "items[0]", None),
    ({"items": [{"type": "function_call", "call_id": "c"}]}, "items[0].name", None),
    ({"items": [{"type": 5}]}, "items[0].type", None),
    ({"items": [{}]}, "items[0].type", None),
    ({"items": [{"type": "item_reference", "id": "msg_nowhere"}]}, "items[0]", None),
]


@pytest.mark.parametrize(("body", "param", "code"), BAD, ids=range(len(BAD)))
def test_what_is_wrong_is_named(client: httpx.Client, new: New, body: Made, param: str, code: str) -> None:
    paths = ["/v1/conversations"]
    id = new()
    if "items" in body:
        paths.append(f"/v1/conversations/{id}/items")
    else:
        paths.append(f"/v1/conversations/{id}")
    for path in paths:
        reply = client.post(path, json=body)
        error = reply.json()["error"]
        assert (reply.status_code, error["param"]) == (400, param)
        assert error["type"] == "invalid_request_error"
        assert code is None or error["code"] == code
        assert param.partition("[")[0].partition(".")[0] in error["message"]
    assert client.get(f"/v1/conversations/{id}/items").json()["data"] == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b"[" * 3000, b'{"items":[NaN]}'])
def test_a_body_that_is_none(client: httpx.Client, new: New, body: bytes) -> None:
    for path in ("/v1/conversations", f"/v1/conversations/{new()}/items"):
        reply = client.post(path, content=body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_json")


@pytest.mark.parametrize(("path", "param"), [("", "metadata"), ("/items", "items")])
def test_what_is_required(client: httpx.Client, new: New, path: str, param: str) -> None:
    reply = client.post(f"/v1/conversations/{new()}{path}", json={})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)
    assert reply.json()["error"]["code"] == "missing_required_parameter"


def test_limits_are_met_exactly(client: httpx.Client, new: New) -> None:
    metadata = {f"{number:064}": "ä" * 512 for number in range(16)}
    id = new(metadata=metadata, items=[ONE] * 20)
    assert client.get(f"/v1/conversations/{id}").json()["metadata"] == metadata
    assert len(client.get(f"/v1/conversations/{id}/items").json()["data"]) == 20


def test_adding_answers_what_was_added(client: httpx.Client, new: New) -> None:
    id = new(items=[ONE])
    given = [{"role": "user", "content": "two", "id": "msg_two"}, {"role": "assistant", "content": "three"}]
    added = client.post(f"/v1/conversations/{id}/items", json={"items": given}).json()
    assert (added["object"], added["first_id"], added["has_more"]) == ("list", "msg_two", False)
    assert texts(added["data"]) == ["two", "three"]
    assert added["data"][1]["content"][0] == {"type": "output_text", "text": "three", "annotations": []}
    assert client.get(f"/v1/conversations/{id}/items/msg_two").json() == added["data"][0]
    again = client.post(f"/v1/conversations/{id}/items", json={"items": given})
    assert (again.status_code, again.json()["error"]["code"]) == (400, "item_already_exists")


def test_pages(client: httpx.Client, new: New) -> None:
    id = new(items=[{"role": "user", "content": str(number), "id": f"msg_{number}"} for number in range(20)])
    client.post(f"/v1/conversations/{id}/items", json={"items": [{**ONE, "id": "msg_20"}]})
    page = client.get(f"/v1/conversations/{id}/items").json()
    assert [each["id"] for each in page["data"]] == [f"msg_{number}" for number in range(20, 0, -1)]
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("msg_20", "msg_1", True)
    query = {"after": "msg_17", "limit": "2", "order": "asc"}
    page = client.get(f"/v1/conversations/{id}/items", params=query).json()
    assert ([each["id"] for each in page["data"]], page["has_more"]) == (["msg_18", "msg_19"], True)
    page = client.get(f"/v1/conversations/{id}/items", params={**query, "after": "msg_18"}).json()
    assert page["has_more"] is False
    page = client.get(f"/v1/conversations/{id}/items", params={**query, "after": "msg_20"}).json()
    assert page == {"object": "list", "data": [], "first_id": "", "last_id": "", "has_more": False}


WRONG_QUERIES = [
    *("limit=0", "limit=101", "limit=x", "limit=", "order=up", "order=", "after=nowhere", "after=%00"),
    *("include=x", "include="),
]


@pytest.mark.parametrize("query", [*WRONG_QUERIES, "include[]=all"])
def test_a_page_that_cannot_be(client: httpx.Client, new: New, query: str) -> None:
    reply = client.get(f"/v1/conversations/{new(items=[ONE])}/items?{query}")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, query.partition("=")[0].rstrip("[]"))


def test_what_is_not_asked_for_is_not_shown(client: httpx.Client, new: New) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    id = new(items=[{"role": "user", "content": [image]}, thought])
    path = f"/v1/conversations/{id}/items"
    picture, reasoning = client.get(path, params={"order": "asc"}).json()["data"]
    assert picture["content"] == [{"type": "input_image", "detail": "auto"}]
    assert reasoning == {"type": "reasoning", "id": "rs_1", "summary": []}
    asked = "include[]=message.input_image.image_url&include=reasoning.encrypted_content"
    picture, reasoning = client.get(f"{path}?order=asc&{asked}").json()["data"]
    assert picture["content"] == [{**image, "detail": "auto"}]
    assert reasoning == thought
    assert client.get(f"{path}/rs_1?{asked}").json() == thought
    assert "encrypted_content" not in client.get(f"{path}/rs_1").json()


def test_nobody_reaches_anothers(serve: Serve, scripted: ScriptedBackend, store: dict[str, Any]) -> None:
    served = serve(providers=[provider(scripted)], store=store, server=KEYS)
    alice, bob = ({"authorization": f"Bearer {key}"} for key in KEYS["api_keys"])
    with served.client() as client:
        made = client.post("/v1/conversations", json={"items": [ONE]}, headers=alice).json()
        at = f"/v1/conversations/{made['id']}"
        item = client.get(f"{at}/items", headers=alice).json()["data"][0]["id"]
        for method, path in MISSING:
            body = {"metadata": {}, "items": [ONE]} if method == "POST" else None
            place = at + path.replace("msg_1", item)
            assert client.request(method, place, json=body, headers=bob).status_code == 404
            assert client.request(method, place, json=body).status_code == 401
        asked = {"model": "m", "input": "x", "conversation": made["id"]}
        assert client.post("/v1/responses", json=asked, headers=bob).status_code == 404
        reference = {"model": "m", "input": [{"type": "item_reference", "id": item}]}
        assert client.post("/v1/responses", json=reference, headers=bob).status_code == 400
        assert not scripted.bodies()
        assert client.get(at, headers=alice).json() == made


def test_a_store_that_is_off(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)], store={"kind": "off"})
    with served.client() as client:
        reply = client.post("/v1/responses", json={"model": "m", "input": "x", "conversation": "conv_1"})
        assert (reply.status_code, reply.json()["error"]["param"]) == (400, "conversation")
        reply = client.post("/v1/conversations", json={})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "store_off")
        for method, path in MISSING:
            body = {"metadata": {}, "items": [ONE]} if method == "POST" else None
            assert client.request(method, f"/v1/conversations/conv_1{path}", json=body).status_code == 404
    assert not scripted.bodies()
