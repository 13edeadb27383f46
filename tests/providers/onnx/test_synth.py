"""The `onnx-community` layout: chosen, synthesised, laid out, and run by the real engine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

from providers.onnx import synth
from providers.onnx.folder import read_folder
from providers.onnx.graph import read_graph
from providers.onnx.synth import NotLaidOutError, choose, default_cache, genai_config, lay_out
from tests.providers.onnx.graph import INT64, _field, _node, _value
from tests.providers.onnx.layouts import CONFIG, TINY, community, edit, write
from tests.providers.onnx.test_guidance_engine import run

HELLO = "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n"


def plain_graph(*inputs: str, outputs: tuple[str, ...] = ("logits",)) -> bytes:
    """An ONNX file of names only."""

    def field(number: int, body: bytes) -> bytes:
        assert len(body) < 1 << 14
        return bytes([number << 3 | 2, len(body) & 0x7F | 0x80, len(body) >> 7]) + body

    graph = b"".join(field(11, field(1, name.encode())) for name in inputs)
    graph += b"".join(field(12, field(1, name.encode())) for name in outputs)
    # A varint, a fixed64 and a fixed32 field around it, to be stepped over.
    return b"\x08\x96\x01" + b"\x71" + bytes(8) + field(7, graph) + b"\x7d" + bytes(4)


def test_the_laid_out_folder_answers_as_the_packaged_one(tmp_path: Path) -> None:
    folder = read_folder(community(tmp_path / "org" / "tiny"), "org/tiny")
    assert folder.reason is None
    place = folder.engine_path(tmp_path / "cache")
    case = [{"prompt": HELLO, "most": 40}]
    assert run(case, place) == run(case) == [{"text": "Hello! How can I help you today?", "ended": True}]
    assert {path.name for path in place.iterdir() if path.is_symlink()} == {
        *("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "config.json"),
        *("generation_config.json", "model_q4.onnx"),
        "model.onnx.data",
    }


def test_a_graph_that_asks_for_positions_gets_them(tmp_path: Path) -> None:
    """As in transformers.js exports. Protobuf merges a message that is there twice: the graph grows."""
    folder = community(tmp_path / "tiny")
    positions = _field(11, _value("position_ids", INT64, ["batch", "sequence"]))
    positions += _field(12, _value("seen", INT64, ["batch", "sequence"]))
    positions += _field(1, _node("Identity", ["position_ids"], "seen"))
    with (folder / "onnx" / "model_q4.onnx").open("ab") as model:
        model.write(_field(7, positions))
    place = lay_out(folder, tmp_path / "cache")
    told = orjson.loads((place / "genai_config.json").read_bytes())
    assert told["model"]["decoder"]["inputs"]["position_ids"] == "position_ids"
    assert run([{"prompt": HELLO, "most": 40}], place)[0]["text"] == "Hello! How can I help you today?"


def test_an_entry_is_made_once_for_each_state(tmp_path: Path) -> None:
    folder, cache = community(tmp_path / "tiny"), tmp_path / "cache"
    first = lay_out(folder, cache)
    assert lay_out(folder, cache) == first
    shutil.copy(folder / "onnx" / "model_q4.onnx", folder / "onnx" / "model.onnx")
    second = lay_out(folder, cache, "fp32")
    os.utime(folder / "tokenizer.json", (1, 1))
    assert len({first, second, lay_out(folder, cache)}) == 3
    assert len(list(cache.iterdir())) == 3


def test_two_processes_at_once_share_the_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one's entry appears between the look and the rename."""
    folder, cache = community(tmp_path / "tiny"), tmp_path / "cache"
    place, build = lay_out(folder, cache), synth._build
    shutil.move(place, tmp_path / "kept")

    def late(new: Path, config: bytes, links: Any, target: Path) -> None:
        shutil.move(tmp_path / "kept", target)
        build(new, config, links, target)

    monkeypatch.setattr(synth, "_build", late)
    assert lay_out(folder, cache) == place
    assert list(cache.iterdir()) == [place]


def test_a_place_that_cannot_be_taken_is_an_error(tmp_path: Path) -> None:
    folder, cache = community(tmp_path / "tiny"), tmp_path / "cache"
    place = lay_out(folder, cache)
    shutil.rmtree(place)
    place.write_text("a file in the way")
    with pytest.raises(OSError, match=r"[Dd]irectory"):
        lay_out(folder, cache)
    assert list(cache.iterdir()) == [place]


@pytest.mark.parametrize(
    ("suffixes", "wanted", "chosen"),
    [
        (["", "_fp16", "_q4", "_int8"], None, "q4"),
        (["", "_fp16", "_quantized"], None, "quantized"),
        (["_q4f16", "_fp16", ""], None, "q4f16"),
        (["", "_bnb4"], None, ""),
        (["", "_q4"], "fp32", ""),
        (["", "_q4", "_fp16"], "fp16", "fp16"),
    ],
)
def test_the_variant(suffixes: list[str], wanted: str | None, chosen: str, tmp_path: Path) -> None:
    for suffix in suffixes:
        write(tmp_path / "onnx" / f"model{suffix}.onnx", {})
    assert choose(tmp_path, wanted) == chosen


def test_a_variant_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotLaidOutError, match="in any variant"):
        choose(tmp_path)
    write(tmp_path / "onnx" / "model.onnx", {})
    with pytest.raises(NotLaidOutError, match="no variant 'q4': it has fp32"):
        choose(tmp_path, "q4")


def test_the_configuration(tmp_path: Path) -> None:
    folder = community(tmp_path / "tiny")
    told = orjson.loads((TINY / "genai_config.json").read_bytes())
    made = genai_config(folder, "q4")
    for key in ("type", "context_length", "vocab_size", "bos_token_id"):
        assert made["model"][key] == told["model"][key]
    assert made["model"]["decoder"] == {**told["model"]["decoder"], "filename": "model_q4.onnx"}
    assert made["model"]["eos_token_id"] == [2, 0]
    assert made["model"]["pad_token_id"] == 2
    assert made["search"] == {
        "do_sample": True,
        "top_p": 0.9,
        "max_length": 8192,
        "past_present_share_buffer": False,
    }


KV = tuple(f"past_key_values.{layer}.{part}" for layer in range(2) for part in ("key", "value"))


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"model_type": "qwen3"}, {"type": "qwen3"}),
        (
            {"model_type": "gemma3", "text_config": {"vocab_size": 7}},
            {"type": "gemma3_text", "vocab_size": 7},
        ),
        ({"model_type": "gemma3"}, {"type": "gemma3_text"}),
        ({"model_type": "olmo2"}, {"type": "decoder"}),
        ({"model_type": None, "pad_token_id": 5}, {"type": "decoder", "pad_token_id": 5}),
        ({"max_position_embeddings": None, "n_positions": 12}, {"context_length": 12}),
        ({"bos_token_id": None}, {"eos_token_id": [2, 0]}),
    ],
)
def test_types_and_sizes(config: dict[str, Any], found: dict[str, Any], tmp_path: Path) -> None:
    folder = community(tmp_path / "tiny", config={**CONFIG, **config})
    (folder / "onnx" / "model_q4.onnx").write_bytes(plain_graph("input_ids", "position_ids", *KV))
    model = genai_config(folder, "q4")["model"]
    assert {key: model[key] for key in found} == found
    decoder = model["decoder"]
    assert (decoder["num_hidden_layers"], decoder["inputs"]["position_ids"]) == (2, "position_ids")
    assert "attention_mask" not in decoder["inputs"]


def test_sizes_that_config_leaves_out(tmp_path: Path) -> None:
    config = {key: value for key, value in CONFIG.items() if key not in ("head_dim", "num_key_value_heads")}
    decoder = genai_config(community(tmp_path / "tiny", config=config), "q4")["model"]["decoder"]
    assert (decoder["head_size"], decoder["num_key_value_heads"]) == (32, 4)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (b"", "cannot be read"),
        (b"no protobuf at all", "cannot be read"),
        (b"\xff" * 40, "it is no ONNX file"),
        (plain_graph("input_ids", *KV)[:60], "ends too early"),
        (b"\x08\x01", "0 inputs and 0 outputs"),
        (plain_graph("input_ids", "pixel_values", *KV), "pixel_values"),
        (plain_graph("inputs_embeds", *KV), "no plain text decoder"),
        (plain_graph("input_ids", *KV, outputs=("last_hidden_state",)), "no plain text decoder"),
        (plain_graph("input_ids"), "no key-value cache"),
        (plain_graph("input_ids", ""), "no plain text decoder"),
        (bytes([7 << 3 | 2, 4, 11 << 3 | 2, 0, 12 << 3 | 2, 0]), "no plain text decoder"),
    ],
)
def test_a_graph_the_engine_cannot_run(graph: bytes, words: str, tmp_path: Path) -> None:
    folder = community(tmp_path / "tiny")
    (folder / "onnx" / "model_q4.onnx").write_bytes(graph)
    with pytest.raises(NotLaidOutError, match=words):
        genai_config(folder, "q4")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"vocab_size": None}, "config.json has no vocab_size"),
        ({"num_attention_heads": None}, "config.json has no num_attention_heads"),
        ({"max_position_embeddings": "many"}, "config.json has no max_position_embeddings"),
    ],
)
def test_a_configuration_that_says_too_little(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    folder = community(tmp_path / "tiny")
    edit(folder / "config.json", **changes)
    with pytest.raises(NotLaidOutError, match=words):
        genai_config(folder, "q4")


def test_without_an_end_of_text_nothing_would_end(tmp_path: Path) -> None:
    folder = community(tmp_path / "tiny", config={**CONFIG, "eos_token_id": None})
    write(folder / "generation_config.json", {})
    with pytest.raises(NotLaidOutError, match="eos_token_id"):
        genai_config(folder, "q4")
    (folder / "config.json").unlink()
    with pytest.raises(NotLaidOutError, match="is missing"):
        genai_config(folder, "q4")


def test_the_names_of_a_graph() -> None:
    graph = read_graph(TINY / "model.onnx")
    assert graph.inputs[:2] == ("input_ids", "attention_mask")
    assert graph.outputs[0] == "logits"
    assert len(graph.inputs) == 8


def test_the_cache_is_where_caches_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/tmp/caches")
    assert default_cache() == Path("/var/tmp/caches/dragoman/onnx")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "dragoman" / "onnx"
