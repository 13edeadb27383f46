"""`/v1/embeddings` over a local sentence model."""

from __future__ import annotations

import base64
import sys
from array import array
from collections.abc import Sequence
from typing import Any

import orjson

from translators.errors import bad_request
from translators.ir import Json

from .protocol import Embedded

MOST_INPUTS = 2048
"""As OpenAI's API has it."""
BYTES = 4
"""Of a number in a vector: float32."""
_ONE = "`input` must be a text, a list of texts, a list of token ids, or a list of such lists; none empty."


def read_inputs(body: Json) -> list[str | Sequence[int]]:
    """What is to be embedded, one entry each. Raises 400."""
    given = body.get("input")
    inputs: list[Any] = given if isinstance(given, list) and not _is_tokens(given) else [given]
    if not inputs or not all(each and (isinstance(each, str) or _is_tokens(each)) for each in inputs):
        raise bad_request(_ONE, "input")
    if len(inputs) > MOST_INPUTS:
        raise bad_request(f"`input` may hold {MOST_INPUTS} entries, not {len(inputs)}.", "input")
    return inputs


def read_dimensions(body: Json) -> int | None:
    wanted = body.get("dimensions")
    if wanted is not None and (not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1):
        raise bad_request("`dimensions` must be a whole number, at least 1.", "dimensions")
    return wanted


def read_encoding(body: Json) -> bool:
    """Whether the vectors go as base64 of little-endian float32 rather than as numbers."""
    wanted = body.get("encoding_format") or "float"
    if wanted not in ("float", "base64"):
        raise bad_request('`encoding_format` must be "float" or "base64".', "encoding_format")
    return bool(wanted == "base64")


def reply(model: str, found: Embedded, as_base64: bool) -> bytes:
    data = [
        {"object": "embedding", "index": index, "embedding": _written(vector, as_base64)}
        for index, vector in enumerate(found.vectors)
    ]
    usage = {"prompt_tokens": found.prompt_tokens, "total_tokens": found.prompt_tokens}
    return orjson.dumps({"object": "list", "data": data, "model": model, "usage": usage})


def _written(vector: bytes, as_base64: bool) -> str | list[float]:
    if as_base64:
        return base64.b64encode(vector).decode()
    numbers = array("f")
    numbers.frombytes(vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def _is_tokens(value: Any) -> bool:
    """Whether it is a list of token ids; an empty list is none."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, int) and not isinstance(each, bool) for each in value)
    )
