"""Keys of the keys file: who is let in, whose responses are whose."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from app.access.auth import Keys
from config.keys import Key, hash_of
from translators.errors import ProxyError

NOW = datetime(2027, 1, 1, tzinfo=UTC).timestamp()


def keys(*entries: dict[str, Any], plain: tuple[str, ...] = ()) -> Keys:
    found = [Key.model_validate({"hash": hash_of(f"key-{each['name']}"), **each}) for each in entries]
    return Keys(plain, found, clock=lambda: NOW)


def bearer(key: str) -> dict[bytes, bytes]:
    return {b"authorization": f"Bearer {key}".encode()}


def refusal(of: Keys, headers: dict[bytes, bytes]) -> ProxyError:
    with pytest.raises(ProxyError) as caught:
        of.admit(headers)
    assert (caught.value.http_status, caught.value.body()["code"]) == (401, "invalid_api_key")
    return caught.value


def test_a_key_of_the_file_and_a_plain_one() -> None:
    both = keys({"name": "a"}, plain=("plain",))
    access = both.admit(bearer("key-a"))
    assert access is not None
    assert (access.name, access.scope, access.limits) == ("a", None, None)
    assert both.admit(bearer("plain")) is None
    assert both.admit({b"x-api-key": b"key-a"}) is access
    refusal(both, bearer("key-b"))
    refusal(both, {})
    refusal(both, bearer(hash_of("key-a")))
    refusal(both, bearer(hash_of("key-a").removeprefix("sha256:")))


def test_either_header_may_hold_the_key() -> None:
    """So that the other can carry a backend's, where the configuration passes that on."""
    both = keys({"name": "a"}, plain=("plain",))
    assert both.admit({**bearer("sk-theirs"), b"x-api-key": b"plain"}) is None
    access = both.admit({**bearer("sk-theirs"), b"x-api-key": b"key-a"})
    assert access is not None
    assert access.name == "a"


def test_an_empty_file_lets_nobody_in() -> None:
    refusal(keys(), {})
    refusal(keys(), bearer(""))
    assert keys().asked


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"disabled": True}, "is disabled"),
        ({"expires": "2026-12-31T23:59:59Z"}, "has expired"),
        ({"expires": "2027-01-01T00:00:00Z"}, "has expired"),
    ],
)
def test_a_key_that_is_no_longer_taken(entry: dict[str, Any], said: str) -> None:
    assert said in refusal(keys({"name": "a", **entry}), bearer("key-a")).message


def test_a_key_expires_while_the_gateway_serves() -> None:
    found = Key(name="a", hash=hash_of("k"), expires=datetime.fromtimestamp(NOW + 60, UTC))
    time = iter([NOW, NOW + 59, NOW + 60])
    of = Keys((), [found], clock=lambda: next(time))
    assert of.admit(bearer("k")) is not None
    assert of.admit(bearer("k")) is not None
    refusal(of, bearer("k"))


def test_an_owner_outlives_its_key() -> None:
    old, new = keys({"name": "a"}), keys({"name": "a", "hash": hash_of("rotated")}, {"name": "b"})
    assert old.owner(bearer("key-a")) == new.owner(bearer("rotated"))
    assert new.owner(bearer("key-b")) != new.owner(bearer("rotated"))
    shared = keys({"name": "a", "owner": "team"}, {"name": "b", "owner": "team"})
    assert shared.owner(bearer("key-a")) == shared.owner(bearer("key-b"))


def test_the_owner_is_that_of_the_key_that_let_in() -> None:
    """What else a client sends is no way to another's responses."""
    of = keys({"name": "a"}, plain=("plain",))
    assert of.owner({**bearer("sk-any-1"), b"x-api-key": b"plain"}) == of.owner(bearer("plain"))
    assert of.owner({**bearer("sk-any-2"), b"x-api-key": b"plain"}) == of.owner(bearer("plain"))
    assert of.owner({**bearer("plain"), b"x-api-key": b"sk-any"}) == of.owner(bearer("plain"))
    assert Keys(()).owner(bearer("any")) == "local"


def test_only_a_key_of_the_gateway_is_one() -> None:
    of = keys({"name": "a", "disabled": True}, plain=("plain",))
    assert [of.is_key(each) for each in (b"plain", b"key-a", b"sk-theirs", b"")] == [True, True, False, False]


def test_no_key_is_in_a_repr() -> None:
    of = keys({"name": "a"}, plain=("plain-key-4711",))
    shown = repr(of) + repr(vars(of)) + repr(of.admit(bearer("key-a")))
    assert "plain-key-4711" not in shown
    assert "key-a" not in shown
