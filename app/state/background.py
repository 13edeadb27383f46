"""Background runs of this process: a bounded number at a time, a bounded number that wait.

A run is answered like any request, by a task of its own whose listener is its log (`run_log.py`). What has
been told is written in batches, and only what is written is told on: whoever follows a run reads the log, and
can go on where they left off, through whichever process.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Mapping
from typing import Any, Literal

import orjson
import structlog

from config.schema import Background as Limits
from translators.dialect import End
from translators.errors import ProxyError

from ..ids import new_id
from ..request import Request
from ..store.runs import Key, Step
from ..stream import Client, Patience
from .run_log import RunLog
from .runs import abandon, lease, packed, sweep
from .state import Keeping, State

Answer = Callable[[Request, Client], Awaitable[None]]
"""Answers a request, whatever happens; its client is told of failures."""
Cause = Literal["lost", "timeout", "shutdown", "full"]
"""`lost`: somebody else has ended the run, or it was deleted."""

_OURS = frozenset({"timeout", "full"})
"""Causes that are failures, and not somebody's wish."""

BATCH_S = 0.1
"""Between two writes of a run's events; the first is written at once."""
MOST_UNWRITTEN = 1 << 18
"""Bytes of events that wait for the next write; then the backend waits too."""
MOST_LOGGED = 1 << 25
"""Bytes of a whole log, compressed: some hundred megabytes of events."""
LOOK_S = 0.5
"""How often a process looks whether its runs are still its own."""
RENEW_S = 3.0
"""How often it renews their leases."""
SWEEP_S = 60.0
"""How often it looks for runs of processes that have died."""
NEVER_S = 1e9
"""A run's log is told nothing to fill silences: each of its followers has its own."""
END_S = 60.0
"""How long the end of a run is tried to be written; a lease that has expired then ends it."""
LAST_WORDS_S = 3.0
"""The same while the process ends."""
_PAUSE_S = 0.5

_logger = structlog.get_logger("dragoman")


class Running:
    """One run of this process."""

    def __init__(
        self,
        key: Key,
        worker: str,
        state: State,
        request: Request,
        keeping: Keeping,
        answer: Answer,
        log: RunLog,
    ) -> None:
        self.key, self.state, self.log = key, state, log
        self.news = asyncio.Event()
        """Set, and replaced, when something was written."""
        self.cause: Cause | None = None
        self.on_over: Callable[[], None] | None = None
        """Called once, when the run has ended or was taken out."""
        self.patience_s = END_S
        self._worker, self._request, self._keeping, self._answer = worker, request, keeping, answer
        self._client: Client | None = None
        self._due, self._hurry = asyncio.Event(), asyncio.Event()
        self._relays, self._ending = False, 0.0
        self._status, self._written, self._most_s = "queued", 0, 0.0

    def stop(self, cause: Cause) -> None:
        """End it, unless it has told its end; the backend is left at once."""
        if self.log.ended or self.cause is not None:
            return
        self.cause = cause
        if cause in _OURS:
            self._request.trace.error = self._error()
        self.tell()
        if self._client is not None:
            self._client.interrupt("gone")

    def let_go(self) -> None:
        """It is over: nothing of it may know itself, or it would wait for the garbage collector."""
        self._client = self._request.keeping = None

    async def run(self, most_s: float) -> None:
        """From the start to the end, in at most `most_s`."""
        self._most_s = most_s
        writer = asyncio.create_task(self._write_on())
        limit = asyncio.get_running_loop().call_later(most_s, self.stop, "timeout")
        try:
            if self.cause is None:
                await self._answered()
        finally:
            limit.cancel()
            if self.cause != "lost":
                self.log.end("failed", self._error())
            self._end_soon()
            await writer

    async def _answered(self) -> None:
        request = self._request
        request.began, request.trace.began = time.monotonic(), time.perf_counter()
        self.log.start()
        self._due.set()
        self._client = Client(self._send, request.trace, Patience(NEVER_S))
        self._client.on_end = self._note_upstream
        await self._answer(request, self._client)

    async def _note_upstream(self, end: End, data: bytes) -> bytes:
        """The backend's id of the response, where that stores it too; it is kept with the run's own end."""
        self._keeping.upstream = end.upstream
        return data

    async def _send(self, message: Mapping[str, Any]) -> None:
        """What an ASGI server does with an answer; one that is no stream is a failure: the trace has it."""
        if message["type"] == "http.response.start":
            self._relays = message["status"] == 200
        elif self._relays and message.get("body"):
            self.log.feed(message["body"])
            self._due.set()
            if self.log.ended:
                self._end_soon()
            while self.log.size > MOST_UNWRITTEN and self.cause is None:
                await self.news.wait()

    # --- writing, by one task that nothing interrupts -------------------------------------

    def _end_soon(self) -> None:
        """Whatever is there is written at once, and then nothing more comes."""
        self._ending = self._ending or time.monotonic()
        self._due.set()
        self._hurry.set()

    async def _write_on(self) -> None:
        while self.cause != "lost" and not (self.log.ended and not self.log.size):
            await self._due.wait()
            self._due.clear()
            try:
                await self._write()
            except ProxyError as error:
                if self._ending and time.monotonic() - self._ending > self.patience_s:
                    _logger.error("background:end_not_stored", response_id=self.key[1], reason=str(error))
                    return
                self._due.set()
                await asyncio.sleep(_PAUSE_S)
            else:
                await self._pause()

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(BATCH_S):
                await self._hurry.wait()
        except TimeoutError:
            return

    async def _write(self) -> None:
        """Make durable what has been told, and tell the followers; raises `ProxyError`."""
        batch, status, record = self.log.pending(), self.log.response["status"], None
        if batch is None or self.cause == "lost":
            return
        if status != self._status:
            record = self._keeping.record(self.log.response, orjson.dumps(self.log.response))
        step = Step(*self.key, self._worker, lease(), packed(batch), record, self.log.ended)
        if not await self._is_written(step):
            self.stop("lost")
            self.cause = "lost"
            return
        self._note_status(status)
        self.log.written(batch)
        self.tell()
        self._written += len(step.batch.data)
        if self._written > MOST_LOGGED:
            self.stop("full")

    async def _is_written(self, step: Step) -> bool:
        """A connection that is lost in a commit leaves open whether it was done: then it is looked up."""
        if await self._keeping.step(self.state, step):
            return True
        run, _ = await self.state.runs(lambda runs: runs.read(*self.key, step.batch.last))
        return run is not None and (run.worker, run.last) == (self._worker, step.batch.last)

    def tell(self) -> None:
        news, self.news = self.news, asyncio.Event()
        news.set()

    def _note_status(self, status: str) -> None:
        if status != self._status:
            target = self._request.trace.target
            error = self.log.response.get("error")
            self.state.say_status(self.key[1], status, was=self._status, target=target, error=error)
            self._status = status

    def _error(self) -> ProxyError:
        """Why a run failed whose stream does not say it."""
        if self.cause == "timeout":
            most = f"{self._most_s:g} s, the longest that a background run may take"
            words = f"The response took longer than {most}."
            return ProxyError("timeout", words)
        if self.cause == "shutdown":
            return ProxyError("unavailable", "The gateway was shut down before this response was begun.")
        if self.cause == "full":
            return ProxyError("internal", "More was told of this response than could be stored of it.")
        return self._request.trace.error or ProxyError("internal", "The answer ended without a result.")


class Background:
    """The runs of one process; of those that wait each owner's begin in the order in which they came."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.worker = new_id("worker_")
        self._runs: dict[Key, Running] = {}
        self._coming: Counter[str] = Counter()
        """Runs that are being stored, by their owners."""
        self._waiting: list[Running] = []
        self._tasks: dict[asyncio.Task[None], Running] = {}
        self._watcher: asyncio.Task[None] | None = None
        self._swept = 0.0

    async def begin(
        self, state: State, request: Request, keeping: Keeping, answer: Answer, log: RunLog
    ) -> Running:
        """A run that is durable, waiting its turn; raises `ProxyError` (503) when too many do already."""
        record = keeping.record(log.response, orjson.dumps(log.response))
        if self._full_for(record.owner):
            raise _full()
        run = Running((record.owner, record.id), self.worker, state, request, keeping, answer, log)
        log.queued()
        batch = log.pending()
        assert batch is not None  # noqa: S101 - two events were just told
        self._coming[record.owner] += 1
        try:
            await state.runs(lambda runs: runs.begin(record, self.worker, lease(), packed(batch)))
        finally:
            self._coming[record.owner] -= 1
            self._coming += Counter()  # which drops zeros
        log.written(batch)
        state.say_status(record.id, "queued")
        self._runs[run.key] = run
        self._waiting.append(run)
        self._go_on()
        return run

    @property
    def keys(self) -> Container[Key]:
        """The runs that are not over, those that wait too."""
        return self._runs.keys()

    def news(self, key: Key) -> asyncio.Event | None:
        """What is set when a run has told more; None: it is not this process's."""
        run = self._runs.get(key)
        return None if run is None else run.news

    def drop(self, key: Key) -> None:
        """Somebody has ended the run, or deleted it."""
        run = self._runs.get(key)
        if run is None:
            return
        run.stop("lost")
        if run in self._waiting:
            self._waiting.remove(run)
            self._leave(run)

    def stop_waiting(self) -> None:
        """The process ends: no run is begun any more, and what is under way has little time left."""
        for run in self._runs.values():
            run.patience_s = LAST_WORDS_S
        for run in self._waiting:
            run.stop("shutdown")
        while self._waiting:
            self._start(self._waiting.pop(0))

    async def drain(self, state: State | None = None) -> None:
        """Wait until no run is left, of one state or at all."""
        while mine := [task for task, run in self._tasks.items() if state in (None, run.state)]:
            await asyncio.wait(mine)
        if state is None and self._watcher is not None:
            self._watcher.cancel()

    def _go_on(self) -> None:
        while self._waiting and len(self._tasks) < self.limits.max_running:
            self._start(self._next())
        if self._runs and (self._watcher is None or self._watcher.done()):
            self._watcher = asyncio.create_task(self._watch())

    def _full_for(self, owner: str) -> bool:
        """Whether no run of `owner` may come: one may always, so that nobody takes all there is."""
        if len(self._runs) + self._coming.total() < self.limits.max_running + self.limits.max_queue:
            return False
        return self._coming[owner] > 0 or any(key[0] == owner for key in self._runs)

    def _next(self) -> Running:
        """Whose owner has the fewest that run; of those the one that has waited longest."""
        working = Counter(run.key[0] for run in self._tasks.values())
        run = min(self._waiting, key=lambda each: working[each.key[0]])
        self._waiting.remove(run)
        return run

    def _start(self, run: Running) -> None:
        task = asyncio.create_task(self._go(run))
        self._tasks[task] = run
        task.add_done_callback(self._over)

    async def _go(self, run: Running) -> None:
        try:
            await run.run(self.limits.max_run_s)
        except Exception as fault:  # a bug: the run must not be stuck, and its lease ends it
            _logger.error("fault", route="background", response_id=run.key[1], exc_info=fault)

    def _over(self, task: asyncio.Task[None]) -> None:
        run = self._tasks.pop(task)
        self._leave(run)
        run.tell()
        self._go_on()

    def _leave(self, run: Running) -> None:
        self._runs.pop(run.key, None)
        run.let_go()
        if run.on_over is not None:
            run.on_over()

    # --- what other processes do to the runs ---------------------------------------------

    async def _watch(self) -> None:
        """While there are runs: keep their leases, and notice which somebody else has ended."""
        renewed = time.monotonic()
        while self._runs:
            renew = time.monotonic() - renewed > RENEW_S
            renewed = time.monotonic() if renew else renewed
            for state in {run.state for run in self._runs.values()}:
                try:
                    await self._look(state, renew)
                except ProxyError:  # the store is down: who writes is told
                    continue
                except Exception as fault:  # a bug: without renewed leases all of them would fail
                    _logger.error("fault", route="background", exc_info=fault)
            await asyncio.sleep(LOOK_S)

    async def _look(self, state: State, renew: bool) -> None:
        asked, coming = dict(self._runs), bool(self._coming)
        held = set(await state.runs(lambda runs: runs.of(self.worker)))
        for key, run in asked.items():
            if key not in held and run.state is state:
                self.drop(key)
        if not coming and not self._coming:
            for key in held - asked.keys() - self._runs.keys():
                await abandon(state, *key)  # its client left, or gave up, before it heard of it
        if renew:
            await state.runs(lambda runs: runs.renew(self.worker, lease()))
        if time.monotonic() - self._swept > SWEEP_S:
            self._swept = time.monotonic()
            await sweep(state)


def _full() -> ProxyError:
    message = "as many background responses wait here as may; send it again later, or without `background`"
    return ProxyError("unavailable", message, code="background_queue_full", retry_after=5)
