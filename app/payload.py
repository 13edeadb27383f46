"""The bytes of a request as a backend gets them: the one place where a body becomes text."""

from __future__ import annotations

import re

import orjson

from providers.base import Provider
from translators.ir import Json
from translators.packed import packed


def write_body(body: Json, provider: Provider) -> bytes:
    """`body` with the provider's `extra_body` over it; a body that has it already stays the same."""
    extra = provider.extra_body
    return packed(orjson.dumps(body if extra is None else extra.over(body)))


_MODEL_KEY = re.compile(rb'"model"\s*:\s*("[^"\\]*")')


def with_model(raw: bytes, body: Json, model: str) -> bytes:
    """The client's bytes with another `model`, everything else as it was written.

    One `"model"` in the whole text can only be the key we know is there, provided that no
    key is spelled with escapes; anything less plain is written anew.
    """
    if body["model"] == model:
        return raw
    if raw.count(b'"model"') == 1 and b"\\u" not in raw:
        found = _MODEL_KEY.match(raw, raw.index(b'"model"'))
        if found is not None:
            return raw[: found.start(1)] + orjson.dumps(model) + raw[found.end() :]
    return orjson.dumps({**body, "model": model})
