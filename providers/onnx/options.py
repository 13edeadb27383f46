"""A local provider's own keys among its overrides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .pool import Bounds
from .process import Options

OWN_KEYS = frozenset({"threads", "num_ctx", "devices", "variant", "max_loaded", "idle_unload_s", "max_queue"})
"""Beside the profile's sections; `config.overrides` says what each may be."""


def read_options(own: Mapping[str, Any]) -> tuple[Options, Bounds]:
    """How a model is run, and how many are; checked values, absent ones have their defaults."""
    options = Options(
        threads=own.get("threads"), context=own.get("num_ctx"), devices=tuple(own.get("devices", ()))
    )
    bounds = {key: own[key] for key in ("max_loaded", "idle_unload_s", "max_queue") if key in own}
    return options, Bounds(**bounds)
