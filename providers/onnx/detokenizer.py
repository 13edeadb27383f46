"""Token ids to bytes to text, and stop strings in that text.

A token is bytes, often not whole characters: text is what the bytes of all tokens decode to. The bytes
come from the token's own name, as the two usual decoders read it:

- byte level (GPT-2, Llama 3, Qwen): each character of a name stands for one byte
- SentencePiece (Llama 2, Gemma, Mistral): U+2581 is a space, `<0xE2>` a byte
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BYTE_NAME = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's `bytes_to_unicode`, turned round: printable bytes are themselves, others start at U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


BYTE_ALPHABET = _byte_alphabet()


def _decoder_types(decoder: Mapping[str, Any]) -> Iterator[str]:
    """The `type` of a tokenizer's decoder and of those in it."""
    yield decoder["type"]
    for inner in decoder.get("decoders", ()):
        yield from _decoder_types(inner)


class Vocabulary:
    """The bytes of each token; looked up once per token."""

    __slots__ = ("_byte_level", "_bytes", "_tokenizer", "special")

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._bytes: dict[int, bytes] = {}
        decoder = tokenizer.decoder
        types = set(_decoder_types(orjson.loads(decoder.__getstate__()))) if decoder is not None else set()
        self._byte_level = "ByteLevel" in types
        added = tokenizer.get_added_tokens_decoder()
        self.special = frozenset(id_ for id_, token in added.items() if token.special)

    def bytes_of(self, token: int) -> bytes:
        """b"" for an id the tokenizer does not know (models have some to spare)."""
        found = self._bytes.get(token)
        if found is None:
            found = self._bytes[token] = self._read(self._tokenizer.id_to_token(token) or "")
        return found

    def _read(self, name: str) -> bytes:
        if self._byte_level:
            if all(character in BYTE_ALPHABET for character in name):
                return bytes(BYTE_ALPHABET[character] for character in name)
            return name.encode()  # an added token, which is its own text
        if match := _BYTE_NAME.fullmatch(name):
            return bytes.fromhex(match[1])
        return name.replace("\u2581", " ").encode()


class Detokenizer:
    """The text of one answer, token by token; the bytes of a character wait until it is whole."""

    __slots__ = ("_decode", "_skip", "_vocabulary")

    def __init__(self, vocabulary: Vocabulary, keep_special: bool) -> None:
        self._vocabulary = vocabulary
        self._skip = frozenset() if keep_special else vocabulary.special
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode

    def feed(self, token: int) -> str:
        return "" if token in self._skip else self._decode(self._vocabulary.bytes_of(token))


class StopStrings:
    """Holds back what may become a stop string; after `matched` nothing more is to be fed."""

    __slots__ = ("_held", "_stops", "matched")

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.matched: str | None = None

    def feed(self, text: str) -> str:
        """The text that is certain now.

        Of several stop strings the one that ends first counts, then the one that begins first: what
        does not depend on where the tokens are cut.
        """
        if not self._stops:
            return text
        text = self._held + text
        found = [(at + len(stop), at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            _, at, self.matched = min(found)
            self._held = ""
            return text[:at]
        keep = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def close(self) -> str:
        """What was held back for a stop string that never came."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that is a beginning of `stop`."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
