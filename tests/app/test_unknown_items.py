"""Input items that a Chat backend has nothing for, over HTTP: left out and told, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.conftest import Serve, provider
from tests.app.test_recovery import post
from tests.backends.scripted import ScriptedBackend

Json = dict[str, Any]
USER: Json = {"role": "user", "content": "hi"}
MEANINGLESS: list[Json] = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed"},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    {"type": "compaction", "encrypted_content": "e"},
    {"type": "not_heard_of_yet", "x": 1},
]


def ask(
    serve: Serve, scripted: ScriptedBackend, items: list[Json], wire: str = "chat", **headers: str
) -> Any:
    served = serve(providers=[provider(scripted, wire=wire)])
    return post(served, {"model": "p/m", "input": items}, "/v1/responses", **headers)


@pytest.mark.parametrize("item", MEANINGLESS, ids=lambda item: str(item["type"]))
def test_it_is_left_out_and_told(serve: Serve, scripted: ScriptedBackend, item: Json) -> None:
    reply = ask(serve, scripted, [USER, item, USER])
    assert (reply.status_code, reply.headers["x-dragoman-dropped"]) == (200, "/input/1")
    (sent,) = scripted.bodies()
    assert [message["content"] for message in sent["messages"]] == ["hi", "hi"]


@pytest.mark.parametrize("item", MEANINGLESS, ids=lambda item: str(item["type"]))
def test_strictly_it_is_refused(serve: Serve, scripted: ScriptedBackend, item: Json) -> None:
    reply = ask(serve, scripted, [USER, item, USER], **{"x-dragoman-strict": "true"})
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "input[1]")
    assert item["type"] in error["message"]
    assert not scripted.requests


@pytest.mark.parametrize("item", MEANINGLESS, ids=lambda item: str(item["type"]))
def test_with_nothing_else_there_is_nothing_to_ask(
    serve: Serve, scripted: ScriptedBackend, item: Json
) -> None:
    reply = ask(serve, scripted, [item])
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "input")
    assert f"input[0]: an item of type {item['type']} means nothing" in error["message"]
    assert not scripted.requests


@pytest.mark.parametrize("item", MEANINGLESS, ids=lambda item: str(item["type"]))
def test_a_responses_backend_gets_it_whole(serve: Serve, scripted: ScriptedBackend, item: Json) -> None:
    assert ask(serve, scripted, [USER, item, USER], "responses").status_code == 200
    assert scripted.bodies()[-1]["input"][1] == item


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_text", "text": "hi"},
        {"type": "text", "text": "hi"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AAAA"},
        {"type": "refusal", "refusal": "no"},
    ],
    ids=lambda part: str(part["type"]),
)
def test_a_part_in_an_items_place_is_refused(serve: Serve, scripted: ScriptedBackend, part: Json) -> None:
    reply = ask(serve, scripted, [USER, part])
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, "input[1]")
    assert f"`{part['type']}` into the `content` list" in error["message"]
    assert not scripted.requests


@pytest.mark.parametrize("nothing", ["", None])
def test_an_empty_type_is_none(serve: Serve, scripted: ScriptedBackend, nothing: str | None) -> None:
    assert ask(serve, scripted, [{"type": nothing, **USER}]).status_code == 200
    assert scripted.bodies()[-1]["messages"] == [USER]


def test_instructions_alone_are_something_to_ask(serve: Serve, scripted: ScriptedBackend) -> None:
    served = serve(providers=[provider(scripted)])
    body = {"model": "p/m", "instructions": "Say hi.", "input": [MEANINGLESS[0]]}
    assert post(served, body, "/v1/responses").status_code == 200
