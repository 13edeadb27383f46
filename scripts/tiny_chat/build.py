"""Build a tiny chat model as onnxruntime-genai folders: `python -m scripts.tiny_chat.build OUT`.

Made for the packaged `tiny-chat`: 0.7 million parameters, a vocabulary of 583 (all that the corpus gives),
a context of 8,192. Random start, generated corpus, nothing of anyone else's. Seeds and the number
of steps are fixed: the same versions on the same processor give the same weights. The packaged
files come from a forerunner that stopped by the clock: a run gives the same tokeniser and graph, and
other weights. It ends with how many of 40 new conversations are answered to the letter; where that is
too few, give it more `--steps`.

Needs, in a virtual environment of its own:

    pip install torch==2.13.0 transformers==5.24.0 tokenizers jinja2 \
        onnx==1.23.2 onnx-ir==1.1.0 onnxruntime-genai==0.18.0

Writes OUT/hf (weights for transformers, and for `to_gguf.py`), OUT/fp32 and OUT/int4; int4 is what
is packaged.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from .corpus import END, TEMPLATE, sample

SEED = 0
STEPS = 6_000
BATCH = 8
WARM_UP = 50
LEARNING_RATE = 3e-3
TOLD = 0.3
"""Share of a prompt's tokens that are learned as well."""
CONTEXT = 8_192
PAD = "<|endoftext|>"
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")


def make_tokenizer(dice: random.Random) -> PreTrainedTokenizerFast:
    """Byte-level BPE of 3,000 conversations."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    told = [sample(dice) for _ in range(3_000)]
    trainer = trainers.BpeTrainer(
        vocab_size=1_024,
        special_tokens=[PAD, "<|im_start|>", END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([f"{each.prompt()}{each.reply()}{END}\n" for each in told], trainer)
    made.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in MARKS])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=END, pad_token=PAD, model_max_length=CONTEXT
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=(len(tokenizer) + 63) // 64 * 64,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.pad_token_id,
        rope_theta=10_000.0,
    )
    return LlamaForCausalLM(config)


def train(model: LlamaForCausalLM, tokenizer: Tokenizer, dice: random.Random, steps: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01, betas=(0.9, 0.98))
    model.train()
    for step in range(steps):
        rate = LEARNING_RATE * min(1, (step + 1) / WARM_UP) * max(0.02, 1 - step / steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids, labels, mask = _batch(tokenizer, dice)
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step} of {steps}, loss {loss.item():.4f}", flush=True)
    model.eval()


def _batch(tokenizer: Tokenizer, dice: random.Random) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, labels (-100: not learned) and mask, padded at the right; BATCH rows each."""
    told = [sample(dice) for _ in range(BATCH)]
    rows = [(tokenizer.encode(each.prompt()).ids, tokenizer.encode(each.reply() + END).ids) for each in told]
    longest = max(len(prompt) + len(reply) for prompt, reply in rows)
    ids = torch.full((BATCH, longest), tokenizer.token_to_id(PAD))
    labels = torch.full((BATCH, longest), -100)
    mask = torch.zeros((BATCH, longest), dtype=torch.long)
    for row, (prompt, reply) in enumerate(rows):
        start, end = len(prompt), len(prompt) + len(reply)
        ids[row, :end] = torch.tensor(prompt + reply)
        mask[row, :end] = 1
        labels[row, start:end] = torch.tensor(reply)
        learned = torch.rand(start - 1) < TOLD
        labels[row, 1:start] = torch.where(learned, torch.tensor(prompt[1:]), torch.tensor(-100))
    return ids, labels, mask


def exact_answers(model: LlamaForCausalLM, tokenizer: Tokenizer, dice: random.Random, count: int) -> int:
    """How many of `count` new conversations are answered to the letter, greedily."""
    right = 0
    for each in (sample(dice) for _ in range(count)):
        prompt = torch.tensor([tokenizer.encode(each.prompt()).ids])
        with torch.no_grad():
            told = model.generate(
                input_ids=prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=90, do_sample=False
            )
        answer = tokenizer.decode(told[0][prompt.shape[1] :].tolist(), skip_special_tokens=True)
        right += answer == each.reply()
    return right


def export(out: Path, precision: str) -> None:
    """OUT/hf as a folder for the engine."""
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder"]
    paths = ["-i", out / "hf", "-o", out / precision, "-c", out / "cache"]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    subprocess.run([*builder, *paths, "-p", precision, "-e", "cpu"], check=True, env=offline)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    dice = random.Random(SEED)
    torch.manual_seed(SEED)
    torch.set_num_threads(2)  # sums are taken in another order with more of them
    tokenizer = make_tokenizer(dice)
    model = make_model(tokenizer)
    train(model, tokenizer.backend_tokenizer, dice, given.steps)
    print(f"exact answers: {exact_answers(model, tokenizer.backend_tokenizer, dice, 40)} of 40")
    tokenizer.save_pretrained(given.out / "hf")
    model.save_pretrained(given.out / "hf")
    for precision in ("fp32", "int4"):
        export(given.out, precision)


if __name__ == "__main__":
    main()
