"""What was learned of an Ollama's model, shown and given as configuration."""

from __future__ import annotations

import time
import tomllib
from typing import Any

import pytest

from app.quirks import as_toml, is_of
from config.schema import Config
from providers.quirks_file import Learned
from translators.rejections import Rejection

MODEL = "qwen3:8b@0123456789ab"


def learned(*path: str, value: str | None = None) -> Learned:
    return Learned("o:11434", MODEL, "ollama", Rejection(path, value=value), time.time() + 100)


@pytest.mark.parametrize("name", ["qwen3:8b", "mine/qwen3:8b", "o:11434/qwen3:8b", MODEL])
def test_it_is_found_by_the_name_without_its_digest(name: str) -> None:
    assert is_of(learned("think"), name)


@pytest.mark.parametrize("name", ["qwen3", "0123456789ab", ""])
def test_it_is_not_found_by_another(name: str) -> None:
    assert not is_of(learned("think"), name)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (learned("think"), {"reasoning": {"ask": "none"}}),
        (learned("think", value="low"), None),
        (learned("tools"), {"request": {"drop": ["tools"]}}),
    ],
)
def test_the_setting_that_says_the_same(found: Learned, wanted: Any) -> None:
    provider = {"name": "o", "kind": "ollama", "base_url": "http://o:11434"}
    written = tomllib.loads(as_toml([found], Config.model_validate({"providers": [provider]})))
    assert written["providers"][0].get("overrides") == wanted
