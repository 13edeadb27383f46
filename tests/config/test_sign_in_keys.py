"""Keys that say how to sign in to a Databricks, and which of them may stand together."""

from __future__ import annotations

import pytest

from config.load import parse
from config.problems import ConfigErrors
from config.schema import Config

HEAD = "[[providers]]\nname = 'a'\nkind = 'databricks'\n"
URL = "base_url = 'https://h'\n"
PAIR = "client_id = 'i'\nclient_secret = 's'\n"


def load(text: str) -> Config:
    return parse(text, {}, ())


@pytest.mark.parametrize(
    "keys",
    [
        URL + PAIR,
        URL + PAIR + "auth = 'oauth-m2m'",
        URL + "api_key = 'k'\nauth = 'pat'",
        URL + "auth = 'sdk'",
        URL + "config_profile = 'p'",
        "config_profile = 'p'",
        "auth = 'sdk'\nconfig_profile = 'p'",
        "auth = 'pat'",
    ],
)
def test_ways_to_sign_in(keys: str) -> None:
    (provider,) = load(HEAD + keys).providers
    assert "SecretStr('s')" not in repr(provider)


FAULTS = [
    (URL + "client_id = 'i'", ["client_id: needs client_secret beside it"]),
    (URL + "client_secret = 's'", ["client_secret: needs client_id beside it"]),
    (
        URL + PAIR + "auth = 'sdk'",
        ["client_id: has no meaning with auth sdk", "client_secret: has no meaning with"],
    ),
    (URL + "api_key = 'k'\nauth = 'sdk'", ["api_key: has no meaning with auth sdk"]),
    (URL + "api_key = 'k'\nauth = 'oauth-m2m'", ["api_key: has no meaning with auth oauth-m2m"]),
    (
        URL + PAIR + "auth = 'pat'",
        ["client_id: has no meaning with auth pat", "client_secret: has no meaning with"],
    ),
    (URL + PAIR + "api_key = 'k'", ["client_id: stands beside api_key"]),
    (URL + PAIR + "config_profile = 'p'", ["config_profile: has no meaning beside api_key or client_id"]),
    (URL + "auth = 'oauth'", ["auth: should be 'pat', 'oauth-m2m' or 'sdk'"]),
    (URL + "auth = ['pat']", ["auth: should be"]),
    (URL + "client_id = ''\nclient_secret = 's'", ["client_id: must not be empty"]),
    (PAIR, ["base_url: required for kind databricks"]),
]


@pytest.mark.parametrize(("keys", "words"), FAULTS)
def test_keys_that_contradict_each_other(keys: str, words: list[str]) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load(HEAD + keys)
    told = str(caught.value)
    assert all(each in told for each in words)


@pytest.mark.parametrize("key", ["auth = 'sdk'", PAIR, "config_profile = 'p'"])
def test_other_kinds_have_none_of_them(key: str) -> None:
    with pytest.raises(ConfigErrors, match="has no meaning for kind openai"):
        load("[[providers]]\nname = 'a'\nkind = 'openai'\nbase_url = 'http://h/v1'\n" + key)


def test_a_wrong_kind_is_told_alone() -> None:
    with pytest.raises(ConfigErrors) as caught:
        load("[[providers]]\nname = 'a'\nauth = 'sdk'\n")
    assert "auth" not in str(caught.value)
