"""Model lists as backends really give them."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from yarl import URL

from providers.databricks import DatabricksProvider
from providers.http import HttpClient
from providers.listing import list_models
from providers.openai import OpenAIProvider, Settings
from translators.errors import ProxyError

from .raw_server import raw_server, read_request, reply

LISTS = [
    ("openai", {"object": "list", "data": [{"id": "b", "owned_by": "x"}, {"id": "a"}]}, ["b", "a"]),
    ("openai", {"data": [{"id": "a"}, {"id": "a"}, {"id": ""}, {"id": 3}, "x", None]}, ["a"]),
    ("openai", {"data": []}, []),
    ("openai", [{"id": "together-style"}], ["together-style"]),
    (
        "databricks",
        {"endpoints": [{"name": "databricks-claude", "task": "llm/v1/chat"}]},
        ["databricks-claude"],
    ),
    ("databricks", {}, []),
]


async def _list(kind: Any, body: bytes, status: str = "200 OK") -> Any:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply(body, status))

    async with raw_server(script) as origin:
        return await list_models("up", kind, URL(origin + "/list"), {"Authorization": "Bearer secret-key"})


@pytest.mark.parametrize(("kind", "body", "names"), LISTS)
async def test_lists_are_read_in_order(kind: str, body: Any, names: list[str]) -> None:
    found = await _list(kind, orjson.dumps(body))
    assert [(info.id, info.provider) for info in found] == [(name, "up") for name in names]


async def test_the_raw_entry_is_kept() -> None:
    (info,) = await _list("databricks", b'{"endpoints":[{"name":"a","task":"llm/v1/chat"}]}')
    assert info.facts == {"name": "a", "task": "llm/v1/chat"}


NO_LISTS = [
    (b"<html>", "200 OK"),
    (b'{"error":"x"}', "200 OK"),
    (b'{"data":{"id":"a"}}', "200 OK"),
    (b"7", "200 OK"),
    (b"{}", "200 OK"),
    (b'{"data":[]}', "403 Forbidden"),
    (b"", "302 Found"),
]


@pytest.mark.parametrize(("body", "status"), NO_LISTS)
async def test_anything_else_is_an_error_without_the_key(body: bytes, status: str) -> None:
    with pytest.raises(ProxyError, match="provider up: the model list") as caught:
        await _list("openai", body, status)
    assert "secret" not in str(caught.value)


async def test_nothing_there_is_an_error() -> None:
    with pytest.raises(ProxyError, match="ConnectError"):
        await list_models("up", "openai", URL("http://127.0.0.1:1/models"), {})


@pytest.mark.parametrize(
    ("kind", "base", "line"),
    [
        (OpenAIProvider, "/v1", "GET /v1/models HTTP/1.1"),
        (DatabricksProvider, "", "GET /api/2.0/serving-endpoints HTTP/1.1"),
    ],
)
async def test_providers_ask_at_the_path_of_their_row(
    kind: type[OpenAIProvider], base: str, line: str
) -> None:
    asked = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await read_request(reader))
        writer.write(reply(b'{"data":[],"endpoints":[]}'))

    async with raw_server(script) as origin:
        name = "databricks" if kind is DatabricksProvider else "openai"
        made = kind(Settings(name="up", base_url=origin + base, kind=name, api_key="k"), HttpClient())
        assert await made.models() == ()
    assert asked[0][0] == line
    assert {name.lower(): value for name, value in asked[0][1].items()}["authorization"] == "Bearer k"


async def test_a_backend_without_a_list_lists_nothing() -> None:
    overrides = {"wire": {"models": {"path": None}}}
    made = OpenAIProvider(
        Settings(name="up", base_url="http://127.0.0.1:1", overrides=overrides), HttpClient()
    )
    assert await made.models() == ()


async def test_a_list_written_carelessly_is_read_all_the_same() -> None:
    body = b'\xef\xbb\xbf{"data":[{"id":"a","created":NaN},{"id":"b\\ud83d","n":1e999},{"id":"c\xff"}]}'
    found = await _list("openai", body)
    assert [info.id for info in found] == ["a", "b\ufffd", "c\ufffd"]
    assert orjson.dumps([dict(info.facts) for info in found])


@pytest.mark.parametrize("levels", [300, 100_000])
async def test_a_list_nested_beyond_sense_is_an_error(levels: int) -> None:
    with pytest.raises(ProxyError, match="no JSON"):
        await _list("openai", b'{"data":' + b"[" * levels + b"]" * levels + b"}")
