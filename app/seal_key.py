"""The secret that capsules of reasoning are signed with.

`server.seal_key` where it is set, so that several gateways open each other's; else 32 random bytes beside
the file of learned quirks, made once and shared by the workers of one machine. Where nothing can be kept,
each process has a key of its own: capsules then last as long as it does, which is said once.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import structlog

from config.schema import Server
from providers.quirks_file import state_file

_BYTES = 32
_PURPOSE = b"dragoman capsules, version 1: "
_log = structlog.get_logger("dragoman")


class SealKey:
    """The key, found when it is first asked for: most processes seal nothing."""

    def __init__(self, server: Server, environ: Mapping[str, str] = os.environ) -> None:
        self._server, self._environ = server, environ
        self._key: bytes | None = None

    def __call__(self) -> bytes:
        if self._key is None:
            self._key = hashlib.sha256(_PURPOSE + self._secret()).digest()
        return self._key

    def _secret(self) -> bytes:
        told = self._server.seal_key
        if told is not None:
            return told.get_secret_value().encode()
        quirks = state_file(self._environ)
        try:
            if quirks is None:
                raise OSError("there is no home directory")
            return _kept(quirks.with_name("seal_key"))
        except OSError as error:
            reason = error.strerror or str(error)
            _log.warning("seal_key:not_kept", reason=reason, instead="set server.seal_key")
            return os.urandom(_BYTES)


def _kept(path: Path) -> bytes:
    """What the file holds; it is made, whole, where there is none. Raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        _make(path)
    found = path.read_bytes()
    if len(found) != _BYTES:
        raise OSError(f"{path} does not hold {_BYTES} bytes")
    return found


def _make(path: Path) -> None:
    """A link gives a name only where there is none: of two processes, one makes the key of both."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")  # of mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(os.urandom(_BYTES))
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
