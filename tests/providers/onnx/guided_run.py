"""The real engine under guidance, as a program: cases on stdin, outputs on stdout.

In a process of its own: the engine holds the GIL, and a grammar it chokes on ends more than a test.
In:  {"path": folder, "cases": [{"prompt", "kind", "text", "seed", "most"}]}
Out: [{"text": ...} | {"error": ...}]
"""

from __future__ import annotations

import json
import os
import sys

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime_genai as og


def main() -> None:
    asked = json.load(sys.stdin)
    model = og.Model(asked["path"])
    tokenizer = og.Tokenizer(model)
    tokenizer.update_options(skip_special_tokens="false")
    json.dump([answer(model, tokenizer, case) for case in asked["cases"]], sys.stdout)


def answer(model: og.Model, tokenizer: og.Tokenizer, case: dict) -> dict[str, str]:
    ids = tokenizer.encode(case["prompt"])
    params = og.GeneratorParams(model)
    seed = case.get("seed")
    params.set_search_options(
        max_length=len(ids) + case.get("most", 400),
        do_sample=seed is not None,
        random_seed=seed or 0,
        top_k=50,
    )
    out = []
    try:
        if case.get("kind"):
            params.set_guidance(case["kind"], case["text"])
        generator = og.Generator(model, params)
        generator.append_tokens(ids)
        while not generator.is_done():
            generator.generate_next_token()
            out.append(int(generator.get_next_tokens()[0]))
    except RuntimeError as error:
        return {"error": str(error)}
    ended = out[-1:] == [2]
    return {"text": tokenizer.decode(out[:-1] if ended else out), "ended": ended}


if __name__ == "__main__":
    main()
