"""Embeddings: OpenAI's request as the body of `/api/embed`, and its answer as OpenAI's.

    {model, input: text | [text], dimensions?, truncate, keep_alive?, options?}
    {model, embeddings: [[float]], prompt_eval_count?, total_duration, load_duration}

Vectors come as numbers; base64 (float32, little endian), which OpenAI's own client asks for, is written here.
"""

from __future__ import annotations

import base64
from struct import pack
from typing import Any

from ..errors import ProxyError, bad_request
from ..ir import Json

_OWN = ("dimensions", "truncate", "keep_alive", "options")


def to_embed(body: Json) -> Json:
    """`body` of `/v1/embeddings` in Ollama's words.

    Raises 400 (`ProxyError`): tokens, which Ollama takes none of (S: "invalid input type"), no input, an
    unknown `encoding_format`.
    """
    given = body.get("input")
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts:
        raise bad_request("`input` must be a text or a list of texts.", "input")
    if not all(isinstance(text, str) for text in texts):
        raise bad_request("`input` must be texts: this model's backend takes no tokens.", "input")
    if body.get("encoding_format") not in (None, "float", "base64"):
        raise bad_request("`encoding_format` must be `float` or `base64`.", "encoding_format")
    # A text that is too long is an error, as with OpenAI, rather than cut off without a word.
    own = {key: body[key] for key in _OWN if body.get(key) is not None}
    return {"model": body["model"], "input": texts, "truncate": False, **own}


def from_embed(reply: Json, asked: Json) -> Json:
    """The answer to `asked`, the body of `/v1/embeddings`, in OpenAI's shape.

    Raises `ProxyError` (upstream) for one without a vector for every text.
    """
    vectors = reply.get("embeddings")
    count = len(asked["input"]) if isinstance(asked["input"], list) else 1
    if not isinstance(vectors, list) or len(vectors) != count or not all(map(_is_vector, vectors)):
        raise ProxyError("upstream", "The backend's answer holds no vector for each input.")
    as_text = asked.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": i, "embedding": _packed(vector) if as_text else vector}
        for i, vector in enumerate(vectors)
    ]
    read = reply.get("prompt_eval_count")
    tokens = read if type(read) is int and read > 0 else 0
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": reply.get("model") or asked["model"], "usage": usage}


def _is_vector(value: Any) -> bool:
    return isinstance(value, list) and all(type(number) in (int, float) for number in value)


def _packed(vector: list[float]) -> str:
    return base64.b64encode(pack(f"<{len(vector)}f", *vector)).decode()
