"""The application under a real server, in this process, so that its coverage counts."""

from __future__ import annotations

import io
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx
import orjson
import pytest
import structlog

from app.gateway import Gateway
from app.server import build_server, listen
from app.telemetry import log
from config.schema import Config
from tests.backends.scripted import ScriptedBackend

if TYPE_CHECKING:
    from tests.app.listed import ListedBackend


class Served:
    """The server of `dragoman serve`, in a thread; use it as a context manager.

    It logs at level debug, and takes the ordinary path all the same, on which nobody looks at exchanges;
    `watched`: those look who do so at that level.
    """

    def __init__(self, config: Config, watched: bool = False) -> None:
        self.log_file = io.BytesIO()
        sink = log.configure(log.LEVELS["debug"], [], self.log_file)
        self.ready = threading.Event()
        self._server = build_server(config, self.ready.set, sink=sink)
        self.gateway: Gateway = self._server.config.app.state.gateway  # type: ignore[union-attr]
        if not watched:
            self.gateway.watch = None
        self._socket = listen("127.0.0.1", 0)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )
        self.base = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        if not self.ready.wait(10):
            raise RuntimeError("the application did not start")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.ended(15)

    def stop(self, force: bool = False) -> None:
        """What a stop signal does; `force`: what a second interrupt does."""
        self._server.should_exit = True
        self._server.force_exit = force

    def ended(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.base, trust_env=False, timeout=20, **options)

    def log(self, event: str = "request") -> list[dict[str, Any]]:
        """The log's lines of one kind."""
        lines = [orjson.loads(line) for line in self.log_file.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]

    def call_soon(self, work: Callable[[], object]) -> None:
        """Run something in the server's event loop."""
        loop = next(iter(self._server.servers)).get_loop()
        loop.call_soon_threadsafe(work)

    def settled(self) -> None:
        """Wait until nothing is under way: an exchange is logged behind its client's back."""
        deadline = time.monotonic() + 5
        while self.gateway.serving and time.monotonic() < deadline:
            time.sleep(0.005)

    def again(self) -> Self:
        """Ready for another test: nothing under way, an empty log."""
        self.settled()
        self.log_file.seek(0)
        self.log_file.truncate()
        log.configure(log.LEVELS["debug"], [], self.log_file)
        return self

    @property
    def running(self) -> bool:
        return self._thread.is_alive() and not self._server.should_exit


Serve = Callable[..., Served]


def provider(backend: ScriptedBackend, wire: str = "chat", **more: Any) -> dict[str, Any]:
    """The configuration of a provider `p` at the backend: the OpenAI kind, with one model `m`."""
    url = f"{backend.origin}/v1"
    return {"name": "p", "kind": "openai", "base_url": url, "wire": wire, "models": ["m"], **more}


STORES = ("memory", "sqlite", "sealed")


def store_config(kind: str, folder: Path) -> dict[str, Any]:
    """The configuration of a store of one of these kinds, its file in the folder."""
    if kind == "memory":
        return {"kind": "memory"}
    sealed = {"encryption_key": "k"} if kind == "sealed" else {}
    return {"kind": "sqlite", "path": str(folder / "r.db"), **sealed}


@pytest.fixture(scope="session")
def _backend() -> Iterator[ScriptedBackend]:
    with ScriptedBackend() as backend:
        yield backend


@pytest.fixture
def scripted(_backend: ScriptedBackend) -> ScriptedBackend:
    """One backend for all tests here: starting and stopping costs more than most of them."""
    _backend.clear()
    return _backend


@pytest.fixture(scope="session")
def _listed() -> Iterator[ListedBackend]:
    from tests.app.listed import ListedBackend  # late: it is written in terms of this file

    with ListedBackend() as backend:
        yield backend


@pytest.fixture
def backend(_listed: ListedBackend) -> ListedBackend:
    """The same with several accounts, each with a list of its own."""
    _listed.clear()
    _listed.lists.clear()
    _listed.listed.clear()
    return _listed


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The configuration of each kind of store that a gateway has by itself."""
    return store_config(request.param, tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="session")
def _running() -> Iterator[dict[str, Served]]:
    with ExitStack() as stack:
        kept: dict[str, Served] = {}
        yield kept
        for served in kept.values():
            served.stop()  # all at once: the wait for one is the wait for the others
            stack.callback(served.__exit__)


@pytest.fixture
def log_as_before() -> Iterator[None]:
    """Afterwards the log of the process is what it was."""
    root, uvicorn_log = logging.getLogger(), logging.getLogger("uvicorn.error")
    handlers, level, filters = root.handlers[:], root.level, uvicorn_log.filters[:]
    yield
    structlog.reset_defaults()
    root.handlers[:], uvicorn_log.filters[:] = handlers, filters
    root.setLevel(level)


@pytest.fixture
def serve(_running: dict[str, Served], log_as_before: None) -> Iterator[Serve]:
    """`serve(providers=[...], server={...}, aliases={...})`: the application, running.

    The same one for the same configuration, unless it is asked for `fresh`.
    """
    with ExitStack() as stack:
        asked: list[Served] = []

        def find(fresh: bool = False, watched: bool = False, **config: Any) -> Served:
            if fresh:
                return stack.enter_context(Served(Config.model_validate(config), watched))
            key = repr(config)
            known = _running.get(key)
            if known is None or not known.running:
                known = _running[key] = Served(Config.model_validate(config)).__enter__()
            asked.append(known)
            return known.again()

        yield find
        for each in asked:  # the log is the process's: what is told late would be told to the next test
            each.settled()
