"""Times without an end: TOML can say them, no timer can wait for them."""

from __future__ import annotations

import pytest

from config.load import parse
from config.problems import ConfigErrors
from providers.profiles import BY_NAME

PROVIDER = """[[providers]]
name = "p"
kind = "openai"
base_url = "http://127.0.0.1:8000/v1"
"""
SERVER_TIMES = ["keepalive_s", "idle_timeout_s", "connect_timeout_s", "retry_budget_s", "shutdown_grace_s"]
PROVIDER_TIMES = ["queue_timeout_s", "first_token_timeout_s"]


@pytest.mark.parametrize("value", ["inf", "nan", "-inf"])
@pytest.mark.parametrize("key", [*SERVER_TIMES, *PROVIDER_TIMES])
def test_a_time_is_a_finite_number(key: str, value: str) -> None:
    line = f"{key} = {value}\n"
    text = f"[server]\n{line}{PROVIDER}" if key in SERVER_TIMES else PROVIDER + line
    with pytest.raises(ConfigErrors) as found:
        parse(text, {}, BY_NAME)
    (told,) = found.value.lines()
    assert key in told
    assert "should be" in told
