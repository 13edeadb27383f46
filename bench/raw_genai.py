"""The engine without a gateway: `python -m bench.raw_genai FOLDER` reads asks from its input, one a line.

In `{text, max_tokens, temperature}`, out `{prompt_tokens, tokens, seconds, first}`: the plain loop of
onnxruntime-genai's examples, with its own tokenizer, sampling and decoding of each token. `seconds` are from
the text to the last token, `first` to the first.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime_genai as og
import orjson

TOP_K = 50


def main() -> None:
    model = og.Model(str(Path(sys.argv[1])))
    tokenizer = og.Tokenizer(model)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        sys.stdout.write(orjson.dumps(_answer(model, tokenizer, orjson.loads(line))).decode() + "\n")
        sys.stdout.flush()


def _answer(model: Any, tokenizer: Any, ask: dict[str, Any]) -> dict[str, float]:
    began = time.perf_counter()
    ids = tokenizer.encode(ask["text"])
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=len(ids) + ask["max_tokens"], **_sampling(ask["temperature"]))
    generator = og.Generator(model, params)
    generator.append_tokens(ids)
    decoder, tokens, first = tokenizer.create_stream(), 0, 0.0
    while not generator.is_done():
        generator.generate_next_token()
        decoder.decode(generator.get_next_tokens()[0])
        tokens += 1
        first = first or time.perf_counter() - began
    seconds = time.perf_counter() - began
    return {"prompt_tokens": len(ids), "tokens": tokens, "seconds": seconds, "first": first}


def _sampling(temperature: float) -> dict[str, Any]:
    if not temperature:
        return {"do_sample": False}
    return {"do_sample": True, "temperature": temperature, "top_k": TOP_K, "top_p": 0.95}


if __name__ == "__main__":
    main()
