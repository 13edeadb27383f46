"""How many tokens a prompt has, by the model's own tokenizer.

It is read in the gateway's process: it takes some megabytes, the model it belongs to gigabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

_KEPT = 2
"""Tokenizers that are held in memory."""


def count(folder: Path, segments: Sequence[str]) -> int:
    """As the engine counts them: no token spans two segments. It takes a second the first time."""
    path = folder / "tokenizer.json"
    encoded = _tokenizer(path, path.stat().st_mtime_ns).encode_batch(list(segments), add_special_tokens=False)
    return sum(len(each.ids) for each in encoded)


@lru_cache(maxsize=_KEPT)
def _tokenizer(path: Path, changed_ns: int) -> Tokenizer:
    """`changed_ns`: another file is another tokenizer."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
