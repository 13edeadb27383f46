"""A real Dragoman process: the installed command, a configuration file, a free port."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import httpx
import orjson

COMMAND = Path(sys.executable).with_name("dragoman")
_LISTENING = re.compile(r"^dragoman listening on (http://\S+)$", re.MULTILINE)
_START_S = 20.0


def toml(value: Any) -> str:
    """A value as TOML; tables are written inline."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml(key)} = {toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return orjson.dumps(value).decode()


def config_text(
    providers: Sequence[Mapping[str, Any]],
    *,
    aliases: Mapping[str, str] | None = None,
    server: Mapping[str, Any] | None = None,
) -> str:
    """A configuration file for these providers."""
    lines = ["[server]", *(f"{key} = {toml(value)}" for key, value in (server or {}).items())]
    for provider in providers:
        lines += ["", "[[providers]]", *(f"{key} = {toml(value)}" for key, value in provider.items())]
    if aliases:
        lines += ["", "[aliases]", *(f"{toml(alias)} = {toml(target)}" for alias, target in aliases.items())]
    return "\n".join(lines) + "\n"


class Gateway:
    """`dragoman serve` on a free port; use it as a context manager.

    It runs in `folder` with a bare environment, so that nothing of the developer's (keys,
    configuration, proxies) reaches it.
    """

    def __init__(
        self,
        folder: Path,
        config: str | None = None,
        *,
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        files: int | None = None,
    ) -> None:
        """`files`: how many descriptors it may have."""
        self._files = files
        self._folder = folder
        self._log = folder / "gateway.log"
        bare = {"PATH": os.environ["PATH"], "HOME": str(folder), "DRAGOMAN_LOG_LEVEL": "debug"}
        self._env = {**bare, **(env or {})}
        self._arguments = list(arguments)
        if config is not None:
            path = folder / "gateway.toml"
            path.write_text(config)
            self._arguments += ["--config", str(path)]
        self.base = ""
        self.start_seconds = 0.0

    def __enter__(self) -> Self:
        argv = [str(COMMAND), "serve", *self._arguments, "--host", "127.0.0.1", "--port", "0"]
        if self._files is not None:
            argv = ["sh", "-c", f'ulimit -n {self._files} && exec "$0" "$@"', *argv]
        began = time.monotonic()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                argv, cwd=self._folder, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            self.base = self._wait_until_listening(began + _START_S)
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.monotonic() - began
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log(self) -> str:
        """Everything it wrote to stdout and stderr so far."""
        return self._log.read_text(errors="replace")

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.base, trust_env=False, timeout=30, **options)

    def stop(self) -> int:
        """Ask it to end, as a service manager does; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait(5)

    def _wait_until_listening(self, deadline: float) -> str:
        while time.monotonic() < deadline:
            if found := _LISTENING.search(self.log()):
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise RuntimeError(f"the gateway did not start:\n{self.log()[-4000:]}")
