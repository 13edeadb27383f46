"""Keys, scopes and limits where little happens otherwise."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from app.access.limits import Left, Window, duration, tokens_of, with_limits
from app.access.scopes import Scope
from app.cli.keys import _replace
from app.telemetry.trace import Trace
from config.keys import without_key
from config.problems import ConfigErrors
from providers.catalog import Catalog
from providers.directory import Names
from providers.private import secrets_in
from providers.unavailable import UnavailableProvider
from tests.app.keyed import entry
from translators.errors import ProxyError
from translators.ir import Usage

NOBODY = UnavailableProvider("p", "openai", "not here")


class Loading:
    def find(self, name: str, *, embeddings: bool = False) -> Any:
        raise ProxyError(
            "unavailable", f"the model list of secret-provider is being loaded: {name}", retry_after=1
        )


def test_a_list_that_is_being_loaded_is_told_without_its_name() -> None:
    with pytest.raises(ProxyError) as caught:
        Scope(["a/*"], None).find(cast(Catalog, Loading()), "x")
    assert (caught.value.http_status, caught.value.retry_after) == (503, 1)
    assert "secret-provider" not in caught.value.message


def test_what_a_scope_keeps_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.access.scopes._KEPT", 4)
    scope = Scope(["p/*"], None)
    catalog = Catalog([NOBODY], Names(), {"p": ["m"]})
    for number in range(20):
        assert scope.find(catalog, f"p/{number}").choices[0].target.model == str(number)
    assert len(scope._found) <= 4


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("p/m", {"p/m"}),
        ("p/*", {"p/m", "p/M", "p/org/m"}),
        ("m", {"p/m", "q/m"}),
        ("org/*", set[str]()),
        ("*/org/*", {"p/org/m"}),
        ("org*", {"p/org/m"}),
        ("?", {"p/m", "p/M", "q/m"}),
        ("*", {"p/m", "p/M", "q/m", "p/org/m"}),
    ],
)
def test_patterns(pattern: str, names: set[str]) -> None:
    other = UnavailableProvider("q", "openai", "not here")
    catalog = Catalog([NOBODY, other], Names(), {"p": [], "q": []})
    scope = Scope([pattern], None)
    allowed = set()
    for name in ("p/m", "p/M", "q/m", "p/org/m"):
        with suppress(ProxyError):
            allowed.add(scope.find(catalog, name).choices[0].target.id)
    assert allowed == names


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.0201, "21ms"),
        (1, "1s"),
        (59.2, "1m0s"),
        (360, "6m0s"),
        (3600, "1h0m0s"),
        (86399.5, "24h0m0s"),
    ],
)
def test_durations_are_written_as_openai_does(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_of_two_windows_the_tighter_is_told() -> None:
    day, minute = Window("tokens", 100, 86400), Window("tokens", 50, 60)
    told = dict(
        with_limits([(b"x-ratelimit-any", b"1"), (b"x-a", b"b")], [Left(day, 10, 5.0), Left(minute, 40, 2.0)])
    )
    assert told == {
        b"x-a": b"b",
        b"x-ratelimit-limit-tokens": b"100",
        b"x-ratelimit-remaining-tokens": b"10",
        b"x-ratelimit-reset-tokens": b"5s",
    }


def test_negative_counts_give_nothing_back() -> None:
    trace = Trace(b"r", "POST /")
    trace.usage = Usage(input=-5, output=7)
    assert tokens_of(trace, b"{}") == 7


def test_an_entry_that_cannot_be_edited_as_text_is_left_alone() -> None:
    """A list of strings that looks like a table's header."""
    text = entry("a").replace("\n", "\nmodels = [\n  'x',\n]\n", 1) + "[[keys]]\nname = '''\n[[keys]]\n'''\n"
    with pytest.raises(ConfigErrors):
        without_key(text, "a")


def test_a_file_that_cannot_be_replaced_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        _replace(tmp_path / "keys.toml", "x")
    assert list(tmp_path.iterdir()) == []


def test_secrets_in_addresses() -> None:
    wire = {
        "chat": "/chat?api-version=2024-10-21&key=abc%2Fdef%3D1",
        "responses": "/responses?sig=short",
        "embeddings": None,
        "models": {"path": "/models?access_token=0123456789"},
    }
    assert list(secrets_in({"wire": wire})) == ["abc%2Fdef%3D1", "abc/def=1", "0123456789"]
    assert list(secrets_in({"wire": "x", "request": {}})) == []
