"""Bytes that are kept for as long as a stream takes."""

from __future__ import annotations


def packed(data: bytes) -> bytes:
    """The same in memory of its own size.

    orjson leaves what it wrote in a buffer of up to eighty times that, while the bytes are held: 4,097
    bytes for 58, 16,224 for 3,008 (measured with 3.13).
    """
    return bytes(memoryview(data))
