"""Sentences that mean the same are near to each other: all-MiniLM-L6-v2, which `make real-model` fetches."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.backends.gateway import Gateway, config_text

PLACE = Path(__file__).parents[2] / ".cache" / "real-model" / "minilm"
MODEL = "local/minilm"
SENTENCES = ["A man is eating food", "Someone eats a meal", "The stock market fell today"]

pytestmark = pytest.mark.skipif(
    not (PLACE / "tokenizer.json").is_file(), reason="no sentence model here: `make real-model` fetches one"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    provider = {"name": "local", "kind": "onnx", "path": str(PLACE)}
    with (
        Gateway(tmp_path_factory.mktemp("real"), config_text([provider])) as gateway,
        gateway.client() as found,
    ):
        yield found


def vectors(client: httpx.Client, **more: object) -> list[list[float]]:
    reply = client.post("/v1/embeddings", json={"model": MODEL, "input": SENTENCES, **more})
    assert reply.status_code == 200, reply.text
    return [each["embedding"] for each in reply.json()["data"]]


def near(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_its_length_is_listed_before_it_is_asked(client: httpx.Client) -> None:
    (found,) = client.get("/models?class=embedding").json()["data"]
    assert (found["id"], found["dimensions"], found["loaded"]) == (MODEL, 384, False)


@pytest.mark.parametrize("dimensions", [None, 128])
def test_what_means_the_same_is_near(client: httpx.Client, dimensions: int | None) -> None:
    food, meal, stocks = vectors(client, **({"dimensions": dimensions} if dimensions else {}))
    assert len(food) == (dimensions or 384)
    assert math.hypot(*food) == pytest.approx(1, abs=1e-5)
    assert near(food, meal) > 0.65
    assert near(food, stocks) < 0.2


def test_base64(client: httpx.Client) -> None:
    reply = client.post(
        "/v1/embeddings", json={"model": MODEL, "input": SENTENCES, "encoding_format": "base64"}
    )
    packed = base64.b64decode(reply.json()["data"][0]["embedding"])
    assert list(struct.unpack("<384f", packed)) == pytest.approx(vectors(client)[0], abs=1e-6)
