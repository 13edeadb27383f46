"""How many parameters a model has, from the sizes of its layers."""

from __future__ import annotations

from typing import Any

from translators.ir import Json


def parameter_count(model: Json, config: Json) -> int | None:
    """Roughly (norms and biases are left out), for ranking by size; None where sizes are missing.

    `model` is `genai_config.json`'s; `config` is `config.json`, which engine folders lack: a
    feed-forward width is 8/3 of the model's there, as Llama's.
    """
    decoder = model.get("decoder")
    told = {**config, **decoder} if isinstance(decoder, dict) else config
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "head_size")
    sizes = [_positive(told.get(name)) for name in names]
    vocabulary = _positive(model.get("vocab_size"))
    if not all(sizes) or not vocabulary:
        return None
    hidden, layers, heads, head = sizes
    kept = _positive(told.get("num_key_value_heads")) or heads
    feed = _positive(config.get("intermediate_size")) or hidden * 8 // 3
    experts = _positive(config.get("num_experts") or config.get("num_local_experts")) or 1
    attention = 2 * hidden * head * (heads + kept)
    tables = 1 if config.get("tie_word_embeddings", True) else 2
    return layers * (attention + 3 * hidden * feed * experts) + tables * vocabulary * hidden


def _positive(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
