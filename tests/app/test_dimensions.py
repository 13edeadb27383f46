"""`dimensions` in `GET /models` of models whose backend does not tell: asked for once, in the background."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.app.conftest import Serve, Served
from tests.app.listed import ListedBackend, by_account, loaded
from tests.app.onnx_served import until
from tests.backends.replies import json_reply

ENTRY = {"id": "words", "type": "embedding"}


@pytest.fixture
def backend() -> Iterator[ListedBackend]:
    with ListedBackend() as found:
        yield found


def vectors(*numbers: float) -> Any:
    data = [{"object": "embedding", "index": 0, "embedding": list(numbers)}]
    return json_reply({"object": "list", "data": data, "model": "words", "usage": {"prompt_tokens": 1}})


def error(status: int) -> Any:
    return json_reply({"error": {"message": "no", "type": "x"}}, status)


def asked(backend: ListedBackend) -> list[Any]:
    return [each.json for each in backend.requests if each.path.endswith("/embeddings")]


def listed(served: Served, query: str = "class=embedding") -> dict[str, Any]:
    with served.client() as client:
        reply = client.get(f"/models?{query}")
    assert reply.status_code == 200, reply.text
    return {each["id"]: each["dimensions"] for each in reply.json()["data"]}


def started(serve: Serve, backend: ListedBackend, *entries: Any, probe: bool = True) -> Served:
    backend.lists["a"] = entries or (ENTRY,)
    return loaded(serve(fresh=True, providers=[backend.account("a", probe_dimensions=probe)]))


def test_asked_once_and_shown_from_then_on(serve: Serve, backend: ListedBackend) -> None:
    served = started(serve, backend)
    backend.play(vectors(0.1, 0.2, 0.3))
    assert listed(served) == {"a/words": None}
    until(lambda: listed(served) == {"a/words": 3})
    with served.client() as client:
        assert client.get("/models/a/words").json()["choices"][0]["dimensions"] == 3
        client.get("/v1/models?refresh=1")
    assert listed(served) == {"a/words": 3}
    assert asked(backend) == [{"model": "words", "input": "ping"}]


@pytest.mark.parametrize(
    "reply",
    [
        error(500),
        error(400),
        json_reply({"object": "list", "data": []}),
        json_reply({"data": [{"embedding": "AACAPw=="}]}),
        json_reply([1]),
    ],
    ids=["500", "400", "nothing", "base64", "no object"],
)
def test_failure_is_remembered_and_the_list_is_whole(
    serve: Serve, backend: ListedBackend, reply: Any
) -> None:
    served = started(serve, backend)
    backend.play(reply)
    assert listed(served) == {"a/words": None}
    until(lambda: not served.gateway.dimensions._tasks)
    count = len(asked(backend))
    assert count >= 1
    assert listed(served) == {"a/words": None}
    until(lambda: not served.gateway.dimensions._tasks)
    assert len(asked(backend)) == count
    assert served.gateway.catalog.dimensions == {"a/words": None}


def test_only_what_is_listed_and_unknown_is_asked(serve: Serve, backend: ListedBackend) -> None:
    known = {**ENTRY, "id": "told", "dimensions": 7}
    served = started(serve, backend, known, {"id": "chatty"}, ENTRY)
    backend.play(vectors(1, 2))
    assert listed(served, "") == {"a/chatty": None}
    assert listed(served, "class=embedding&search=told") == {"a/told": 7}
    assert asked(backend) == []
    until(lambda: listed(served) == {"a/told": 7, "a/words": 2})
    assert [each["model"] for each in asked(backend)] == ["words"]


def test_nothing_is_asked_that_nobody_wants(serve: Serve, backend: ListedBackend) -> None:
    served = started(serve, backend, probe=False)
    assert listed(served) == listed(served) == {"a/words": None}
    assert served.gateway.catalog.dimensions == {}
    assert asked(backend) == []


def test_another_models_length_is_not_taken_for_its_own(serve: Serve, backend: ListedBackend) -> None:
    backend.lists["a"] = (ENTRY,)
    accounts = [backend.account("a", probe_dimensions=True), backend.account("b", "other")]
    served = loaded(serve(fresh=True, providers=accounts, fallbacks={"a/words": ["b/other"]}))
    backend.play(by_account(a=error(503), b=vectors(1, 2, 3)))
    listed(served)
    until(lambda: not served.gateway.dimensions._tasks)
    assert listed(served)["a/words"] is None
