"""An Ollama account: what its server tells becomes facts and layers of profiles; embeddings both ways."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import orjson
import pytest
from yarl import URL

from providers.http import HttpClient
from providers.ollama import OllamaProvider
from providers.ollama_listing import MAX_SHOWN, describe
from providers.openai import Settings
from providers.ranking import make_card
from tests.backends.loopback import Loopback, Reply, Request
from tests.backends.ollama_double import Model, OllamaDouble, json_reply
from translators.errors import ProxyError
from translators.rejections import Rejection

Json = dict[str, Any]
Make = Callable[..., OllamaProvider]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[OllamaProvider] = []

    def make(origin: str, **settings: Any) -> OllamaProvider:
        found = OllamaProvider(Settings("p", origin, kind="ollama", **settings), HttpClient())
        made.append(found)
        return found

    yield make
    for each in made:
        await each.aclose()


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as server:
        yield server


async def test_there_is_one_door(make: Make) -> None:
    provider = make("http://o:1", wire="responses")
    assert provider.surfaces("m", "chat") == provider.surfaces("m", "responses") == ("ollama",)
    assert provider.profile("m", "ollama").wire.ollama == "/api/chat"


LAYERS: list[tuple[Json, str, Any]] = [
    ({}, "request.defaults.num_ctx", 32768),
    ({"context": 4096}, "request.defaults.num_ctx", 4096),
    ({"context": 131072}, "request.defaults.num_ctx", 32768),
    ({"context": 131072, "entry": {"remote_model": "x"}}, "request.defaults.num_ctx", 131072),
    ({}, "reasoning.ask", "openai"),
    ({"capabilities": ("completion",)}, "reasoning.ask", "none"),
    ({"capabilities": ()}, "reasoning.ask", "openai"),
    ({"family": "gptoss"}, "reasoning.efforts", ["low", "medium", "high"]),
    ({"entry": {"details": 3}}, "reasoning.efforts", ["none", "low", "medium", "high", "max"]),
    ({}, "messages.media.image", "keep"),
    ({"capabilities": ("completion",)}, "messages.media.image", "refuse"),
    ({}, "messages.media.audio", "refuse"),
    ({"capabilities": ("completion", "audio")}, "messages.media.audio", "keep"),
]


@pytest.mark.parametrize(("model", "key", "wanted"), LAYERS)
async def test_what_the_server_says_is_a_layer(make: Make, model: Json, key: str, wanted: Any) -> None:
    with OllamaDouble([Model("m:latest", **model)]) as server:
        provider = make(server.origin)
        before = provider.profile("m", "ollama")
        await provider.models()
        assert provider.explain("m", "ollama")[key][0] == wanted
        assert (
            provider.explain("other", "ollama")[key][0] == make(server.origin).explain("m", "ollama")[key][0]
        )
        assert provider.profile("m", "ollama") == provider.profile("m:latest", "ollama")
        assert before.name == "ollama"


@pytest.mark.parametrize(("capable", "shows", "length"), [("embedding", 1, 768), ("completion", 0, None)])
async def test_a_new_server_is_asked_for_the_length_of_embeddings(
    make: Make, capable: str, shows: int, length: int | None
) -> None:
    """S ollama: its list may tell capabilities and context, and no `embedding_length`."""
    details = {"family": "bert", "context_length": 512}
    told = Model("m:latest", capabilities=(capable,), entry={"details": details}, embedding=768)
    with OllamaDouble([told]) as server:
        (info,) = await make(server.origin).models()
        assert server.asked("/api/show") == shows
        assert make_card(info, "ollama").dimensions == length


async def test_a_configuration_has_the_last_word(make: Make, double: OllamaDouble) -> None:
    overrides = {"num_ctx": 99, "keep_alive": -1, "reasoning": {"ask": "enable_thinking"}}
    provider = make(double.origin, overrides=overrides)
    (info,) = await provider.models()
    rules = provider.profile(info.id, "ollama")
    assert dict(rules.request.defaults) == {"num_ctx": 99, "keep_alive": -1}
    assert rules.reasoning.ask == "enable_thinking"
    assert info.facts["context_window"] == 99


async def test_an_old_server_is_asked_once_about_each_digest(make: Make) -> None:
    names = [Model(f"m{at}:latest", digest=f"sha256:{at % 3}") for at in range(3)]
    with OllamaDouble(names, old=True) as server:
        provider = make(server.origin)
        first = await provider.models()
        again = await provider.models()
        assert server.asked("/api/show") == 3
    assert first == again
    assert all(info.facts["capabilities"] for info in first)
    assert set(first[0].facts["model_info"]) == {
        "general.architecture",
        "general.parameter_count",
        "qwen3.context_length",
    }


async def test_what_is_known_of_models_does_not_grow_for_ever(double: OllamaDouble) -> None:
    shown: dict[str, Any] = {f"d{at}": {} for at in range(MAX_SHOWN + 5)}
    await describe("p", URL(double.origin), {}, [], shown)
    assert len(shown) == MAX_SHOWN


LISTED = {"models": [{"name": "m:latest", "digest": 3}]}
SILENT: list[dict[str, Reply]] = [
    {},
    {path: json_reply([1]) for path in ("/api/ps", "/api/show", "/api/version")},
    {
        "/api/ps": json_reply({"models": "none"}),
        "/api/show": json_reply({"model_info": "none"}),
        "/api/version": json_reply({"version": 1}),
    },
    {path: Reply(200, {}, (b"x",), "cut") for path in ("/api/ps", "/api/show", "/api/version")},
]


@pytest.mark.parametrize("replies", SILENT)
async def test_a_server_that_says_no_more_is_listed_all_the_same(
    make: Make, replies: dict[str, Reply]
) -> None:
    def answer(request: Request) -> Reply:
        if request.path == "/api/tags":
            return json_reply(LISTED)
        return replies.get(request.path, json_reply({"error": "no"}, 500))

    with Loopback(answer) as server:
        (info,) = await make(server.origin).models()
    assert info.id == "m:latest"
    assert "loaded" not in info.facts
    assert "server_version" not in info.facts


async def test_an_empty_server_is_asked_no_more(make: Make) -> None:
    with OllamaDouble([]) as server:
        assert await make(server.origin).models() == ()
        assert [request.path for request in server.server.requests] == ["/api/tags"]


async def test_what_is_learned_belongs_to_the_digest(make: Make, double: OllamaDouble) -> None:
    provider, found = make(double.origin), Rejection(("think",))
    provider.learn_rejections("qwen3:8b", "ollama", [found])
    assert list(provider.known_rejections("qwen3:8b", "ollama")) == [found]
    await provider.models()
    assert list(provider.known_rejections("qwen3:8b", "ollama")) == []
    provider.learn_rejections("qwen3:8b", "ollama", [found])
    assert list(provider.known_rejections("qwen3:8b", "ollama")) == [found]
    double.models[0].digest = "sha256:ffffffffffffffff"
    await provider.models()
    assert list(provider.known_rejections("qwen3:8b", "ollama")) == []


async def test_a_model_without_tools_is_known_by_its_list(make: Make) -> None:
    with OllamaDouble([Model("a:1", ("completion",)), Model("b:1")]) as server:
        provider = make(server.origin)
        await provider.models()
        assert [each.path for each in provider.known_rejections("a:1", "ollama")] == [("tools",)]
        assert list(provider.known_rejections("b:1", "ollama")) == []


ANSWERS: list[tuple[Reply, int, str]] = [
    (json_reply({"error": "boom"}), 200, "boom"),
    (json_reply({"embeddings": []}), 200, "no vector for each input"),
    (Reply(200, {}, (b"<html>",)), 200, "<html>"),
    (json_reply({"error": "server busy"}, 503), 503, "server busy"),
]


@pytest.mark.parametrize(("reply", "status", "words"), ANSWERS)
async def test_an_embedding_that_is_none(make: Make, reply: Reply, status: int, words: str) -> None:
    with Loopback(lambda _: reply) as server:
        body = orjson.dumps({"model": "m", "input": "x"})
        upstream = await make(server.origin).open("embeddings", "m", body, False)
        text = await upstream.read()
    assert upstream.status == status
    assert words in text.decode()
    assert (upstream.headers.get("retry-after") == "1") == (status == 503)


async def test_a_delay_that_is_told_is_kept(make: Make) -> None:
    with Loopback(lambda _: json_reply({"error": "busy"}, 503, **{"retry-after": "9"})) as server:
        upstream = await make(server.origin).open("ollama", "m", b"{}", True)
        upstream.close()
    assert upstream.headers["retry-after"] == "9"


async def test_tokens_are_refused_before_anything_is_sent(make: Make) -> None:
    with pytest.raises(ProxyError, match="takes no tokens"):
        await make("http://127.0.0.1:1").open("embeddings", "m", b'{"model":"m","input":[1]}', False)
