"""Where a request goes, how it is signed, and what a provider learns from refusals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from yarl import URL

from providers.databricks import DOUBT_S, DatabricksProvider
from providers.http import HttpClient
from providers.openai import REFUSED_S, OpenAIProvider, Settings, join, order_surfaces
from providers.quirks import MAX_LEARNED, Quirks
from translators.errors import ProxyError
from translators.profile import Profile, Wire

from .raw_server import raw_server, read_request, reply

GPT, CODEX, CLAUDE = "databricks-gpt-5", "databricks-gpt-5-3-codex", "databricks-claude-opus-4-8"


def provider(**settings: Any) -> OpenAIProvider:
    given = {"name": "up", "base_url": "http://127.0.0.1:1/v1", **settings}
    made = DatabricksProvider if given.get("kind") == "databricks" else OpenAIProvider
    return made(Settings(**given), HttpClient())


# --- which surface ---------------------------------------------------------------------

ORDERS = [
    # kind, host, model, wire, Chat client, Responses client
    ("openai", "127.0.0.1", "m", "auto", ("chat",), ("chat",)),
    ("openai", "127.0.0.1", "m", "chat", ("chat",), ("chat",)),
    ("openai", "127.0.0.1", "m", "responses", ("responses",), ("responses",)),
    ("openai", "api.openai.com", "m", "auto", ("chat",), ("responses", "chat")),
    ("openai", "api.openai.com", "m", "chat", ("chat",), ("chat",)),
    ("openai", "api.openai.com", "m", "responses", ("responses",), ("responses",)),
    ("openai", "api.x.ai", "grok", "auto", ("chat",), ("chat",)),
    ("openai", "api.x.ai", "grok", "responses", ("responses",), ("responses",)),
    ("databricks", "h", GPT, "auto", ("chat",), ("responses", "chat")),
    ("databricks", "h", CODEX, "auto", ("responses", "chat"), ("responses", "chat")),
    ("databricks", "h", CODEX, "chat", ("chat",), ("chat",)),
    ("databricks", "h", CLAUDE, "auto", ("chat",), ("open_responses", "chat")),
    ("databricks", "h", CLAUDE, "responses", ("open_responses",), ("open_responses",)),
    ("databricks", "h", CLAUDE, "chat", ("chat",), ("chat",)),
]


@pytest.mark.parametrize(("kind", "host", "model", "wire", "chat", "responses"), ORDERS)
def test_surfaces_in_order(
    kind: str, host: str, model: str, wire: str, chat: tuple[str, ...], responses: tuple[str, ...]
) -> None:
    made = provider(kind=kind, base_url=f"https://{host}", wire=wire)
    assert made.surfaces(model, "chat") == chat
    assert made.surfaces(model, "responses") == responses


@pytest.mark.parametrize("client", ["chat", "responses"])
def test_a_backend_without_chat_is_spoken_to_in_responses(client: Any) -> None:
    profile = Profile(wire=Wire(chat=None, responses="/responses"))
    assert order_surfaces(profile, "m", client, "auto") == ("responses",)


# --- where to --------------------------------------------------------------------------

URLS = [
    ("http://u/v1", "/chat/completions", "http://u/v1/chat/completions"),
    ("http://u/v1/", "/chat/completions", "http://u/v1/chat/completions"),
    ("https://h", "/serving-endpoints/responses", "https://h/serving-endpoints/responses"),
    ("https://h/serving-endpoints", "/serving-endpoints/responses", "https://h/serving-endpoints/responses"),
    ("https://h/a/serving-endpoints", "/serving-endpoints/x", "https://h/a/serving-endpoints/x"),
    ("https://r/openai/v1", "/openai/v1/responses", "https://r/openai/v1/responses"),
    ("https://r/openai", "/openai/v1/responses", "https://r/openai/v1/responses"),
    ("https://r", "/chat/completions?api-version=1", "https://r/chat/completions?api-version=1"),
    ("https://r/v1", "/v1beta/x", "https://r/v1/v1beta/x"),
]


@pytest.mark.parametrize(("base", "path", "url"), URLS)
def test_paths_join_without_repeating(base: str, path: str, url: str) -> None:
    assert str(join(URL(base), path)) == url


async def _asked(
    made: OpenAIProvider, surface: Any, body: bytes = b"{}"
) -> tuple[str, dict[str, str], bytes]:
    """What arrives at a server that `made` is pointed at."""
    arrived: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set_result(await read_request(reader))
        writer.write(reply(b"{}"))

    async with raw_server(script) as origin:
        made._base = made._base.with_port(URL(origin).port)
        upstream = await made.open(surface, CLAUDE, body, stream=False)
        await upstream.read()
    await made.aclose()
    line, headers, sent = await arrived
    return line, {name.lower(): value for name, value in headers.items()}, sent


@pytest.mark.parametrize(
    ("surface", "path"),
    [
        ("chat", "/v1/chat/completions"),
        ("responses", "/v1/responses"),
        ("embeddings", "/v1/embeddings"),
    ],
)
async def test_an_openai_backend_gets_the_bytes_at_its_path(surface: str, path: str) -> None:
    line, headers, body = await _asked(provider(api_key="k"), surface, b'{"model":"m"}')
    assert (line, body) == (f"POST {path} HTTP/1.1", b'{"model":"m"}')
    assert (headers["authorization"], headers["content-type"]) == ("Bearer k", "application/json")


@pytest.mark.parametrize(
    ("surface", "path"),
    [
        ("chat", "/serving-endpoints/chat/completions"),
        ("open_responses", "/serving-endpoints/open-responses"),
        ("embeddings", "/serving-endpoints/embeddings"),
    ],
)
async def test_databricks_is_asked_under_serving_endpoints(surface: str, path: str) -> None:
    made = provider(kind="databricks", base_url="http://127.0.0.1:1", api_key="pat")
    line, headers, _ = await _asked(made, surface)
    assert line == f"POST {path} HTTP/1.1"
    assert headers["authorization"] == "Bearer pat"


@pytest.mark.parametrize(
    ("auth", "key", "sent"),
    [
        ({}, None, {}),
        ({"kind": "none"}, "k", {}),
        ({"kind": "header", "header": "api-key", "prefix": ""}, "k", {"api-key": "k"}),
        ({"kind": "header", "header": "X-Key", "prefix": "Key "}, "k", {"x-key": "Key k"}),
    ],
)
async def test_keys_are_sent_as_the_profile_says(auth: dict[str, str], key: str | None, sent: Any) -> None:
    _, headers, _ = await _asked(provider(api_key=key, overrides={"auth": auth}), "chat")
    assert {
        name: headers.get(name) for name in ("authorization", "api-key", "x-key") if name in headers
    } == sent


async def test_a_surface_without_a_path_is_refused() -> None:
    made = provider(overrides={"wire": {"embeddings": None}})
    with pytest.raises(ProxyError) as caught:
        await made.open("embeddings", "m", b"{}", stream=False)
    assert (caught.value.http_status, caught.value.param) == (400, "model")


def test_a_key_is_in_no_representation() -> None:
    assert "secret" not in repr(Settings(name="a", base_url="http://h", api_key="secret"))
    assert "secret" not in repr(provider(api_key="secret")._door("m", "chat"))


# --- refusals --------------------------------------------------------------------------

OPENAI_REFUSALS = [
    (404, b'{"error":{"message":"Invalid URL (POST /v1/responses)","param":null,"code":null}}', True),
    (404, b'{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}', True),
    (404, b'{"detail":"Not Found"}', True),
    (404, b"404 page not found", True),
    (405, b'{"detail":"Method Not Allowed"}', True),
    (501, b"", True),
    (404, b'{"error":{"message":"no such model","code":"model_not_found"}}', False),
    (404, b'{"error":{"message":"Item with id rs_1 not found","param":"input","code":null}}', False),
    (400, b'{"error":{"message":"temperature is not supported with this model"}}', False),
    (500, b'{"error":{"message":"internal_error"}}', False),
]


@pytest.mark.parametrize(("status", "body", "refused"), OPENAI_REFUSALS)
def test_a_missing_route_is_told_from_a_missing_thing(status: int, body: bytes, refused: bool) -> None:
    made = provider(base_url="https://api.openai.com/v1")
    assert made.learn_refusal("m", "responses", status, body) is refused
    assert made.surfaces("m", "responses") == (["chat"] if refused else ("responses", "chat"))
    assert made.surfaces("other", "responses")[0] == "responses"


PASSTHROUGH = (
    b'{"error_code":"BAD_REQUEST","message":"Responses API passthrough is not supported for model x"}'
)
DATABRICKS_REFUSALS = [
    (404, b'{"error_code":"ENDPOINT_NOT_FOUND","message":"x"}', REFUSED_S),
    (404, b"", REFUSED_S),
    (400, PASSTHROUGH, REFUSED_S),
    (400, b'{"error_code":"RESOURCE_DOES_NOT_EXIST"}', REFUSED_S),
    (400, b'{"message":"json: unknown field \'reasoning\'"}', DOUBT_S),
    (
        400,
        b"INVALID_PARAMETER_VALUE: This model does not support the 'parallel_tool_calls' parameter",
        DOUBT_S,
    ),
    (400, b"This model does not support 'reasoning' for the Open Responses API.", DOUBT_S),
    (400, b"Only 'function' is supported. Tool type web_search is not supported", DOUBT_S),
    (500, b'{"error_code":"INTERNAL_ERROR"}', DOUBT_S),
    (501, b"not supported", DOUBT_S),
    (400, b'{"message":"Model x does not support the temperature parameter."}', 0),
    (401, b"not supported", 0),
    (429, b"not supported", 0),
    (503, b"internal_error", 0),
]


@pytest.mark.parametrize(("status", "body", "seconds"), DATABRICKS_REFUSALS)
def test_databricks_refuses_in_many_words(status: int, body: bytes, seconds: float) -> None:
    made = provider(kind="databricks", base_url="https://h")
    assert made.refusal(status, body) == seconds
    assert made.learn_refusal(CLAUDE, "open_responses", status, body) is (seconds > 0)
    assert made.learn_refusal(CLAUDE, "chat", status, body) is False


def test_what_was_learnt_expires() -> None:
    now = 1000.0
    settings = Settings(name="d", base_url="https://h", kind="databricks")
    made = DatabricksProvider(settings, HttpClient(), Quirks(clock=lambda: now))
    assert made.learn_refusal(CLAUDE, "open_responses", 400, PASSTHROUGH)
    assert made.surfaces(CLAUDE, "responses") == ["chat"]
    now += REFUSED_S - 1
    assert made.surfaces(CLAUDE, "responses") == ["chat"]
    now += 1
    assert made.surfaces(CLAUDE, "responses") == ["open_responses", "chat"]


def test_when_all_is_refused_all_is_tried_again() -> None:
    made = provider(wire="responses")
    assert made.learn_refusal("m", "responses", 404, b"")
    assert made.surfaces("m", "responses") == ("responses",)


def test_memory_of_refusals_is_bounded() -> None:
    made = provider(base_url="https://api.openai.com/v1")
    for at in range(3000):
        made.learn_refusal(f"m{at}", "responses", 404, b"")
    assert len(made._quirks._refused) <= MAX_LEARNED
