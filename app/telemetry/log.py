"""JSON lines on stdout, one for each request; nothing secret in any of them.

The line "dragoman listening on ..." and what the command line says to a person go to stderr.
Everything goes through structlog, what libraries log included; only the request line is handed
to the sink directly, because a walk through the processors costs more than making the line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, MutableMapping, Sequence
from datetime import UTC, datetime
from typing import Any, BinaryIO

import orjson
import structlog

from translators.redaction import redact, without_secrets

from ..repairs import sequence_repaired
from .trace import Trace

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}

_TEXTS = ("error", "detail", "reason", "error_message")
"""Fields that may quote a backend or a library."""
_MASK = b"[redacted]"

Event = MutableMapping[str, Any]


class Sink:
    """Where lines go. `secrets` (keys of both sides) appear in none of them, whatever is logged.

    The file is buffered, and flushed once for all lines of one turn of the event loop: a flush
    is a system call, and under load a turn serves several requests.
    """

    def __init__(self, file: BinaryIO | None = None, level: int = 20, secrets: Sequence[str] = ()) -> None:
        self.level = level
        self._file = file
        self._secrets: list[bytes] = []
        self.hide(secrets)
        self._due = False
        self.count: Callable[[str], None] | None = None
        """Told the name of every event that is logged, but for requests and what goes over the wire."""

    def counted(self, _logger: object, _method: str, event: Event) -> Event:
        """One of structlog's processors."""
        name = event["event"]
        if self.count is not None and not name.startswith("wire:"):
            self.count(name)
        return event

    def hide(self, secrets: Sequence[str]) -> None:
        """Mask these from now on; a shorter one would mask ordinary words and hides nothing worth hiding."""
        new = dict.fromkeys(secret.encode() for secret in secrets if len(secret) >= 6)
        self._secrets += [secret for secret in new if secret not in self._secrets]

    def render(self, _logger: object, _method: str, event: Event) -> bytes:
        """The last of structlog's processors."""
        for key in _TEXTS:
            text = event.get(key)
            if isinstance(text, str):
                event[key] = redact(text)
        if "exception" in event:  # a stack, which `redact` would cut
            event["exception"] = without_secrets(event["exception"])
        try:
            line = orjson.dumps(event, default=str, option=orjson.OPT_UTC_Z)
        except orjson.JSONEncodeError:  # half a surrogate pair, a number beyond 64 bits
            line = orjson.dumps({key: _as_text(value) for key, value in event.items()})
        for secret in self._secrets:
            if secret in line:
                line = line.replace(secret, _MASK)
        return line

    def msg(self, line: bytes) -> None:
        file = sys.stdout.buffer if self._file is None else self._file
        with contextlib.suppress(OSError):  # whoever read the log is gone; serving goes on
            file.write(line + b"\n")
        if self._due:
            return
        try:
            asyncio.get_running_loop().call_soon(self._flush, file)
        except RuntimeError:  # no event loop: the process starts or ends
            self._flush(file)
        else:
            self._due = True

    debug = info = warning = error = msg

    def _flush(self, file: BinaryIO) -> None:
        self._due = False
        with contextlib.suppress(OSError):
            file.flush()


def _as_text(value: object) -> str:
    return str(value).encode("utf-8", "replace").decode()


def level_from_environment() -> int:
    """`DRAGOMAN_LOG_LEVEL`: debug, info, warning or error; anything else is info."""
    return LEVELS.get(os.environ.get("DRAGOMAN_LOG_LEVEL", "").strip().lower(), LEVELS["info"])


def configure(level: int, secrets: Sequence[str] = (), file: BinaryIO | None = None) -> Sink:
    """Set up the log of the process and give its sink; `file` None is stdout."""
    sink = Sink(file, level, secrets)
    structlog.configure(
        processors=[
            sink.counted,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            sink.render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: sink,
    )
    _adopt_stdlib(max(level, logging.WARNING))
    return sink


class Log:
    """What the service says of itself."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def exchange(self, trace: Trace, probe: bool = False) -> None:
        """The one line of a request: a warning when we or the backend failed it."""
        level = "warning" if trace.status >= 500 else "debug" if probe else "info"
        if LEVELS[level] >= self._sink.level:
            event = {"event": "request", "level": level, "timestamp": datetime.now(UTC), **trace.fields()}
            self._sink.msg(self._sink.render(None, level, event))
        if trace.repairs and (repaired := sequence_repaired(trace)) is not None:
            structlog.get_logger("dragoman").info("provider:tool_sequence_repaired", **repaired)

    def odd_stream(self, trace: Trace) -> None:
        """A stream in which something was illegal, mended or not: what, and how often."""
        logger = structlog.get_logger("dragoman")
        about = {"request_id": trace.id.decode(), "target": trace.target, "lane": trace.lane}
        logger.warning("odd_stream", **about, violations=dict(trace.violations))

    def fault(self, trace: Trace, error: Exception) -> None:
        """A bug of ours, with its stack."""
        logger = structlog.get_logger("dragoman")
        logger.error("fault", request_id=trace.id.decode(), route=trace.route, exc_info=error)


class _Handler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger("dragoman")
        say = logger.error if record.levelno >= logging.ERROR else logger.warning
        say("library", logger=record.name, detail=record.getMessage(), exc_info=record.exc_info)


def _adopt_stdlib(level: int) -> None:
    """Libraries' warnings and errors come out in our form; their chatter below that is left out."""
    logging.basicConfig(handlers=[_Handler(level)], level=level, force=True)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        library = logging.getLogger(name)
        library.handlers, library.propagate = [], True
    logging.getLogger("uvicorn.error").addFilter(_not_about_websockets)


_OF_WEBSOCKETS = ("Unsupported upgrade", "WebSocket library", "Invalid UTF-8 sequence")


def _not_about_websockets(record: logging.LogRecord) -> bool:
    """Of every refused upgrade uvicorn warns twice; the 426 in our own log says it already.

    Of a client's bad UTF-8 it tells with a stack, like of a fault of ours; the client gets close code 1007.
    """
    message = record.getMessage()
    return not any(words in message for words in _OF_WEBSOCKETS)
