"""The file of API keys: what is in it, and what is said of its faults."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from config.keys import KeyLimits, hash_of, new_key, parse_keys, with_key, without_key
from config.problems import ConfigErrors

HASH = hash_of("a key")
OTHER = hash_of("another key")
WHOLE = f"""
# whose: the build
[[keys]]
name = "ci"  # a comment
hash = "{HASH}"
owner = "team"
models = [
  "p/*",
  "m",
]
classes = ["chat-fast", "embedding"]
expires = 2027-01-31T12:00:00+02:00
disabled = false
[keys.limits]
requests_per_minute = 60
tokens_per_minute = 1000
tokens_per_day = 5000
concurrency = 4

[[keys]]
name = "other"
hash = "{OTHER}"
"""


def test_everything_that_a_key_may_have() -> None:
    ci, other = parse_keys(WHOLE)
    assert (ci.name, ci.hash, ci.holder, ci.models) == ("ci", HASH, "team", ("p/*", "m"))
    assert ci.classes == ("chat-fast", "embedding")
    assert ci.limits == KeyLimits(
        requests_per_minute=60, tokens_per_minute=1000, tokens_per_day=5000, concurrency=4
    )
    assert ci.expires == datetime(2027, 1, 31, 10, tzinfo=UTC)
    assert (other.holder, other.models, other.classes, other.limits) == ("other", None, None, KeyLimits())
    assert parse_keys("") == ()


@pytest.mark.parametrize("written", ["2027-01-31", "2027-01-31T00:00:00", "2027-01-31T00:00:00Z"])
def test_a_time_without_an_offset_is_utc(written: str) -> None:
    (key,) = parse_keys(f'[[keys]]\nname = "a"\nhash = "{HASH}"\nexpires = {written}')
    assert key.expires == datetime(2027, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f'[[keys]]\nnam = "a"\nhash = "{HASH}"',
            ["1: keys[0].name: is required", 'unknown key, did you mean "name"?'],
        ),
        (f'[[key]]\nname = "a"\nhash = "{HASH}"', ['key: unknown key, did you mean "keys"?']),
        (
            '[[keys]]\nname = "a"\nhash = "{H}"\nlimits = {{request_per_minute = 1}}',
            ['did you mean "requests_per_minute"?'],
        ),
        (
            '[[keys]]\nname = "a"\nhash = "{H}"\nlimits = {{concurrency = 0}}',
            ["concurrency: should be greater than"],
        ),
        (
            '[[keys]]\nname = "a"\nhash = "{H}"\nlimits = {{concurrency = true}}',
            ["must not be true or false"],
        ),
        ('[[keys]]\nname = "a"\nhash = "{H}"\nmodels = []', ["4: keys[0].models: must not be empty"]),
        ('[[keys]]\nname = "a"\nhash = "{H}"\nclasses = ["fast"]', ["classes[0]: should be 'chat-thinking'"]),
        ('[[keys]]\nname = "a"\nhash = "{H}"\nexpires = 1', ["must be a date or a time"]),
        ('[[keys]]\nname = "A"\nhash = "{H}"', ["may hold only a-z, 0-9 and -"]),
        (
            '[[keys]]\nname = "a"\nhash = "{H}"\n[[keys]]\nname = "a"\nhash = "{H}"',
            ["5: keys[1].name: is that of keys[0] too", "6: keys[1].hash: is that"],
        ),
        ('keys = "x"', ["keys: must be a list of tables: begin each key with [[keys]]"]),
        ("[[keys", ["Expected"]),
    ],
)
def test_every_fault_is_told_with_its_line(text: str, said: list[str]) -> None:
    with pytest.raises(ConfigErrors) as caught:
        parse_keys(text.replace("{H}", HASH).replace("{{", "{").replace("}}", "}"))
    for each in said:
        assert each in str(caught.value)


@pytest.mark.parametrize("given", ["sk-the-key-itself-4711", "md5:00", "sha256:zz", HASH + "0", HASH.upper()])
def test_what_is_no_hash_is_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        parse_keys(f'[[keys]]\nname = "a"\nhash = "{given}"')
    assert "keys[0].hash: must be" in str(caught.value)
    assert given not in str(caught.value)


def test_keys_are_long_and_never_the_same() -> None:
    made = {new_key() for _ in range(50)}
    assert len(made) == 50
    assert all(key.startswith("sk-dragoman-") and len(key) >= 12 + 43 for key in made)


def test_revoking_changes_one_switch_and_keeps_the_rest() -> None:
    text = without_key(WHOLE, "ci")
    assert [key.disabled for key in parse_keys(text)] == [True, False]
    assert "# whose: the build" in text
    assert text.count("disabled") == 1
    text = without_key(text, "other")
    assert [key.disabled for key in parse_keys(text)] == [True, True]
    assert without_key(text, "other") == text


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (WHOLE, "othr", "no key is named 'othr', did you mean \"other\"?"),
        (f'keys = [{{name = "a", hash = "{HASH}"}}]', "a", "write `disabled = true`"),
        ("[[keys]]\n", "a", "is required"),
    ],
)
def test_what_cannot_be_revoked_says_why(text: str, name: str, said: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        without_key(text, name)
    assert said in str(caught.value)


def test_a_key_is_added_once() -> None:
    entry = f'[[keys]]\nname = "new"\nhash = "{hash_of("x")}"\n'
    text = with_key(WHOLE.rstrip("\n"), entry, "new")
    assert text.startswith(WHOLE.rstrip("\n"))
    assert [key.name for key in parse_keys(text)] == ["ci", "other", "new"]
    assert with_key("", entry, "new") == entry
    with pytest.raises(ConfigErrors):
        with_key(text, entry, "new")
