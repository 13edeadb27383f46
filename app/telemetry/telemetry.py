"""Whether exchanges are traced and measured for OpenTelemetry, and who looks at them.

The packages of the extra `otel` are imported only where something is sent. What they do lives in `otel.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from logging import DEBUG
from typing import Protocol

import structlog

from config.schema import Telemetry as Settings
from providers.extras import install, is_installed

from . import wire_log
from .watch import Exchanges, Watch

NO_EXTRA = f"traces and metrics need the extra: {install('otel')}"
_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)

_log = structlog.get_logger("dragoman.telemetry")


class Telemetry(Exchanges, Protocol):
    """What looks at exchanges for OpenTelemetry."""

    @property
    def trouble(self) -> str | None:
        """Why what is told reaches nobody, None: it does, or nothing was told yet."""
        ...

    async def aclose(self) -> None:
        """Send what is left, as far as that goes quickly."""
        ...


def is_wanted(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether somebody named a place to send to, and nobody switched it off."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return settings.endpoint is not None or any(environ.get(name, "").strip() for name in _ENDPOINTS)


def open_telemetry(settings: Settings, environ: Mapping[str, str]) -> Telemetry | None:
    """None: nothing is sent. A missing extra is a warning: variables may be set for a whole machine."""
    if not is_wanted(settings, environ):
        return None
    if not is_installed("otel"):
        _log.warning("telemetry_unavailable", reason=NO_EXTRA)
        return None
    from .otel import OpenTelemetry

    return OpenTelemetry(settings, environ)


def open_watch(
    settings: Settings, telemetry: Telemetry | None, level: int, environ: Mapping[str, str]
) -> Watch | None:
    """Everybody who looks at exchanges; None: nobody, and none pays for it. `level` is the log's."""
    those: list[Exchanges] = []
    if telemetry is not None:
        those.append(telemetry)
    if level <= DEBUG:
        from .debug_events import DebugEvents

        those.append(DebugEvents())
        if wire_log.wanted(settings.wire_log, environ):
            those.append(wire_log.WireLog())
    return Watch(those) if those else None
