"""The gateway's end of a model's process: start it, ask it, notice when it dies or hangs, end it.

The process is a fresh interpreter (never a fork: the gateway has threads) that runs `worker`. It is spoken
to over a socket pair; it cannot write to the gateway's output. Nothing here blocks the event loop.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from translators.errors import ProxyError

from .protocol import Delta, Done, Embedded, Params, Unpacker, pack

Tell = Callable[[Literal["loading", "compiling"], float], None]
"""Gets the state of a load and the share of the files that is read."""

GRACE_S = 1.0
"""For a process to end by itself before it is killed."""
_ROOT = Path(__file__).parents[2]
_COMMAND = (
    "import sys; sys.path.append(sys.argv[1]);from providers.onnx.worker import main; main(int(sys.argv[2]))"
)


@dataclass(frozen=True, slots=True)
class Options:
    """How to run a model. None leaves it to the engine.

    `context` is the most tokens of prompt and answer together (engine.CONTEXT, or the model's own when less);
    `devices` are execution providers ("cuda"); `load_timeout_s` is the longest silence while it loads and
    `silence_s` while it owes an answer, which is the time for one token or 128 of a prompt.
    """

    threads: int | None = None
    context: int | None = None
    devices: Sequence[str] = ()
    load_timeout_s: float = 300.0
    silence_s: float = 60.0


class Worker:
    """A running model. Made by `start`."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        silence_s: float,
        tell: Tell | None,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._silence_s = silence_s
        self._tell = tell
        self._clock = asyncio.get_running_loop().time
        self._heard = self._clock()
        self._ids = itertools.count(1)
        self._inboxes: dict[int, asyncio.Queue[Any]] = {}
        """Of each request: what `_give` puts in, a `ProxyError` or the last item at the end."""
        self._owed: set[int] = set()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._why: str | None = None
        self.alive = True
        """False once the process is known to be gone."""
        self.context_length = 0
        self.dimensions: int | None = None
        """Of an embedding model, where its graph says."""
        self._alarm: asyncio.TimerHandle | None = None
        self._listening = asyncio.create_task(self._listen())
        self._watch(silence_s)

    @classmethod
    async def start(
        cls,
        path: Path,
        options: Options,
        *,
        kind: Literal["chat", "embedding"] = "chat",
        tell: Tell | None = None,
    ) -> Worker:
        """Start a process and load the model folder at `path`, laid out for its engine.

        Raises `ProxyError("unavailable")` in the engine's words. No process is left when this is cancelled.
        """
        worker = await cls._launch(options, tell)
        try:
            worker._write(
                "load",
                kind=kind,
                path=str(path),
                threads=options.threads,
                context=options.context,
                devices=list(options.devices),
            )
            await worker._ready
        except BaseException:
            worker._process.kill()  # it hears nothing while it loads
            await worker.stop()
            raise
        worker._silence_s = options.silence_s
        worker._watch_no_more()
        return worker

    @classmethod
    async def _launch(cls, options: Options, tell: Tell | None) -> Worker:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            process = _spawn(theirs)
        except OSError as error:
            ours.close()
            raise ProxyError("unavailable", f"No process for the model: {error.strerror}.") from error
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            ours.close()
            process.kill()
            process.wait()  # killed before its first line: milliseconds
            raise
        return cls(process, reader, writer, options.load_timeout_s, tell)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pending(self) -> int:
        """Requests that the process still works on or has before it; 0: it is idle."""
        return len(self._owed)

    def on_end(self, tell: Callable[[], None]) -> None:
        """Call `tell` when the process is gone, for whatever reason."""
        self._listening.add_done_callback(lambda _: tell())

    async def generate(self, segments: Sequence[str], params: Params) -> AsyncGenerator[Delta | Done, None]:
        """Answer a prompt: deltas, then one `Done`. Closing the iterator cancels.

        Raises `ProxyError`: the request's own fault, or `upstream` when the process died or hung.
        """
        id_, inbox = self._ask("generate", segments=list(segments), params=asdict(params))
        try:
            while True:
                item: Delta | Done | ProxyError = await inbox.get()
                if isinstance(item, ProxyError):
                    raise item
                yield item
                if isinstance(item, Done):
                    return
        finally:
            self._drop(id_)

    async def embed(self, inputs: Sequence[str | Sequence[int]], dimensions: int | None = None) -> Embedded:
        """One vector for each text or token list. Raises `ProxyError`; being cancelled cancels."""
        id_, inbox = self._ask("embed", inputs=inputs, dimensions=dimensions)
        try:
            found: Embedded | ProxyError = await inbox.get()
            if isinstance(found, ProxyError):
                raise found
            return found
        finally:
            self._drop(id_)

    async def stop(self) -> None:
        """End the process and wait until it is gone. Its requests fail as `unavailable`."""
        self._why = self._why or "unloaded"
        self._write("unload")
        try:
            await asyncio.wait((self._listening,), timeout=GRACE_S)
        finally:
            if not self._listening.done():
                self._process.kill()
        await asyncio.wait((self._listening,))

    # --- frames out --------------------------------------------------------------------

    def _ask(self, type_: str, **fields: Any) -> tuple[int, asyncio.Queue[Any]]:
        if not self.alive:
            raise self._gone()
        if not self._owed:
            self._heard = self._clock()  # it owed nothing, so its silence until now means nothing
            self._watch(self._silence_s)
        id_ = next(self._ids)
        inbox = self._inboxes[id_] = asyncio.Queue()
        self._owed.add(id_)
        self._write(type_, id=id_, **fields)
        return id_, inbox

    def _drop(self, id_: int) -> None:
        del self._inboxes[id_]
        if id_ in self._owed:
            self._write("cancel", id=id_)

    def _write(self, type_: str, **fields: Any) -> None:
        if self.alive:
            self._writer.write(pack(type_, **fields))

    # --- frames in ---------------------------------------------------------------------

    async def _listen(self) -> None:
        """Read until the process is gone, then tell everyone who waits."""
        unpacker = Unpacker()
        try:
            while data := await self._reader.read(1 << 16):
                self._heard = self._clock()
                for frame in unpacker.feed(data):
                    self._take(frame)
        except (OSError, ValueError):
            pass
        finally:
            self.alive = False
            self._watch_no_more()
            self._writer.close()
            await asyncio.to_thread(_end, self._process)
            self._fail()

    def _take(self, frame: Mapping[str, Any]) -> None:
        match frame["type"]:
            case "delta":
                self._give(frame["id"], Delta(frame["text"], frame["tokens"], frame["logprobs"]), False)
            case "loading" | "compiling":
                if self._tell is not None:
                    self._tell(frame["type"], frame.get("progress", 1.0))
            case "ready":
                self.context_length, self.dimensions = frame["context_length"], frame["dimensions"]
                if not self._ready.done():
                    self._ready.set_result(None)
            case "prefill":
                pass  # a sign of life
            case "error" if frame["id"] is None:
                self._why = frame["message"]
            case "done" if frame["finish"] == "cancelled":  # not by its client, if that still waits
                self._give(frame["id"], self._gone(), True)
            case _:
                self._give(frame["id"], _last(frame), True)

    def _give(self, id_: int, item: Delta | Done | Embedded | ProxyError, last: bool) -> None:
        if last:
            self._owed.discard(id_)
        if (inbox := self._inboxes.get(id_)) is not None:
            inbox.put_nowait(item)

    # --- the end -----------------------------------------------------------------------

    def _watch(self, seconds: float) -> None:
        """Look in that many seconds whether the process has become silent, unless that is set already."""
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Kill a process that owes something and has been silent for too long."""
        self._alarm = None
        if not self._owed and self._ready.done():
            return
        left = self._heard + self._silence_s - self._clock()
        if left > 0:
            self._watch(left)
            return
        self._why = f"it did not answer for {self._silence_s:g} seconds"
        self._process.kill()

    def _watch_no_more(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _fail(self) -> None:
        for id_ in self._owed & self._inboxes.keys():
            self._inboxes[id_].put_nowait(self._gone())
        self._owed.clear()
        if not self._ready.done():
            self._ready.set_exception(self._gone("unavailable"))

    def _gone(self, kind: Literal["upstream", "unavailable"] = "upstream") -> ProxyError:
        if self._why == "unloaded":
            return ProxyError("unavailable", "The model was unloaded.", retry_after=1.0)
        return ProxyError(kind, f"The model's process ended: {self._why or self._exit()}.")

    def _exit(self) -> str:
        code = self._process.returncode
        if code is None or code >= 0:
            return f"exit code {code}"
        name = signal.Signals(-code).name
        return f"{name}, perhaps for want of memory" if name == "SIGKILL" else name


def _last(frame: Mapping[str, Any]) -> Done | Embedded | ProxyError:
    """What ends a request."""
    match frame["type"]:
        case "done":
            return Done(
                frame["finish"],
                frame.get("matched_stop"),
                frame.get("prompt_tokens", 0),
                frame.get("completion_tokens", 0),
                frame.get("cached_tokens", 0),
            )
        case "embedded":
            return Embedded([base64.b64decode(vector) for vector in frame["vectors"]], frame["prompt_tokens"])
        case _:
            return ProxyError(frame["kind"], frame["message"], param=frame.get("param"))


def _spawn(theirs: socket.socket) -> subprocess.Popen[bytes]:
    """A process that has `theirs`, which is closed here. Takes 0.3 ms: vfork copies no memory."""
    with theirs:
        return subprocess.Popen(  # noqa: S603  our own interpreter and our own code
            [sys.executable, "-P", "-c", _COMMAND, str(_ROOT), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"ORT_DISABLE_TELEMETRY": "1"},
            start_new_session=True,  # Ctrl-C is the gateway's: it ends its models when it is done
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that has closed its socket; it has little left to do."""
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
