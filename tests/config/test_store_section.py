"""The section `[store]`: what goes together, and that its secrets stay out of sight."""

from __future__ import annotations

from typing import Any

import pytest

from app.server import secrets_of
from config.load import parse
from config.problems import ConfigErrors
from config.schema import Config


def read(text: str) -> Config:
    return parse(f"[store]\n{text}", {"DB": "postgresql://u:secret@h/d"}, [])


def test_without_it_responses_are_kept_in_a_file() -> None:
    store = parse("", {}, []).store
    assert (store.kind, store.path, store.ttl_s, store.max_bytes) == ("sqlite", None, 30 * 86400, 2**30)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('kind = "postgres"', ("store", "url"), "required for kind postgres"),
        ('kind = "postgres"\nurl = "mysql://h/d"', ("store", "url"), "PostgreSQL address"),
        ('url = "postgresql://h/d"', ("store", "url"), 'only with kind = "postgres"'),
        ('kind = "memory"\npath = "x"', ("store", "path"), 'only with kind = "sqlite"'),
        ('kind = "redis"', ("store", "kind"), "sqlite"),
        ("ttl_s = 0", ("store", "ttl_s"), "greater than 0"),
        ("max_byte = 1", ("store", "max_byte"), 'did you mean "max_bytes"'),
        ('path = ""', ("store", "path"), "must not be empty"),
    ],
)
def test_faults(text: str, place: Any, words: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        read(text)
    (problem,) = caught.value.problems
    assert problem.place == place
    assert words in problem.message


def test_the_address_and_the_key_are_secrets() -> None:
    config = read('kind = "postgres"\nurl = "${DB}"\nencryption_key = "hush"')
    assert "secret" not in repr(config)
    assert "hush" not in repr(config)
    assert set(secrets_of(config)) == {"postgresql://u:secret@h/d", "secret", "hush"}
