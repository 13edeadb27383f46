"""What the gateway and a model's process say to each other: length-prefixed JSON frames over a socket.

A frame is a big-endian uint32, the number of bytes that follow, and one JSON object with a `type`.

Gateway to process:

- `load` `{kind: "chat"|"embedding", path, threads?, context?, providers?}`: the first frame, once
- `generate` `{id, segments: [str], params: {...Params}}`
- `embed` `{id, inputs: [str | [int]], dimensions?}`
- `cancel` `{id}`
- `unload` `{}`: the process ends

Process to gateway:

- `loading` `{progress: 0..1}` while the files are read, then `compiling` `{}`, then `ready`
  `{context_length, dimensions?}`
- `prefill` `{id, done, total}`: so many tokens of the prompt are read (also a sign of life)
- `delta` `{id, text, tokens, logprobs?}`
- `done` `{id, finish, matched_stop, prompt_tokens, completion_tokens, cached_tokens}`
- `embedded` `{id, vectors: [base64], prompt_tokens}`
- `error` `{id | null, kind, message, param?}`: null, the process is of no further use
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

Finish = Literal["stop", "length", "cancelled"]
GuidanceKind = Literal["json_schema", "regex", "lark_grammar"]

_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Guidance:
    """What the whole answer must match; `kind` is one of `GuidanceKind`, `text` is written in it."""

    kind: GuidanceKind
    text: str


@dataclass(frozen=True, slots=True)
class Params:
    """How to generate. The defaults are greedy decoding to the end of the context.

    `temperature` 0 takes the likeliest token; `top_p` 1, `top_k` 0 and `min_p` 0 leave every token in.
    `frequency_penalty` and `presence_penalty` count the answer so far, `repetition_penalty` the prompt too.
    `logit_bias` has token ids for names. `top_logprobs` is only read with `logprobs`.
    `keep_special`: special tokens appear in the text, for families whose markers they are.
    Under `guidance` a `min_p` is not applied, and a seed repeats only within that.
    """

    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[str, float] = field(default_factory=dict)
    stop: Sequence[str] = ()
    logprobs: bool = False
    top_logprobs: int = 0
    guidance: Guidance | None = None
    keep_special: bool = False


@dataclass(frozen=True, slots=True)
class Delta:
    """Text that follows; `tokens` were generated since the last one.

    `logprobs` has the entries of Chat Completions, `{token, logprob, bytes, top_logprobs}`; None: not asked.
    """

    text: str
    tokens: int
    logprobs: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """The end of an answer. `matched_stop`: the string of `Params.stop` that ended it.

    `cached_tokens` of the prompt were still held from the answer before.
    """

    finish: Finish
    matched_stop: str | None
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Embedded:
    """One vector per input, each little-endian float32, and the tokens of all inputs."""

    vectors: Sequence[bytes]
    prompt_tokens: int


def pack(type_: str, **fields: Any) -> bytes:
    """One frame; dataclasses among the fields become objects."""
    body = orjson.dumps({"type": type_, **fields})
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Bytes in, frames out, however the bytes are cut."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The frames that are now complete. Raises ValueError for what is no JSON object."""
        self._held += data
        frames: list[dict[str, Any]] = []
        at = 0
        while len(self._held) - at >= _LENGTH.size:
            end = at + _LENGTH.size + _LENGTH.unpack_from(self._held, at)[0]
            if len(self._held) < end:
                break
            frames.append(orjson.loads(self._held[at + _LENGTH.size : end]))
            at = end
        del self._held[:at]
        return frames


def params_from(fields: Mapping[str, Any]) -> Params:
    """The `params` of a `generate` frame."""
    guidance = fields.get("guidance")
    return Params(**{**fields, "guidance": Guidance(**guidance) if guidance else None})
