"""Frames survive any cut; parameters survive the socket."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from providers.onnx.protocol import Guidance, Params, Unpacker, pack, params_from


def test_frames_survive_any_cut():
    frames = [{"type": "cancel", "id": 1}, {"type": "delta", "text": "é" * 300}, {"type": "unload"}]
    data = b"".join(pack_of(frame) for frame in frames)
    for step in (1, 2, 3, 5, 7, 1000):
        unpacker = Unpacker()
        got = [frame for at in range(0, len(data), step) for frame in unpacker.feed(data[at : at + step])]
        assert got == frames


def pack_of(frame: dict[str, object]) -> bytes:
    fields = dict(frame)
    return pack(str(fields.pop("type")), **fields)


def test_garbage_is_a_value_error():
    with pytest.raises(ValueError, match="line 1"):
        Unpacker().feed(b"\x00\x00\x00\x02{x")


@pytest.mark.parametrize(
    "params",
    [
        Params(stop=[]),
        Params(max_tokens=3, stop=["a"], logit_bias={"5": 1.0}, guidance=Guidance("regex", "a+")),
    ],
)
def test_params_survive(params):
    (frame,) = Unpacker().feed(pack("generate", id=1, params=asdict(params)))
    assert params_from(frame["params"]) == params
