"""Model folders: what is read from them, and what is said of missing and damaged ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from providers.base import ModelInfo
from providers.onnx.control import read_control
from providers.onnx.folder import ModelFolder, read_folder, read_template, scan
from providers.onnx.kind import layout_of
from providers.onnx.size import parameter_count
from providers.ranking.cards import make_card
from tests.providers.onnx.graph import write_folder
from tests.providers.onnx.layouts import TINY, community, copied, edit, write
from translators.local.families import BY_NAME


def only(path: Path, **kwargs: Any) -> ModelFolder:
    (found,) = scan(path, **kwargs)
    return found


def test_the_packaged_model() -> None:
    found = only(TINY)
    assert replace(found, template=None, facts={}) == ModelFolder(
        name="tiny-chat",
        kind="chat",
        path=TINY,
        layout="genai",
        context_length=8192,
        vocab_size=640,
        eos_ids=(2,),
        family=BY_NAME["hermes"],
        special_tokens=(
            *("</think>", "</tool_call>", "</tool_response>", "<think>", "<tool_call>", "<tool_response>"),
            *("<|endoftext|>", "<|im_end|>", "<|im_start|>"),
        ),
        special_ids={"<|endoftext|>": 0, "<|im_start|>": 1, "<|im_end|>": 2},
        variables={"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
        generation={
            "do_sample": False,
            "temperature": 1.0,
            "top_k": 50,
            "top_p": 1.0,
            "repetition_penalty": 1.0,
            "no_repeat_ngram_size": 0,
        },
    )
    assert found.template == (TINY / "chat_template.jinja").read_text()
    assert found.engine_path(Path("/nowhere")) == TINY


def test_its_facts_are_understood_by_the_catalogue() -> None:
    card = make_card(ModelInfo("tiny-chat", "onnx", only(TINY).facts), "onnx")
    assert (card.task, card.tools, card.reasoning, card.context_window) == ("chat", True, True, 8192)
    assert card.parameter_count is not None
    assert 0.5e6 < card.parameter_count < 0.9e6


def test_a_folder_of_folders(tmp_path: Path) -> None:
    copied(tmp_path / "b")
    copied(tmp_path / "too" / "far" / "down" / "to" / "find")
    copied(tmp_path / "org" / "a" / "cpu-int4")
    community(tmp_path / "models--org--c" / "snapshots" / "r1")
    write(tmp_path / "models--org--c" / "snapshots" / "r0" / "config.json", {})
    write(tmp_path / "models--org--c" / "refs" / "main", {}).write_text("r1\n")
    community(tmp_path / "models--org--d" / "snapshots" / "r1")
    write(tmp_path / "models--org--e" / "blobs" / "x", {})
    (tmp_path / "notes.txt").write_text("no model")
    (tmp_path / ".hidden").mkdir()
    copied(tmp_path / ".hidden" / "model")
    found = scan(tmp_path)
    assert [(each.name, each.layout, each.reason) for each in found] == [
        ("b", "genai", None),
        ("org/c", "onnx-community", None),
        ("org/d", "onnx-community", None),
        ("org/a/cpu-int4", "genai", None),
    ]


def test_a_folder_that_may_not_be_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(tmp_path / "good")
    (tmp_path / "locked").mkdir()
    listed = Path.iterdir

    def iterdir(path: Path) -> Any:
        if path.name == "locked":
            raise PermissionError
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    assert [each.name for each in scan(tmp_path)] == ["good"]


@pytest.mark.parametrize("make", [False, True])
def test_a_path_without_a_model_is_told_of(make: bool, tmp_path: Path) -> None:
    path = tmp_path / "models"
    if make:
        path.mkdir()
    reason = only(path).reason or ""
    assert reason == (f"{path} holds no ONNX model" if make else f"{path} is no folder")


def missing(name: str) -> Any:
    return lambda folder: (folder / name).unlink()


def damaged(name: str) -> Any:
    return lambda folder: (folder / name).write_bytes(b'{"a": \xff')


def genai(**changes: Any) -> Any:
    def change(folder: Path) -> None:
        file = folder / "genai_config.json"
        told = orjson.loads(file.read_bytes())
        told["model"].update(changes)
        write(file, told)

    return change


DAMAGE = [
    (missing("model.onnx"), "the model file 'model.onnx' of genai_config.json is missing"),
    (missing("tokenizer.json"), "tokenizer.json is missing or damaged"),
    (damaged("tokenizer.json"), "tokenizer.json is missing or damaged"),
    (missing("chat_template.jinja"), "it has no chat template"),
    (damaged("chat_template.jinja"), "invalid start byte"),
    (damaged("genai_config.json"), "genai_config.json is no JSON object with a 'model'"),
    (lambda folder: write(folder / "genai_config.json", {"model": 3}), "no JSON object with a 'model'"),
    (lambda folder: write(folder / "genai_config.json", [1]), "no JSON object with a 'model'"),
    (genai(context_length="long"), "no context_length"),
    (genai(context_length=True), "no context_length"),
    (genai(eos_token_id=None), "no eos_token_id"),
    (genai(eos_token_id=["2"]), "no eos_token_id"),
    (genai(decoder=None), "the model file 'None'"),
    (genai(decoder={"filename": 3}), "the model file '3'"),
    (lambda folder: (folder / "chat_template.jinja").write_text("{% if %}"), "does not compile"),
    (lambda folder: (folder / "model.toml").write_text("= 1"), "model.toml"),
    (lambda folder: (folder / "model.toml").write_text("colour = 1"), "unknown key 'colour'"),
    (lambda folder: (folder / "model.toml").write_text("family = 'x'"), "no family 'x'"),
    (lambda folder: (folder / "model.toml").write_text("markers = 1"), "[markers] is a table of"),
    (lambda folder: (folder / "model.toml").write_text("markers.body = 1"), "[markers] is a table of"),
    (lambda folder: (folder / "model.toml").write_text("markers.stops = 'x'"), "a list of strings"),
    (lambda folder: (folder / "model.toml").write_text("markers.thoughts = ['x']"), "pairs of strings"),
    (lambda folder: (folder / "model.toml").write_text("markers.thoughts = [['x']]"), "pairs of strings"),
    (lambda folder: (folder / "model.toml").write_text("markers.thoughts = [['x', 1]]"), "pairs of strings"),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGE)
def test_damage_is_a_reason_and_hides_no_neighbour(damage: Any, words: str, tmp_path: Path) -> None:
    damage(copied(tmp_path / "broken"))
    copied(tmp_path / "good")
    broken, good = scan(tmp_path)
    assert words in (broken.reason or "")
    assert good.reason is None


@pytest.mark.parametrize("eos", [2, [2, 0]])
def test_ends_of_text(eos: Any, tmp_path: Path) -> None:
    folder = copied(tmp_path / "tiny")
    genai(eos_token_id=eos)(folder)
    assert only(folder).eos_ids == ((2,) if eos == 2 else (2, 0))


def test_generation_defaults_of_the_makers_win(tmp_path: Path) -> None:
    folder = copied(tmp_path / "tiny")
    write(folder / "generation_config.json", {"do_sample": True, "temperature": 0.6, "top_k": None, "x": 1})
    found = only(folder).generation
    assert (found["do_sample"], found["temperature"], found["top_k"], "x" in found) == (True, 0.6, 50, False)
    edit(folder / "genai_config.json", search=3)
    assert only(folder).generation == {"do_sample": True, "temperature": 0.6}


TEMPLATES = [
    ({"chat_template": "A"}, "A"),
    ({"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "T"}]}, "T"),
    ({"chat_template": [{"name": "rag", "template": "R"}, {"name": "default", "template": "D"}]}, "D"),
    ({"chat_template": [3, {"name": "rag", "template": "R"}]}, "R"),
    ({"chat_template": []}, None),
    ({"chat_template": ""}, None),
    ({}, None),
]


@pytest.mark.parametrize(("config", "template"), TEMPLATES)
def test_templates_in_the_tokenizers_configuration(config: Any, template: str | None, tmp_path: Path) -> None:
    write(tmp_path / "tokenizer_config.json", config)
    assert read_template(tmp_path) == template


def test_templates_in_files(tmp_path: Path) -> None:
    write(tmp_path / "tokenizer_config.json", {"chat_template": "C"})
    write(tmp_path / "chat_template.json", {"chat_template": "J"})
    assert read_template(tmp_path) == "J"
    (tmp_path / "chat_template.jinja").write_text("F")
    assert read_template(tmp_path) == "F"


def test_an_owner_knows_better(tmp_path: Path) -> None:
    folder = copied(tmp_path / "tiny")
    (folder / "model.toml").write_text(
        'name = "mine"\nfamily = "qwen3_coder"\ncontext_length = 100\n'
        '[markers]\nthoughts = [["<a>", "</a>"]]\nstops = ["<end>"]\n'
    )
    found = only(folder)
    assert (found.name, found.context_length, found.reason) == ("mine", 100, None)
    assert found.family == replace(BY_NAME["qwen3_coder"], thoughts=(("<a>", "</a>"),), stops=("<end>",))
    assert found.facts["context_window"] == 100


def test_a_variant_may_be_named(tmp_path: Path) -> None:
    folder = community(tmp_path / "tiny")
    assert only(folder).variant == "q4"
    assert "no variant 'fp16'" in (only(folder, variant="fp16").reason or "")
    (folder / "model.toml").write_text('variant = "q4"')
    assert only(folder, variant="fp16").reason is None
    (folder / "config.json").unlink()
    assert "config.json is missing" in (only(folder).reason or "")


CONTROL = [
    (
        {"added_tokens": [{"id": 1, "content": "<s>", "special": True}, {"id": 2, "content": "\n\n"}]},
        {},
        ("<s>",),
        {"<s>": 1},
    ),
    (
        {
            "added_tokens": [
                {"id": 3, "content": "<|a|>"},
                {"content": "<mark>"},
                {"id": 4, "content": "<td>"},
                3,
            ]
        },
        {},
        ("<mark>", "<|a|>"),
        {},
    ),
    ({}, {"added_tokens_decoder": {"7": {"content": "<x>", "special": True}, "y": {}}}, ("<x>",), {"<x>": 7}),
    ({}, {"added_tokens_decoder": {"y": {"content": "<x>", "special": True}}}, ("<x>",), {}),
    ({}, {"additional_special_tokens": ["<a>", {"content": "<b>"}, 3]}, ("<a>", "<b>"), {}),
    ({}, {"extra_special_tokens": {"image": "<i>"}}, ("<i>",), {}),
    ({"added_tokens": 3}, {"added_tokens_decoder": 3, "extra_special_tokens": 3}, (), {}),
]


@pytest.mark.parametrize(("tokenizer", "config", "tokens", "ids"), CONTROL)
def test_control_tokens(tokenizer: Any, config: Any, tokens: Any, ids: Any, tmp_path: Path) -> None:
    write(tmp_path / "tokenizer.json", tokenizer)
    write(tmp_path / "tokenizer_config.json", config)
    found = read_control(tmp_path, "the template writes <mark> and \n\n")
    assert (found.tokens, dict(found.ids)) == (tokens, ids)


def test_named_tokens_are_the_templates_variables(tmp_path: Path) -> None:
    write(tmp_path / "special_tokens_map.json", {"bos_token": "<m>", "sep_token": "<sep>"})
    write(tmp_path / "tokenizer_config.json", {"bos_token": {"content": "<s>"}, "eos_token": None})
    found = read_control(tmp_path, "")
    assert found.variables == {"bos_token": "<s>", "sep_token": "<sep>"}
    assert found.tokens == ("<s>", "<sep>")


def test_an_embedding_model(tmp_path: Path) -> None:
    folder = tmp_path / "minilm"
    write(folder / "modules.json", []).write_text("[]")
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 384})
    write(folder / "config.json", {"max_position_embeddings": 512, "hidden_size": 5, "vocab_size": 9})
    assert "no model.onnx" in (only(folder).reason or "")
    write(folder / "onnx" / "model_quantized.onnx", {})
    assert only(folder).reason == "tokenizer.json is missing or damaged"
    write(folder / "tokenizer.json", {})
    write(folder / "sentence_bert_config.json", {"max_seq_length": 256})
    found = only(folder)
    assert (found.kind, found.layout, found.reason) == ("embedding", "sentence", None)
    assert (found.context_length, found.vocab_size) == (256, 9)
    card = make_card(ModelInfo("minilm", "onnx", found.facts), "onnx")
    assert (card.task, card.dimensions, card.context_window) == ("embedding", 384, 256)


def test_a_graph_of_vectors_is_an_embedding_model(tmp_path: Path) -> None:
    write_folder(tmp_path / "vectors")
    found = only(tmp_path / "vectors")
    assert (found.kind, found.reason) == ("embedding", None)
    assert layout_of(write(tmp_path / "odd" / "model.onnx", {}).parent) == ("onnx-community", "chat")
    assert layout_of(tmp_path) == ("none", "chat")


@pytest.mark.parametrize(
    ("config", "count"),
    [
        ({}, 2 * (2 * 8 * 4 * (2 + 1) + 3 * 8 * 21) + 10 * 8),
        ({"intermediate_size": 16}, 2 * (2 * 8 * 4 * (2 + 1) + 3 * 8 * 16) + 10 * 8),
        ({"intermediate_size": 16, "num_experts": 4, "tie_word_embeddings": False},
         2 * (2 * 8 * 4 * (2 + 1) + 3 * 8 * 16 * 4) + 2 * 10 * 8),
    ],
)  # fmt: skip
def test_the_number_of_parameters(config: Any, count: int) -> None:
    decoder = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "head_size": 4}
    model = {"vocab_size": 10, "decoder": {**decoder, "num_key_value_heads": 1}}
    assert parameter_count(model, config) == count
    assert parameter_count({"vocab_size": 10}, config) is None
    assert parameter_count({"decoder": decoder}, config) is None


def test_a_model_of_unknown_size_is_listed(tmp_path: Path) -> None:
    folder = copied(tmp_path / "tiny")
    genai(vocab_size=None)(folder)
    found = read_folder(folder, "tiny")
    assert found.reason is None
    assert "parameter_count" not in found.facts
