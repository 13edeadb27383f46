"""Several accounts at one scripted backend, each with a model list of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from tests.app.conftest import Serve, Served
from tests.backends.loopback import Reply, Request
from tests.backends.replies import json_reply
from tests.backends.scripted import ScriptedBackend

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
HI = [{"role": "user", "content": "hi"}]

Entry = Mapping[str, Any]


class ListedBackend(ScriptedBackend):
    """`lists`: by account, the entries of `/models` or what is answered instead of them."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: dict[str, Sequence[Entry] | Reply] = {}
        self.listed: list[str] = []

    def _answer(self, request: Request) -> Reply:
        if request.method == "POST":
            return super()._answer(request)
        account = request.path.strip("/").partition("/")[0]
        self.listed.append(account)
        found = self.lists.get(account, ())
        return found if isinstance(found, Reply) else json_reply({"object": "list", "data": list(found)})

    def account(self, name: str, *models: str, wire: str = "chat", **more: Any) -> dict[str, Any]:
        """The configuration of a provider; without models its list is asked for."""
        known = {"models": list(models)} if models else {}
        url = f"{self.origin}/{name}/v1"
        return {"name": name, "kind": "openai", "base_url": url, "wire": wire, **known, **more}

    def asked(self) -> list[str]:
        """The accounts that were asked something, in order."""
        return [request.path.strip("/").partition("/")[0] for request in self.requests]


def loaded(served: Served) -> Served:
    """Once every list has been asked for."""
    deadline = time.monotonic() + 10
    while served.gateway.catalog.loading and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not served.gateway.catalog.loading
    return served


def post(
    served: Served, path: str = CHAT, headers: Mapping[str, str] | None = None, **body: Any
) -> httpx.Response:
    given = {"input": "hi"} if path == RESPONSES else {"messages": HI}
    with served.client() as client:
        return client.post(path, json={**given, **body}, headers=headers)


def target(reply: httpx.Response) -> str:
    assert reply.status_code == 200, reply.text
    return reply.headers["x-dragoman-model"]


def by_account(**replies: Reply) -> Any:
    """A step that answers so at these accounts, and by the book at others."""
    return lambda request: replies.get(request.path.strip("/").partition("/")[0])


def chain(serve: Serve, backend: ListedBackend, *names: str, **config: Any) -> Served:
    """`a/m` with the others as its fallbacks; `options` are the providers' own, by name."""
    options: Mapping[str, Any] = config.pop("options", {})
    accounts = [backend.account(name, "m", **options.get(name, {})) for name in names]
    fallbacks = {"a/m": [f"{name}/m" for name in names[1:]]}
    return serve(fresh=True, providers=accounts, fallbacks=fallbacks, **config)
