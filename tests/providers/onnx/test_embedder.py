"""Sentence embeddings over a graph small enough to compute in the head."""

from __future__ import annotations

import struct
from pathlib import Path

import orjson
import pytest

from providers.onnx import embedder as embedder_module
from providers.onnx.embedder import Embedder, graph_file, length_of
from providers.onnx.refusal import Refused
from tests.providers.onnx.graph import write_folder


def vectors(embedder: Embedder, *inputs: object, dimensions: int | None = None) -> list[list[float]]:
    found = embedder.embed(inputs, dimensions, lambda: False)  # type: ignore[arg-type]
    assert found is not None
    return [
        [round(number, 4) for number in struct.unpack(f"<{len(raw) // 4}f", raw)] for raw in found.vectors
    ]


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        (None, [0.5, 1.0, 0.0, 0.0]),
        ("pooling_mode_mean_tokens", [0.5, 1.0, 0.0, 0.0]),
        ("pooling_mode_cls_token", [1.0, 0.0, 0.0, 0.0]),
        ("pooling_mode_lasttoken", [0.0, 2.0, 0.0, 0.0]),
    ],
)
def test_pooling_leaves_padding_out(tmp_path, pooling, expected):
    embedder = Embedder(write_folder(tmp_path, pooling=pooling, normalize=False))
    assert vectors(embedder, "one two", "three three three three")[0] == expected


@pytest.mark.parametrize("normalize", [None, True])
def test_vectors_of_length_one(tmp_path, normalize):
    embedder = Embedder(write_folder(tmp_path, normalize=normalize))
    assert vectors(embedder, "three", "two two") == [[0.0, 0.0, 0.6, 0.8], [0.0, 1.0, 0.0, 0.0]]


def test_dimensions_cut_and_scale(tmp_path):
    embedder = Embedder(write_folder(tmp_path, normalize=False))
    assert embedder.dimensions == 4
    assert vectors(embedder, "three", dimensions=3) == [[0.0, 0.0, 1.0]]
    for wrong in (0, 5):
        with pytest.raises(Refused, match="between 1 and 4") as caught:
            vectors(embedder, "three", dimensions=wrong)
        assert caught.value.param == "dimensions"


def test_token_lists_and_the_count_of_tokens(tmp_path):
    embedder = Embedder(write_folder(tmp_path))
    assert vectors(embedder, [1, 2], [3]) == vectors(embedder, "one two", "three")
    found = embedder.embed(["one two", [3]], None, lambda: False)
    assert found is not None
    assert found.prompt_tokens == 3


@pytest.mark.parametrize(
    ("inputs", "kind", "words"),
    [
        (["one one one one"], "context_length", "3 tokens, but an input has 4"),
        ([""], "bad_request", "empty"),
        ([[]], "bad_request", "empty"),
        ([[4]], "bad_request", "not below 4"),
        ([[-1]], "bad_request", "not below 4"),
    ],
)
def test_refusals(tmp_path, inputs, kind, words):
    embedder = Embedder(write_folder(tmp_path, length=3), threads=1, devices=["cpu"])
    with pytest.raises(Refused, match=words) as caught:
        vectors(embedder, *inputs)
    assert caught.value.kind == kind


def test_batches_give_the_same_and_can_be_cancelled_between(tmp_path, monkeypatch):
    embedder = Embedder(write_folder(tmp_path))
    texts = ["one", "two two", "three one", "one two three", "two"]
    whole = vectors(embedder, *texts)
    monkeypatch.setattr(embedder_module, "BATCH", 2)
    assert vectors(embedder, *texts) == whole
    asked = iter([False, True])
    assert embedder.embed(texts, None, lambda: next(asked)) is None


def test_a_graph_that_pools_itself(tmp_path):
    embedder = Embedder(
        write_folder(tmp_path, pooling="pooling_mode_cls_token", normalize=False, pooled=True)
    )
    assert vectors(embedder, "one two") == [[0.5, 1.0, 0.0, 0.0]]
    assert embedder.dimensions == 4


@pytest.mark.parametrize(
    "name", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx", "model_fp16.onnx"]
)
def test_where_the_graph_is(tmp_path, name):
    assert graph_file(write_folder(tmp_path, graph=name)) == tmp_path / name


def test_no_graph(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no"):
        graph_file(tmp_path)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 512),
        ({"config.json": {"max_position_embeddings": 100}}, 100),
        ({"tokenizer_config.json": {"model_max_length": 10**30 // 10**12}, "config.json": {}}, 512),
        (
            {
                "tokenizer_config.json": {"model_max_length": 200},
                "config.json": {"max_position_embeddings": 100},
            },
            200,
        ),
        (
            {
                "sentence_bert_config.json": {"max_seq_length": 256},
                "tokenizer_config.json": {"model_max_length": 1},
            },
            256,
        ),
        ({"sentence_bert_config.json": {"max_seq_length": None}}, 512),
    ],
    ids=str,
)
def test_the_longest_text(tmp_path: Path, files, expected):
    for name, content in files.items():
        (tmp_path / name).write_bytes(orjson.dumps(content))
    assert length_of(tmp_path) == expected
