"""A gateway for one command: `dragoman run -- CMD` and `dragoman codex`.

The gateway listens on a free port of this machine for as long as the command runs. What the command needs to
know of it is in its environment (or, for Codex, in its own options); no file of anybody is touched. Signals
reach the command, and its exit status is ours. Nothing of ours goes to stdout, which is the command's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, Self

from config.schema import Config
from providers.catalog import Catalog

from ..gateway import Gateway
from ..routing.ranked import Query, ranked
from ..server import build_server, listen, quirks_of_this_machine, secrets_of
from ..telemetry import log
from .configuration import say
from .launch_commands import NOT_FOUND

NOT_EXECUTABLE = 126
START_S = 15.0
LISTED_S = 5.0
"""How long the model lists of the backends are waited for, before a model is chosen."""
NO_KEY = "dragoman"
"""Sent by clients that insist on a key where none is asked; Codex reads no catalogue without one."""
CODEX_KEY = "DRAGOMAN_CODEX_KEY"
PROVIDER = "dragoman"
HERE = "127.0.0.1"
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
TYPED = (signal.SIGINT, signal.SIGQUIT)
"""What a terminal sends to every process in its foreground, the command included."""
_PROXIES = ("http_proxy", "all_proxy")


class NotStarted(Exception):
    """There is no gateway; the words say why."""


@dataclass(frozen=True, slots=True)
class Running:
    """The gateway of one command."""

    base_url: str
    """Up to and including `/v1`."""
    key: str
    catalog: Catalog
    loop: asyncio.AbstractEventLoop
    """Where all of the gateway happens, in another thread."""


def run(config: Config, command: Sequence[str], log_file: Path | None = None) -> int:
    """Run `command` against a gateway of its own; the exit status. Raises `NotStarted`."""
    with running(config, log_file) as gateway:
        return execute(command, environment(gateway, os.environ))


def codex(config: Config, arguments: Sequence[str], log_file: Path | None = None) -> int:
    """Run Codex with this gateway as its provider; `arguments` are Codex's own. Raises `NotStarted`."""
    with running(config, log_file) as gateway:
        chosen = None if names_model(arguments) else _choose(gateway)
        command = ["codex", *codex_options(gateway.base_url, chosen), *arguments]
        return execute(command, {**os.environ, **past_proxies(os.environ), CODEX_KEY: gateway.key})


def _choose(gateway: Running) -> str | None:
    chosen = first_model(gateway)
    if chosen is None:
        say("dragoman: no model is listed; name one: dragoman codex -m NAME")
    else:
        say(f"dragoman: Codex uses {chosen}; another: dragoman codex -m NAME; all: dragoman models")
    return chosen


def environment(gateway: Running, own: Mapping[str, str]) -> dict[str, str]:
    """`own` with the variables by which OpenAI's clients and those made after them find the gateway."""
    return {
        **own,
        **past_proxies(own),
        "OPENAI_BASE_URL": gateway.base_url,
        "OPENAI_API_BASE": gateway.base_url,
        "OPENAI_API_KEY": gateway.key,
        "DRAGOMAN_BASE_URL": gateway.base_url,
    }


def past_proxies(own: Mapping[str, str]) -> dict[str, str]:
    """What keeps a client from asking a proxy of the environment for a server on this machine."""
    if not any(own.get(name) or own.get(name.upper()) for name in _PROXIES):
        return {}
    given = own.get("no_proxy") or own.get("NO_PROXY")
    return dict.fromkeys(("no_proxy", "NO_PROXY"), f"{given},{HERE}" if given else HERE)


def codex_options(base_url: str, model: str | None) -> list[str]:
    """Codex's `-c` options for this provider; its values are TOML."""
    table = (
        f'{{name="Dragoman",base_url="{base_url}",wire_api="responses",'
        f'env_key="{CODEX_KEY}",model_catalog_url="{base_url}/models"}}'
    )
    settings = [f"model_providers.{PROVIDER}={table}", f'model_provider="{PROVIDER}"']
    if model is not None:
        settings.append(f"model={_toml_text(model)}")
    return [word for setting in settings for word in ("-c", setting)]


def names_model(arguments: Sequence[str]) -> bool:
    """Whether Codex's own options choose a model (`-m x`, `--model=x`, `-c model=x`), or a profile."""
    before = ""
    for word in takewhile(lambda word: word != "--", arguments):
        name, _, value = word.partition("=")
        if word[:2] in ("-m", "-p") or name in ("--model", "--profile"):
            return True
        setting = word[2:] if word.startswith("-c") else value if name == "--config" else ""
        if before in ("-c", "--config"):
            setting = word
        if setting.lstrip("=").partition("=")[0].strip() == "model":
            return True
        before = word
    return False


def first_model(gateway: Running) -> str | None:
    """The best model with tools that is listed by now, or within a few seconds; None: there is none."""
    return asyncio.run_coroutine_threadsafe(_first_model(gateway.catalog), gateway.loop).result()


async def _first_model(catalog: Catalog) -> str | None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LISTED_S):
            while catalog.loading:  # noqa: ASYNC110 - once, at the start
                await asyncio.sleep(0.02)
    found = (each.card for each in ranked(catalog.directory(), Query()) if each.card.tools is not False)
    return next((card.target for card in found), None)


@contextlib.contextmanager
def running(config: Config, log_file: Path | None) -> Iterator[Running]:
    """The gateway in a thread of this process, on a free port; its log goes to `log_file`, or nowhere."""
    started: Future[asyncio.AbstractEventLoop] = Future()
    with _log_to(log_file) as file, listen(HERE, 0) as listening:
        sink = log.configure(log.level_from_environment(), secrets_of(config), file)
        server = build_server(
            config,
            lambda: started.set_result(asyncio.get_running_loop()),
            sink=sink,
            quirks=quirks_of_this_machine(),
        )
        gateway: Gateway = server.config.app.state.gateway  # type: ignore[union-attr]

        def serve() -> None:
            try:
                server.run(sockets=[listening])
            finally:
                if not started.done():
                    started.set_exception(NotStarted("the gateway ended as it started; --log FILE tells why"))

        thread = threading.Thread(target=serve, name="gateway")
        thread.start()
        try:
            loop = _result(started)
            keys = config.server.api_keys
            key = keys[0].get_secret_value() if keys else NO_KEY
            yield Running(f"http://{HERE}:{listening.getsockname()[1]}/v1", key, gateway.catalog, loop)
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


def _result(started: Future[asyncio.AbstractEventLoop]) -> asyncio.AbstractEventLoop:
    try:
        return started.result(START_S)
    except TimeoutError as error:
        raise NotStarted(f"the gateway did not start within {START_S:g} s") from error


def execute(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run `command` to its end; its exit status, 128 and the signal's number where one ended it."""
    with _Forwarding() as forwarding:
        try:
            child = subprocess.Popen(list(command), env=dict(environ))  # noqa: S603 - the user's own command
        except FileNotFoundError:
            say(f"dragoman: {command[0]}: command not found")
            return NOT_FOUND
        except OSError as error:
            say(f"dragoman: {command[0]}: {error.strerror}")
            return NOT_EXECUTABLE
        forwarding.to(child)
        status = child.wait()
    return status if status >= 0 else 128 - status


class _Forwarding:
    """While entered, the signals that this process gets are the command's.

    Those that are ignored (`nohup`) stay so, for us and for the command, which inherits that.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in FORWARDED:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._forward)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def to(self, child: subprocess.Popen[bytes]) -> None:
        """Name the command, and let it have what came before it was there."""
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._child is None:
            self._early.append(number)
        elif number not in TYPED or not _shares_foreground(self._child.pid):
            self._child.send_signal(number)


def _shares_foreground(pid: int) -> bool:
    """Whether a terminal's keys reach both this process and `pid`."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except OSError:  # there is none
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp() == os.getpgid(pid)
    except OSError:  # `pid` has ended, or the terminal is gone
        return False
    finally:
        os.close(terminal)


@contextlib.contextmanager
def _log_to(path: Path | None) -> Iterator[BinaryIO]:
    try:
        file = open(os.devnull if path is None else path, "ab")  # noqa: SIM115 - the yield is not part of the try
    except OSError as error:
        raise NotStarted(f"--log: {path}: {error.strerror}") from error
    with file:
        yield file


def _toml_text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
