"""What `GET /ready` tells: whether calls can be answered, and what of the gateway is not as it should be.

Not ready (503) is who can answer no call at all: no provider is usable, or the process is about to end.
Anything less is `degraded` with status 200: taking a gateway out of service because its store is gone would
also end the calls that need none (`store: false`, Chat, embeddings).
"""

from __future__ import annotations

from typing import Any

import orjson

from translators.errors import ProxyError

from .events import local_models
from .gateway import Gateway


async def readiness(gateway: Gateway) -> tuple[ProxyError | None, bytes]:
    """The failure when it is not ready, and the body either way."""
    trouble = await _trouble(gateway)
    reason = "the process is about to end" if gateway.closing else gateway.not_ready()
    if reason is not None:
        error = ProxyError("unavailable", f"not ready: {reason}", code="not_ready")
        told = {"error": error.body(), "status": "not_ready", "not_ready": trouble}
        return error, orjson.dumps(told)
    said: dict[str, Any] = {"status": "degraded" if trouble else "ready"}
    if trouble:
        said["not_ready"] = trouble
    if local := local_models(gateway.catalog.providers):
        said["models"] = local
    return None, orjson.dumps(said)


async def _trouble(gateway: Gateway) -> dict[str, Any]:
    """What is not as it should be: providers by name, the keys file, and sections of the configuration."""
    found: dict[str, Any] = {}
    catalog = gateway.catalog
    providers = {name: f"its list of models: {reason}" for name, reason in catalog.faults.items()}
    providers |= {each.name: each.unavailable for each in catalog.providers if each.unavailable is not None}
    if providers:
        found["providers"] = providers
    if gateway.state is not None and (reason := await gateway.state.trouble()) is not None:
        found["store"] = reason
    if gateway.telemetry is not None and (reason := gateway.telemetry.trouble) is not None:
        found["telemetry"] = reason
    if gateway.keys_of.fault is not None:
        found["keys_file"] = gateway.keys_of.fault
    return {**found, **gateway.lacking}
