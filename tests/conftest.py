"""What every test may use: scripted backends and real gateway processes, all on 127.0.0.1.

Hypothesis has two profiles: `dev` (default) is quick, `ci` looks longer; HYPOTHESIS_PROFILE chooses.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.backends.gateway import Gateway, config_text
from tests.backends.scripted import ScriptedBackend

for _name, _examples in {"dev": 60, "ci": 1000}.items():
    settings.register_profile(
        _name, max_examples=_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

_STATE = tempfile.TemporaryDirectory(prefix="dragoman-state-", ignore_cleanup_errors=True)
os.environ["XDG_STATE_HOME"] = _STATE.name  # nothing is kept among the developer's own


@pytest.fixture
def scripted() -> Iterator[ScriptedBackend]:
    """A backend that answers by the book until the test says otherwise."""
    with ScriptedBackend() as backend:
        yield backend


StartGateway = Callable[..., Gateway]


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[StartGateway]:
    """`start_gateway(providers, aliases=..., server=..., env=...)`: a running Dragoman process."""
    with ExitStack() as stack:
        count = 0

        def start(
            providers: Sequence[Mapping[str, Any]],
            *,
            env: Mapping[str, str] | None = None,
            **config: Any,
        ) -> Gateway:
            nonlocal count
            count += 1
            folder = tmp_path / f"gateway{count}"
            folder.mkdir()
            return stack.enter_context(Gateway(folder, config_text(providers, **config), env=env))

        yield start
