"""The example file names every setting there is, and what its comments hold is valid when it is used."""

from __future__ import annotations

import re

import pytest
from pydantic import BaseModel

from config.load import parse
from config.schema import Config, ProviderConfig, Server
from providers.profiles import BY_NAME
from tests.config.test_load import EXAMPLE, SECRETS

TEXT = EXAMPLE.read_text()


@pytest.mark.parametrize(
    ("model", "key"),
    [(model, key) for model in (Server, ProviderConfig, Config) for key in model.model_fields],
)
def test_every_key_is_in_it(model: type[BaseModel], key: str) -> None:
    """As a key or as a table; what is no default for everyone stands in a comment."""
    assert re.search(rf"^(# )?({key} = |\[+(providers\.)?{key}(\.[a-z-]+)?\]+$)", TEXT, re.MULTILINE)


def test_the_context_guard_is_in_it() -> None:
    (provider,) = (each for each in parse(TEXT, SECRETS, BY_NAME).providers if each.name == "vllm")
    rules = provider.overrides["request"]
    assert rules["context_window"] > 0
    assert rules["chars_per_token"] > 0


@pytest.mark.parametrize("key", ["client_id", "max_concurrency", "first_token_timeout_s", "config_profile"])
def test_a_key_in_a_comment_is_written_as_it_is_used(key: str) -> None:
    line = next(each for each in TEXT.splitlines() if each.startswith(f"# {key} = "))
    used = parse(
        f'[[providers]]\nname = "a"\nkind = "databricks"\nbase_url = "h"\n{line.removeprefix("# ")}\n'
        + ('client_secret = "s"\n' if key == "client_id" else ""),
        {**SECRETS, "DATABRICKS_CLIENT_ID": "id"},
        BY_NAME,
    )
    assert getattr(used.providers[0], key) is not None
