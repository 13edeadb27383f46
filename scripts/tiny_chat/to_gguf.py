"""The tiny model for llama.cpp, 32-bit: `python -m scripts.tiny_chat.to_gguf OUT/hf OUT/tiny.gguf`.

Takes the folder that `build.py` writes. Needs: pip install gguf==0.19.0 numpy safetensors
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

Json = dict[str, Any]
OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
INNER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def add_sizes(out: gguf.GGUFWriter, config: Json) -> None:
    heads = config["num_attention_heads"]
    rope = config.get("rope_parameters") or config
    out.add_name("tiny")
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(config["hidden_size"])
    out.add_block_count(config["num_hidden_layers"])
    out.add_feed_forward_length(config["intermediate_size"])
    out.add_head_count(heads)
    out.add_head_count_kv(config["num_key_value_heads"])
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_rope_dimension_count(config["hidden_size"] // heads)
    out.add_rope_freq_base(rope.get("rope_theta", 10_000.0))
    out.add_vocab_size(config["vocab_size"])
    out.add_file_type(gguf.LlamaFileType.ALL_F32)


def add_tokens(out: gguf.GGUFWriter, told: Json, size: int, template: str) -> None:
    """The vocabulary is padded to `size`."""
    added = {each["id"]: each for each in told["added_tokens"]}
    by_id = {number: text for text, number in told["model"]["vocab"].items()}
    by_id |= {number: each["content"] for number, each in added.items()}
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list([by_id.get(number, f"[PAD{number}]") for number in range(size)])
    out.add_token_types([_type(number, by_id, added) for number in range(size)])
    merges = told["model"]["merges"]
    out.add_token_merges([each if isinstance(each, str) else " ".join(each) for each in merges])
    ids = {each["content"]: number for number, each in added.items()}
    out.add_eos_token_id(ids["<|im_end|>"])
    out.add_bos_token_id(ids["<|endoftext|>"])
    out.add_pad_token_id(ids["<|endoftext|>"])
    out.add_add_bos_token(False)
    out.add_chat_template(template)


def _type(number: int, by_id: dict[int, str], added: dict[int, Json]) -> gguf.TokenType:
    if number not in by_id:
        return gguf.TokenType.UNUSED
    if number not in added:
        return gguf.TokenType.NORMAL
    return gguf.TokenType.CONTROL if added[number]["special"] else gguf.TokenType.USER_DEFINED


def add_weights(out: gguf.GGUFWriter, weights: dict[str, np.ndarray], config: Json) -> None:
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for key, tensor in weights.items():
        name = key.removesuffix(".weight")
        values = tensor.astype(np.float32)
        if name in OUTER:
            place = OUTER[name]
        elif name.startswith("model.layers."):
            _, _, layer, part = name.split(".", 3)
            place = f"blk.{layer}.{INNER[part]}"
            if (count := heads.get(part.rpartition(".")[2])) is not None:
                values = _interleaved(values, count)
        else:
            continue
        out.add_tensor(f"{place}.weight", np.ascontiguousarray(values))


def _interleaved(values: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp turns neighbouring pairs of a head, transformers its two halves."""
    rows, columns = values.shape
    return values.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(values.shape)


def main(source: Path, target: Path) -> None:
    config = json.loads((source / "config.json").read_text())
    out = gguf.GGUFWriter(target, "llama")
    add_sizes(out, config)
    told = json.loads((source / "tokenizer.json").read_text())
    add_tokens(out, told, config["vocab_size"], (source / "chat_template.jinja").read_text())
    add_weights(out, load_file(source / "model.safetensors"), config)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
