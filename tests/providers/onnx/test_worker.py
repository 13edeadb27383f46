"""The process's side of the socket, run in a thread here: what it answers to which frame."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from providers.onnx import worker as worker_module
from providers.onnx.protocol import Params, Unpacker, pack
from providers.onnx.worker import main, read_ahead
from tests.providers.onnx.graph import write_folder

TINY = Path(__file__).parents[3] / "providers" / "onnx" / "model" / "tiny-chat"
HELLO = "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n"
ENDLESS = Params(max_tokens=8000, logit_bias={"2": -100.0})


class Far:
    """The gateway's end."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(20)
        self._frames: list[dict[str, Any]] = []
        self._unpacker = Unpacker()
        self.thread = threading.Thread(target=main, args=(theirs.detach(),))
        self.thread.start()

    def say(self, type_: str, **fields: Any) -> None:
        self.socket.sendall(pack(type_, **fields))

    def hear(self) -> dict[str, Any] | None:
        while not self._frames:
            data = self.socket.recv(1 << 16)
            if not data:
                return None
            self._frames = self._unpacker.feed(data)
        return self._frames.pop(0)

    def until(self, *types: str) -> dict[str, Any]:
        while (frame := self.hear()) is not None:
            if frame["type"] in types:
                return frame
        raise AssertionError(f"no {types}")


@pytest.fixture
def far() -> Iterator[Far]:
    end = Far()
    yield end
    end.socket.close()
    end.thread.join(10)
    assert not end.thread.is_alive()


@pytest.fixture
def chat(far: Far) -> Far:
    far.say("load", kind="chat", path=str(TINY))
    assert far.until("ready") == {"type": "ready", "context_length": 8192, "dimensions": None}
    return far


def ask(far: Far, id_: int, params: Params, segments: object = (HELLO,)) -> None:
    far.say("generate", id=id_, segments=segments, params=asdict(params))


def test_an_answer(chat):
    ask(chat, 7, Params(max_tokens=1, logprobs=True))
    assert chat.hear() == {"type": "prefill", "id": 7, "done": 11, "total": 11}
    delta = chat.hear()
    assert delta is not None
    assert (delta["type"], delta["id"], delta["text"], delta["tokens"]) == ("delta", 7, "Hello", 1)
    assert delta["logprobs"][0]["token"] == "Hello"
    assert chat.hear() == {
        "type": "done",
        "id": 7,
        "finish": "length",
        "matched_stop": None,
        "prompt_tokens": 11,
        "completion_tokens": 1,
        "cached_tokens": 0,
    }


def test_errors_name_their_request(chat):
    ask(chat, 1, Params(), [""])
    assert chat.until("error") == {
        "type": "error",
        "id": 1,
        "kind": "bad_request",
        "message": "The prompt is empty.",
        "param": "messages",
    }
    ask(chat, 2, Params(), 5)
    error = chat.until("error")
    assert (error["id"], error["kind"]) == (2, "upstream")
    ask(chat, 3, Params())
    assert chat.until("done", "error")["finish"] == "stop"


def test_cancel_one_that_runs_and_one_that_waits(chat):
    ask(chat, 1, ENDLESS)
    chat.until("delta")
    ask(chat, 2, ENDLESS)
    chat.say("cancel", id=2)
    chat.say("cancel", id=1)
    for id_ in (1, 2):
        done = chat.until("done")
        assert (done["id"], done["finish"]) == (id_, "cancelled")
    ask(chat, 1, Params())  # the number is free again
    assert chat.until("done")["finish"] == "stop"


def test_unload_ends_what_runs(chat):
    ask(chat, 1, ENDLESS)
    chat.until("delta")
    chat.say("unload")
    assert chat.until("done")["finish"] == "cancelled"
    assert chat.hear() is None


def test_the_end_of_the_gateway_ends_what_runs(chat):
    ask(chat, 1, ENDLESS)
    chat.until("delta")
    chat.socket.close()
    chat.thread.join(5)
    assert not chat.thread.is_alive()


def test_a_broken_socket_is_an_end_too(chat):
    chat.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    ask(chat, 1, ENDLESS)  # never read: its deltas meet a closed socket
    chat.socket.close()
    chat.thread.join(5)
    assert not chat.thread.is_alive()


def test_unload_before_load(far):
    far.say("unload")
    assert far.hear() is None


def test_a_load_that_fails(far, tmp_path):
    far.say("load", kind="chat", path=str(tmp_path))
    error = far.until("error")
    assert (error["id"], error["kind"]) == (None, "unavailable")
    assert "genai_config.json" in error["message"]
    assert far.hear() is None


def test_embeddings(far, tmp_path):
    far.say("load", kind="embedding", path=str(write_folder(tmp_path)))
    assert far.until("ready") == {"type": "ready", "context_length": 512, "dimensions": 4}
    far.say("embed", id=1, inputs=["two", [1]], dimensions=None)
    found = far.until("embedded")
    assert (found["id"], found["prompt_tokens"], len(found["vectors"])) == (1, 2, 2)
    far.say("embed", id=2, inputs=["two"] * 100_000)
    far.until("prefill")
    far.say("cancel", id=2)
    assert far.until("done") == {"type": "done", "id": 2, "finish": "cancelled"}


def test_reading_ahead_tells_the_share(tmp_path, monkeypatch):
    monkeypatch.setattr(worker_module, "READ_BYTES", 10)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "model.onnx").write_bytes(b"x" * 15)
    (tmp_path / "onnx" / "model.onnx_data").write_bytes(b"x" * 5)
    (tmp_path / "tokenizer.json").write_bytes(b"x" * 500)
    told: list[float] = []
    read_ahead(tmp_path, told.append)
    assert sorted(told) == told
    assert told[-1] == 1.0
    assert len(told) == 3
