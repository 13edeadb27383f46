"""The process: socket, signals, the end.

One line on stderr when calls can be answered, `dragoman listening on http://HOST:PORT`. On
SIGTERM or SIGINT: no new connections, open answers may finish for `shutdown_grace_s`, what is
left then fails in its own way, exit status 0.

With several workers the socket is shared (`workers.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import cast
from urllib.parse import unquote, urlsplit

import structlog
import uvicorn

from config.schema import Config
from providers.private import secrets_in
from providers.quirks import Quirks
from providers.quirks_file import QuirksFile, state_file

from .access.keys_file import KeysReload
from .descriptors import connections_that_fit, raise_limit
from .gateway import Gateway
from .main import create_app
from .protocol import Http
from .reload import Kept, Origin, Reload, newest
from .telemetry import log
from .turns import Share, Shares, Turns
from .workers import CANNOT_START, Ready, Workers

SHARED_COUNTS = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder in which workers count together (`metrics.py`)."""

BACKLOG = 2048
IDLE_CONNECTION_S = 75
"""Longer than clients keep an idle connection, so that it is they who close it and none is
closed under a request."""

PING_S = 20.0
"""Between pings over a WebSocket: what stands between us and a client forgets connections that are silent."""

TICKS_TOLD = 10
"""Tenths of a second between two times that a worker tells the others how many requests it answers."""

FORCED_S = 1
"""The same when somebody will not wait."""

LAST_WORDS_S = 5
"""How long answers that failed at the end of the grace may take to say so."""

_log = structlog.get_logger("dragoman.config")


def run(config: Config, origin: Origin | None = None) -> None:
    """Serve until a stop signal; raises `SystemExit` when that is not possible.

    `origin`: the file that `config` was read from, which is then read again when it changes.
    """
    server = config.server
    raise_limit()
    Http.most_connections = connections_that_fit()
    sink = log.configure(log.level_from_environment(), secrets_of(config))
    several = Kept() if server.workers > 1 else contextlib.nullcontext()
    with listen(server.host, server.port) as listening, several as kept:
        announce = _Announcement(server.host, listening)

        def serve(ready: Ready, parent: int | None = None, share: Share | None = None) -> None:
            chosen, read = config, origin
            if origin is not None and kept is not None:
                chosen, read = newest(config, origin, kept)
                sink.hide(secrets_of(chosen))
            server = build_server(chosen, ready, parent, sink, quirks_of_this_machine(), share)
            if read is not None:
                reload(server, chosen, sink, read, kept)
            server.run(sockets=[listening])

        if server.workers > 1:
            with _shared_counts():
                shares = Shares(server.workers)

                def work(ready: Ready, parent: int, place: int) -> None:
                    serve(ready, parent, shares.of(place))

                sys.exit(Workers(server.workers, work, announce, listening.close, _forget).run())
        serve(announce)


@contextlib.contextmanager
def _shared_counts() -> Iterator[None]:
    """A folder for the counters of all workers, named in the environment that they inherit."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        os.environ[SHARED_COUNTS] = folder
        try:
            yield
        finally:
            del os.environ[SHARED_COUNTS]


def _forget(pid: int) -> None:
    """A worker that has died answers nothing any more; what it counted stays."""
    for file in Path(os.environ[SHARED_COUNTS]).glob(f"gauge_live*_{pid}.db"):
        file.unlink(missing_ok=True)


def build_server(
    config: Config,
    ready: Ready,
    parent: int | None = None,
    sink: log.Sink | None = None,
    quirks: Quirks | None = None,
    share: Share | None = None,
) -> Server:
    """One process's server; `ready` is called when it answers, and it ends when `parent` is gone.

    `share`: of the connections, where several processes take them from one socket.
    """
    app = create_app(config, sink=sink, quirks=quirks)
    settings = uvicorn.Config(
        app,
        http=Http,
        lifespan="on",
        ws="none",  # `protocol.py` opens them itself, with bounds of ours
        ws_ping_interval=PING_S,
        ws_ping_timeout=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing here depends on who the client is
        log_config=None,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_CONNECTION_S,
        timeout_graceful_shutdown=int(config.server.shutdown_grace_s) + LAST_WORDS_S,
    )
    gateway: Gateway = app.state.gateway
    return Server(settings, ready, config.server.shutdown_grace_s, gateway, parent, share)


def reload(server: Server, config: Config, sink: log.Sink, origin: Origin, kept: Kept | None = None) -> None:
    """Let a server follow the file that its `config` was read from."""

    async def adopt(found: Config) -> None:
        sink.hide(secrets_of(found))
        await server.gateway.reconfigure(found)

    server.reload = Reload(origin, config, adopt, kept)


class Server(uvicorn.Server):
    """What uvicorn has, with our words, our end of the grace, and an end when the parent is gone."""

    reload: Reload | None = None

    def __init__(
        self,
        config: uvicorn.Config,
        ready: Ready,
        grace_s: float,
        gateway: Gateway,
        parent: int | None,
        share: Share | None,
    ) -> None:
        super().__init__(config)
        self.gateway = gateway
        self._ready, self._grace_s, self._parent, self._share = ready, grace_s, parent, share
        self._hung_up = False
        self._keys = KeysReload(gateway)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._share is None or sockets is None:
            await super().startup(sockets)
        else:
            await super().startup([])
            turns = [Turns(each, self._protocol, self._share) for each in sockets]
            self.servers = cast("list[asyncio.base_events.Server]", turns)  # what uvicorn asks of one
        self._ready()

    def _protocol(self) -> Http:
        """As uvicorn makes one for a connection."""
        return Http(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    async def on_tick(self, counter: int) -> bool:
        if self._hung_up:
            self._hung_up = False
            self._ask_to_reload()
        if self.reload is not None:
            await self.reload.tick()
        await self._keys.tick()
        if self._share is not None:
            self._share.note(len(self.server_state.connections))
        if self._parent is not None and counter % TICKS_TOLD == 0:
            self.gateway.metrics.in_flight(len(self.gateway.serving))
        orphan = self._parent is not None and os.getppid() != self._parent
        return await super().on_tick(counter) or orphan

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for open answers as long as the grace, or until a second SIGINT."""
        self.gateway.closing = True
        ending = asyncio.get_running_loop().call_later(self._grace_s, self.gateway.end_open_answers)
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()
        if self.force_exit:
            self.gateway.end_open_answers()
            if self.server_state.tasks:
                await asyncio.wait(self.server_state.tasks, timeout=FORCED_S)
            await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """A stop that was asked for is a success: unlike uvicorn's, this raises no signal again."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGTERM, signal.SIGINT)}
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._hang_up)
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        """Only noted: a log line from within a signal handler may cut into another."""
        self._hung_up = True

    def _ask_to_reload(self) -> None:
        if self.reload is not None:
            self.reload.ask()
        else:
            why = "this gateway was started without a configuration file; start it again to change something"
            _log.warning("config_not_reloaded", errors=[why])


class _Announcement:
    """The line that tells a person, or the process that started us, where to knock."""

    def __init__(self, host: str, listening: socket.socket) -> None:
        shown = f"[{host}]" if ":" in host else host
        self._line = f"dragoman listening on http://{shown}:{listening.getsockname()[1]}"

    def __call__(self) -> None:
        print(self._line, file=sys.stderr, flush=True)  # noqa: T201


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        # `create_server` puts the address into the error's text a second time.
        reason = os.strerror(error.errno) if isinstance(error.errno, int) and error.errno > 0 else str(error)
        hint = "; --port chooses another" if error.errno == errno.EADDRINUSE else ""
        print(f"dragoman cannot listen on {host}:{port}: {reason}{hint}", file=sys.stderr)  # noqa: T201
        raise SystemExit(CANNOT_START) from error


def quirks_of_this_machine() -> Quirks:
    """What earlier processes learned of their backends, where there is a place to keep it."""
    path = state_file(os.environ)
    return Quirks(None if path is None else QuirksFile(path))


def secrets_of(config: Config) -> list[str]:
    theirs = [key for each in config.providers for key in (each.api_key, each.client_secret) if key]
    stored = [key for key in (config.store.encryption_key, config.server.seal_key) if key]
    told = config.telemetry.headers.values()
    addresses = [each.get_secret_value() for each in (config.store.url, config.limits.storage) if each]
    given = [key.get_secret_value() for key in (*config.server.api_keys, *theirs, *stored, *told)]
    given += [secret for each in config.providers for secret in secrets_in(each.overrides)]
    return given + [secret for address in addresses for secret in _secrets_in(address)]


def _secrets_in(address: str) -> list[str]:
    """The address as a whole, and its password as it stands there and as it is meant."""
    if "://" not in address:
        return []
    password = urlsplit(address).password
    return [address] if password is None else [address, password, unquote(password)]
