"""The process of one model: reads frames, answers one request after the other.

A thread reads the socket, so that a `cancel` is seen while the engine works; the main thread does the rest.
The end of the socket is the end of the gateway, and of this process.
"""

from __future__ import annotations

import base64
import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .protocol import Delta, Unpacker, pack, params_from
from .refusal import Refused, first_line

if TYPE_CHECKING:
    from .embedder import Embedder
    from .engine import Engine

READ_BYTES = 8 << 20
"""Of a model's files between two `loading` frames."""


class Child:
    """The far end of a `process.Worker`."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._jobs: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._left = False

    def run(self) -> None:
        """Load what the first frame says, then work until the gateway goes or has enough."""
        threading.Thread(target=self._listen, daemon=True).start()
        load = self._jobs.get()
        if load is None:
            return
        try:
            work = self._load(load)
        except Exception as error:  # the engine raises types of its own, and this is their last stop
            self._send("error", id=None, kind="unavailable", message=first_line(error))
            return
        while (job := self._jobs.get()) is not None:
            self._work(work, job)

    def _listen(self) -> None:
        unpacker = Unpacker()
        try:
            while data := self._socket.recv(1 << 16):
                for frame in unpacker.feed(data):
                    self._take(frame)
        except OSError:
            pass
        self._leave()

    def _take(self, frame: Mapping[str, Any]) -> None:
        match frame["type"]:
            case "cancel":
                self._cancelled.add(frame["id"])
            case "unload":
                self._leave()
            case _:
                self._jobs.put(frame)

    def _leave(self) -> None:
        self._left = True
        self._jobs.put(None)

    def _send(self, type_: str, **fields: Any) -> None:
        """Raises nothing: when nobody listens any more, the thread sees it too."""
        try:
            self._socket.sendall(pack(type_, **fields))
        except OSError:
            self._left = True

    # --- load --------------------------------------------------------------------------

    def _load(self, frame: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], None]:
        path = Path(frame["path"])
        self._send("loading", progress=0.0)
        read_ahead(path, lambda progress: self._send("loading", progress=progress))
        self._send("compiling")
        threads, devices = frame.get("threads"), tuple(frame.get("devices") or ())
        if frame["kind"] == "embedding":
            from .embedder import Embedder

            embedder = Embedder(path, threads=threads, devices=devices)
            self._send("ready", context_length=embedder.context_length, dimensions=embedder.dimensions)
            return lambda job: self._embed(embedder, job)
        from .engine import Engine

        engine = Engine(path, threads=threads, context=frame.get("context"), devices=devices)
        self._send("ready", context_length=engine.context_length, dimensions=None)
        return lambda job: self._generate(engine, job)

    # --- work --------------------------------------------------------------------------

    def _work(self, work: Callable[[Mapping[str, Any]], None], job: Mapping[str, Any]) -> None:
        id_ = job["id"]
        try:
            work(job)
        except Refused as refused:
            self._send("error", id=id_, kind=refused.kind, message=refused.message, param=refused.param)
        except Exception as error:  # one request's fault must not end the others
            self._send("error", id=id_, kind="upstream", message=f"The model failed: {first_line(error)}")
        self._cancelled.discard(id_)

    def _generate(self, engine: Engine, job: Mapping[str, Any]) -> None:
        id_ = job["id"]

        def emit(delta: Delta) -> None:
            self._send("delta", id=id_, text=delta.text, tokens=delta.tokens, logprobs=delta.logprobs)

        def prefilled(done: int, total: int) -> None:
            self._send("prefill", id=id_, done=done, total=total)

        params = params_from(job["params"])
        done = engine.generate(job["segments"], params, emit, lambda: self._is_off(id_), prefilled)
        self._send(
            "done",
            id=id_,
            finish=done.finish,
            matched_stop=done.matched_stop,
            prompt_tokens=done.prompt_tokens,
            completion_tokens=done.completion_tokens,
            cached_tokens=done.cached_tokens,
        )

    def _embed(self, embedder: Embedder, job: Mapping[str, Any]) -> None:
        id_ = job["id"]

        def cancelled() -> bool:  # asked before each batch, which is also the time for a sign of life
            self._send("prefill", id=id_, done=0, total=0)
            return self._is_off(id_)

        found = embedder.embed(job["inputs"], job.get("dimensions"), cancelled)
        if found is None:
            self._send("done", id=id_, finish="cancelled")
            return
        vectors = [base64.b64encode(vector).decode() for vector in found.vectors]
        self._send("embedded", id=id_, vectors=vectors, prompt_tokens=found.prompt_tokens)

    def _is_off(self, id_: int) -> bool:
        return self._left or id_ in self._cancelled


def read_ahead(path: Path, tell: Callable[[float], None]) -> None:
    """Read a model's files once, so that the engine, which tells no progress, finds them in memory.

    `tell` gets the share that is read, after each 8 MiB.
    """
    files = [file for file in path.rglob("*.onnx*") if file.is_file()]
    total, read = sum(file.stat().st_size for file in files), 0
    buffer = bytearray(READ_BYTES)
    for file in files:
        with file.open("rb", buffering=0) as source:
            while size := source.readinto(buffer):
                read += size
                tell(min(read / total, 1.0))


def main(descriptor: int) -> None:
    """Speak over an inherited socket until it ends."""
    with socket.socket(fileno=descriptor) as connection:
        Child(connection).run()
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)  # the thread still reads, which would keep it open
