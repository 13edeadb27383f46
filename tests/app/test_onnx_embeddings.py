"""`/v1/embeddings` over a local sentence model whose vectors can be computed in the head."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.app.conftest import Serve, Served
from tests.app.onnx_served import chat, until
from tests.providers.onnx.graph import write_folder

MODEL = "local/words"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    (root / "words").mkdir()
    return write_folder(root / "words").parent


@pytest.fixture
def served(serve: Serve, folder: Path) -> Served:
    served = serve(providers=[{"name": "local", "kind": "onnx", "path": str(folder)}])
    until(lambda: served.gateway.catalog._listings["local"].asked)
    return served


def embed(served: Served, given: Any, **more: Any) -> Any:
    with served.client() as client:
        return client.post("/v1/embeddings", json={"model": MODEL, "input": given, **more})


@pytest.mark.parametrize(
    ("given", "count"),
    [("one", 1), (["one", "two"], 2), ([1], 1), ([[1], [2, 3]], 2)],
    ids=str,
)
def test_every_form_of_input(served: Served, given: Any, count: int) -> None:
    body = embed(served, given).json()
    assert [each["index"] for each in body["data"]] == list(range(count))
    assert body["data"][0]["embedding"] == pytest.approx([1.0, 0.0, 0.0, 0.0])
    assert body["object"] == "list"
    assert body["usage"]["prompt_tokens"] == body["usage"]["total_tokens"] >= count


def test_base64_is_the_same_numbers(served: Served) -> None:
    plain = embed(served, "three").json()["data"][0]["embedding"]
    told = embed(served, "three", encoding_format="base64").json()["data"][0]["embedding"]
    assert list(struct.unpack("<4f", base64.b64decode(told))) == pytest.approx(plain)
    assert plain == pytest.approx([0.0, 0.0, 0.6, 0.8])


def test_fewer_dimensions_are_scaled_anew(served: Served) -> None:
    assert embed(served, "three", dimensions=3).json()["data"][0]["embedding"] == pytest.approx([0, 0, 1])


def test_the_official_client(served: Served) -> None:
    with openai.OpenAI(base_url=served.base + "/v1", api_key="none") as client:
        found = client.embeddings.create(model=MODEL, input=["two"]).data[0].embedding
    assert found == pytest.approx([0.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("given", "more", "param"),
    [
        ("", {}, "input"),
        ([], {}, "input"),
        (["a", ""], {}, "input"),
        ([["a"]], {}, "input"),
        (["one"] * 2049, {}, "input"),
        ("one", {"dimensions": 0}, "dimensions"),
        ("one", {"dimensions": 99}, "dimensions"),
        ("one", {"encoding_format": "hex"}, "encoding_format"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_it_cannot_be_asked(served: Served, given: Any, more: dict[str, Any], param: str) -> None:
    reply = embed(served, given, **more)
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param


def test_it_cannot_chat(served: Served) -> None:
    reply = chat(served, model=MODEL)
    assert reply.status_code == 400
    assert "cannot chat" in reply.json()["error"]["message"]


def test_it_is_listed_as_what_it_is(served: Served) -> None:
    embed(served, "one")
    with served.client() as client:
        client.get("/v1/models?refresh=1")
        (found,) = client.get("/models?class=embedding").json()["data"]
    assert (found["id"], found["dimensions"]) == (MODEL, 4)
