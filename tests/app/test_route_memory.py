"""What a route leaves behind: conversations, images, names, however long or broken."""

from __future__ import annotations

from typing import Any

import pytest

from providers.images import ImageError
from tests.app.conftest import Serve
from tests.app.listed import CHAT, ListedBackend, by_account, chain, post, target
from tests.backends.replies import chat_chunk, json_reply, sse_reply


def test_a_conversation_does_not_stay_where_its_answer_failed(serve: Serve, backend: ListedBackend) -> None:
    said = [chat_chunk({"role": "assistant", "content": "a"}), {"error": {"message": "boom"}}]
    backend.play(sse_reply(said))
    groups = {"all": [{"model": "a/m", "weight": 1e9}, {"model": "b/m"}]}
    served = serve(
        fresh=True, providers=[backend.account("a", "m"), backend.account("b", "m")], groups=groups
    )
    reply = post(served, model="all", stream=True, prompt_cache_key="k")
    assert (reply.status_code, '"boom"' in reply.text) == (200, True)
    backend.play()
    assert served.gateway.router._sticky.get("all", "k") is None
    assert target(post(served, model="all", prompt_cache_key="k")) in ("a/m", "b/m")
    assert served.gateway.router._sticky.get("all", "k") is not None


def test_an_image_that_cannot_be_had_is_waited_for_once(
    serve: Serve, backend: ListedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def fetch(_: object, urls: list[str]) -> dict[str, str]:
        asked.append(urls)
        raise ImageError(urls[0], "no answer")

    monkeypatch.setattr("providers.images.Images.fetch", fetch)
    inline: dict[str, Any] = {"overrides": {"messages": {"remote_images": "inline"}}}
    served = chain(serve, backend, "a", "b", "c", options={"a": inline, "b": inline})
    picture = {"type": "image_url", "image_url": {"url": "https://pictures.example/a.png"}}
    body = {"messages": [{"role": "user", "content": [picture]}]}
    assert target(post(served, model="a/m", **body)) == "c/m", "which fetches for itself"
    assert len(asked) == 1
    assert post(served, model="b/m", **body).status_code == 400


@pytest.mark.parametrize("name", ["x" * 600, "a/" + "x" * 600, "chat-fast" + " " * 600])
def test_a_name_of_any_length_leaves_nothing_behind(serve: Serve, backend: ListedBackend, name: str) -> None:
    backend.play(json_reply({"error": {"message": "no such model"}}, 404))
    served = serve(providers=[backend.account("a", "m")])
    before = len(served.gateway.catalog._directory._kept)
    reply = post(served, CHAT, model=name)
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "model_not_found")
    assert len(reply.text) < 600
    assert backend.requests == []
    assert len(served.gateway.catalog._directory._kept) == before
    assert not any(len(each) > 512 for each in served.gateway.health._records)


def test_what_is_told_of_the_first_is_not_what_the_second_lost(serve: Serve, backend: ListedBackend) -> None:
    """Where the first could not even be asked, nothing was left out of anything."""
    backend.play(by_account(b=json_reply({"error": {"message": "busy"}}, 503)))
    options = {
        "a": {"overrides": {"tools": {"supported": False}}},
        "b": {"overrides": {"request": {"drop": ["seed"]}}},
    }
    served = chain(serve, backend, "a", "b", options=options, server={"retry_budget_s": 0})
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    reply = post(served, model="a/m", seed=1, tools=tools)
    assert (reply.status_code, reply.headers["x-dragoman-model"]) == (400, "a/m")
    assert "x-dragoman-dropped" not in reply.headers
