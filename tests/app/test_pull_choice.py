"""Which files of a repository are pulled, by their names."""

from __future__ import annotations

import pytest

from app.cli.pull_choice import NotChosenError, choose_files

SMALL = ["chat_template.jinja", "config.json", "tokenizer.json"]
EXPORTED = [
    *SMALL, "README.md", ".gitattributes", "model.safetensors", "onnx/model.onnx", "onnx/model.onnx_data",
    "onnx/model_fp16.onnx", "onnx/model_fp16.onnx.data", "onnx/model_q4.onnx", "onnx/model_q4.onnx_data",
    "onnx/model_q4.onnx_data_1", "onnx/model_q4f16.onnx", "onnx/model_q4f16.onnx_data", "runs/config.json",
]  # fmt: skip
SENTENCE = [
    "1_Pooling/config.json", "config.json", "model.onnx", "modules.json", "onnx/model_q4.onnx",
    "tokenizer.json", "vocab.txt", "openvino/model.xml",
]  # fmt: skip
CPU, GPU = "cpu_and_mobile/cpu-int4", "gpu/gpu-int4"
DEVICES = [f"{folder}/{name}" for folder in (CPU, GPU) for name in ("genai_config.json", "model.onnx")]
GENAI = ["genai_config.json", "model.onnx", "model.onnx.data", "merges.txt"]

CHOSEN: dict[str, tuple[list[str], str | None, list[str]]] = {
    "best": (
        EXPORTED,
        None,
        [*SMALL, "onnx/model_q4.onnx", "onnx/model_q4.onnx_data", "onnx/model_q4.onnx_data_1"],
    ),
    "named": (EXPORTED, "fp16", [*SMALL, "onnx/model_fp16.onnx", "onnx/model_fp16.onnx.data"]),
    "full": (EXPORTED, "fp32", [*SMALL, "onnx/model.onnx", "onnx/model.onnx_data"]),
    "sentence": (
        SENTENCE,
        None,
        ["1_Pooling/config.json", "config.json", "model.onnx", "modules.json", "tokenizer.json", "vocab.txt"],
    ),
    "genai": ([*GENAI, "README.md", ".gitattributes", "a.py", "lib.so", "x/y.json"], None, sorted(GENAI)),
    "cpu first": (DEVICES, None, DEVICES[:2]),
    "device": (DEVICES, "gpu-int4", DEVICES[2:]),
    "device by path": (DEVICES, GPU, DEVICES[2:]),
    "only a GPU": (DEVICES[2:], None, DEVICES[2:]),
}


@pytest.mark.parametrize(("names", "variant", "chosen"), CHOSEN.values(), ids=CHOSEN.keys())
def test_chosen(names: list[str], variant: str | None, chosen: list[str]) -> None:
    assert choose_files(names, variant) == sorted(chosen)


REFUSED = [
    (SMALL, None, "holds no ONNX model"),
    ([*SMALL, "model.gguf"], None, "holds no ONNX model"),
    (EXPORTED, "int8", "it has no variant 'int8': it has q4, q4f16, fp16, fp32"),
    (DEVICES, "npu", f"it has no variant 'npu': it has {CPU}, {GPU}"),
    ([*DEVICES, "cpu/x/genai_config.json"], None, f"choose one with --variant: cpu/x, {CPU}"),
    (["a/genai_config.json", "b/genai_config.json"], None, "choose one with --variant: a, b"),
]


@pytest.mark.parametrize(("names", "variant", "told"), REFUSED)
def test_refused(names: list[str], variant: str | None, told: str) -> None:
    with pytest.raises(NotChosenError, match=told):
        choose_files(names, variant)
