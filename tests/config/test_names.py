"""Aliases, groups and fallbacks: what is refused, and in which words."""

from __future__ import annotations

import pytest

from config.load import parse
from config.problems import ConfigErrors

PROVIDERS = """
[[providers]]
name = "a"
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
models = ["m", "n"]
[[providers]]
name = "b"
kind = "openai"
base_url = "http://127.0.0.1:2/v1"
models = ["m"]
"""

FINE = [
    'aliases = {x = "a/m", y = "x", z = "n", fast = "chat-fast", both = "g"}\n'
    'groups = {g = [{model = "a/m", weight = 2}, {model = "b/unlisted"}]}',
    'fallbacks = {"a/m" = ["b/m", "chat-fast"], m = ["a/n"], chat-thinking = ["b/m"]}',
    'classes = {"my model" = "chat-fast", glm = "never"}',
    'compaction = {model = "a/m"}',
    'compaction = {model = "chat-fast"}',
    'compaction = {model = "whatever is fast"}',
]

REFUSED = [
    ('aliases = {x = "c/m"}', "aliases.x: no provider is named 'c'"),
    ('aliases = {x = "chat-fats"}', "aliases.x: no provider lists 'chat-fats', did you mean \"chat-fast\"?"),
    ("groups = {g = []}", "groups.g"),
    ('groups = {g = [{model = "m"}]}', "groups.g[0].model: must be provider/model"),
    ('groups = {g = [{model = "c/m"}]}', "groups.g[0].model: no provider is named 'c'"),
    ('groups = {g = [{model = "a/m"}, {model = "a/m"}]}', "groups.g[1].model: 'a/m' is a member already"),
    ('groups = {g = [{model = "a/m", weight = 0}]}', "groups.g[0].weight"),
    ('groups = {g = [{model = "a/m", share = 1}]}', "groups.g[0].share"),
    ('groups = {"a/g" = [{model = "a/m"}]}', "can never be reached"),
    ('aliases = {g = "a/m"}\ngroups = {g = [{model = "a/m"}]}', "groups.g: is an alias too"),
    ('fallbacks = {"a/m" = ["a/m"]}', "fallbacks.a/m[0]: is the model itself"),
    ('fallbacks = {"a/m" = ["c/m"]}', "no provider is named 'c'"),
    ('fallbacks = {nothing = ["a/m"]}', "fallbacks.nothing: no provider lists 'nothing'"),
    ("fallbacks = {m = []}", "fallbacks.m"),
    ('classes = {glm = "medium"}', "classes.glm"),
    ('compaction = {model = "c/m"}', "compaction.model: no provider is named 'c'"),
]


@pytest.mark.parametrize("text", FINE)
def test_names_that_lead_somewhere(text: str) -> None:
    parse(f"{text}\n{PROVIDERS}", {}, ())


@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_names_that_do_not(text: str, words: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        parse(f"{text}\n{PROVIDERS}", {}, ())
    assert words in str(refused.value)
