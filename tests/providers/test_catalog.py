"""Names: what they resolve to, what is listed, and that nothing ever waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from config.schema import Config
from providers.base import ModelInfo
from providers.catalog import RETRY_S, TTL_S, Catalog
from providers.databricks import DatabricksProvider
from providers.directory import Names
from providers.ollama import OllamaProvider
from providers.onnx.provider import OnnxProvider
from providers.openai import OpenAIProvider
from providers.registry import FACTORIES, build, build_catalog
from providers.unavailable import UnavailableProvider
from tests.providers.conftest import Clock
from translators.errors import ProxyError
from translators.profile import Profile, Wire
from translators.rejections import Rejection


class Fake(UnavailableProvider):
    """A provider with a list that the test can change, or that fails or hangs."""

    def __init__(self, name: str, *, embeds: bool = True) -> None:
        super().__init__(name, "openai", "")
        self.unavailable = None
        self.embeds = embeds
        self.listed: list[str] | Exception = []
        self.go = asyncio.Event()
        self.go.set()
        self.asked = 0

    def profile(self, model: str, surface: Any, overrides: Any = None) -> Profile:
        return Profile(wire=Wire(embeddings="/embeddings" if self.embeds else None))

    async def models(self) -> Sequence[ModelInfo]:
        self.asked += 1
        await self.go.wait()
        if isinstance(self.listed, Exception):
            raise self.listed
        return [ModelInfo(name, self.name, {"owned_by": self.name}) for name in self.listed]


def catalog(aliases: dict[str, str] | None = None, **models: Any) -> Catalog:
    """Providers in the order given, each with its static list, None for discovered."""
    fakes = [Fake(name.replace("_", "-")) for name in models]
    lists = {fake.name: names for fake, names in zip(fakes, models.values(), strict=True)}
    return Catalog(fakes, Names(aliases or {}), lists)


def ids(catalog: Catalog, name: str, **options: Any) -> list[str]:
    return [choice.target.id for choice in catalog.find(name, **options).choices]


RESOLVED = [
    ("a/gpt-sol-mini", ["a/gpt-sol-mini"]),
    ("a/never-listed", ["a/never-listed"]),
    ("a/with/more/slashes", ["a/with/more/slashes"]),
    ("b/gpt-sol-mini", ["b/gpt-sol-mini"]),
    ("gpt-sol", ["b/gpt-sol"]),
    ("both", ["a/both", "b/both"]),
    ("sol", ["b/gpt-sol"]),
    ("deep", ["b/gpt-sol"]),
    ("bare", ["a/both", "b/both"]),
    ("meta/llama", ["b/meta/llama"]),
    ("a/x", ["a/x"]),
    ("gpt-sol-mini", ["a/gpt-sol-mini"]),
    ("slashed/alias", ["a/any"]),
]


@pytest.mark.parametrize(("name", "targets"), RESOLVED)
def test_names_resolve(name: str, targets: list[str]) -> None:
    found = catalog(
        {
            "sol": "b/gpt-sol",
            "deep": "sol",
            "bare": "both",
            "slashed/alias": "a/any",
            "gpt-sol-mini": "b/gpt-sol",  # a listed model's own name wins over an alias
        },
        a=["gpt-sol-mini", "both"],
        b=["gpt-sol", "both", "meta/llama", "a/x"],
    )
    assert ids(found, name) == targets


UNKNOWN = ["gpt-so", "nowhere/gpt-sol", "a/", "/a", "", "loop", "dangling", "x" * 5000]


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_names_are_404(name: str) -> None:
    found = catalog({"loop": "pool", "pool": "loop", "dangling": "gone"}, a=["gpt-sol"])
    with pytest.raises(ProxyError) as caught:
        found.find(name)
    error = caught.value
    assert (error.http_status, error.code, error.param) == (404, "model_not_found", "model")
    assert len(error.message) < 400


def test_a_404_names_what_is_near() -> None:
    found = catalog({"sol": "a/gpt-sol"}, a=["gpt-sol", "zzz"])
    with pytest.raises(ProxyError, match=r"did you mean gpt-sol\?"):
        found.find("gpt-so")
    with pytest.raises(ProxyError, match="GET /v1/models lists"):
        found.find("qqqq-0000")
    with pytest.raises(ProxyError, match="no model that is listed is in that class"):
        found.find("chat-fast")
    with pytest.raises(ProxyError, match="no provider is configured"):
        catalog().find("anything")


def test_targets_that_cannot_answer_are_left_where_there_is_no_other() -> None:
    off = UnavailableProvider("off", "onnx", "its extra is missing")
    found = Catalog([off, Fake("on")], Names({"x": "off/x"}), {"off": ["m", "only-off"], "on": ["m"]})
    assert [ids(found, name) for name in ("off/m", "x", "only-off", "m")] == [
        ["off/m"],
        ["off/x"],
        ["off/only-off"],
        ["on/m"],
    ]
    assert [entry.id for entry in found.entries()] == ["on/m", "m"]


def test_embeddings_go_to_providers_that_have_them() -> None:
    plain = Fake("plain", embeds=False)
    found = Catalog([plain, Fake("rich")], Names(), {"plain": ["m", "n"], "rich": ["m"]})
    assert ids(found, "m", embeddings=True) == ["rich/m"]
    assert ids(found, "plain/n", embeddings=True) == ["plain/n"]


def test_entries_name_everything_once() -> None:
    aliases = {"sol": "b/gpt-sol", "both": "a/both", "gone": "nothing", "unlisted": "a/unlisted"}
    found = catalog(aliases, a=["one", "both"], b=["both", "a/one", "gpt-sol"])
    assert [(entry.id, entry.target.id) for entry in found.entries()] == [
        ("b/gpt-sol", "b/gpt-sol"),  # the one whose family has a class
        ("a/one", "a/one"),
        ("a/both", "a/both"),
        ("b/both", "b/both"),
        ("b/a/one", "b/a/one"),
        ("gpt-sol", "b/gpt-sol"),
        ("one", "a/one"),
        ("both", "a/both"),
        ("sol", "b/gpt-sol"),
        ("unlisted", "a/unlisted"),
        ("chat-thinking", "b/gpt-sol"),
        ("chat-balanced", "b/gpt-sol"),
    ]


def test_every_entry_resolves_to_its_target() -> None:
    found = catalog({"sol": "b/gpt-sol"}, a=["one", "both"], b=["both", "a/one"])
    assert all(found.find(entry.id).choices[0].target.id == entry.target.id for entry in found.entries())


@pytest.mark.parametrize(("name", "target"), [("a/one", "a/one"), ("a/new", "a/new"), ("zzz", None)])
def test_one_entry(name: str, target: str | None) -> None:
    entry = catalog(a=["one"]).entry(name)
    assert (entry.target.id if entry else None) == target


async def _pass_turns() -> None:
    """Let what was scheduled run, as far as it goes without waiting for a backend; a thread is waited for."""
    for _ in range(5):
        await asyncio.sleep(0.005)


# --- discovery -------------------------------------------------------------------------


def discovered(*names: str, clock: Clock | None = None) -> tuple[Catalog, list[Fake]]:
    fakes = [Fake(name) for name in names]
    return Catalog(fakes, Names(), {}, clock=clock or Clock()), fakes


async def test_a_list_is_asked_for_after_start_and_only_once() -> None:
    found, (fake,) = discovered("a")
    fake.listed = ["m"]
    assert fake.asked == 0
    await found.start()
    await _pass_turns()
    assert ids(found, "m") == ["a/m"]
    assert found.entry("m").facts == {"owned_by": "a"}  # type: ignore[union-attr]
    assert fake.asked == 1


async def test_static_lists_are_never_asked_for() -> None:
    fake = Fake("a")
    found = Catalog([fake], Names(), {"a": ["m"]}, clock=Clock())
    await found.start()
    with pytest.raises(ProxyError):
        found.find("unknown")
    await asyncio.sleep(0)
    assert fake.asked == 0


async def test_a_hanging_backend_delays_nobody() -> None:
    found, (stuck, fine) = discovered("stuck", "fine")
    stuck.go.clear()
    fine.listed = ["m"]
    await found.start()
    await _pass_turns()
    assert [entry.id for entry in found.entries()] == ["fine/m", "m"]
    assert ids(found, "stuck/x") == ["stuck/x"]
    with pytest.raises(ProxyError, match="model list of stuck is still being loaded") as caught:
        found.find("elsewhere")
    assert (caught.value.http_status, caught.value.retry_after) == (503, 1)
    await found.aclose()


async def test_a_hanging_backend_counts_as_failed_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.catalog.LISTING_S", 0.01)
    found, (stuck,) = discovered("stuck")
    stuck.go.clear()
    await found.start()
    await asyncio.sleep(0.05)
    with pytest.raises(ProxyError) as caught:
        found.find("elsewhere")
    assert caught.value.http_status == 404
    await found.aclose()


async def test_an_old_list_is_renewed_on_use_and_kept_when_that_fails() -> None:
    clock = Clock()
    found, (fake,) = discovered("a", clock=clock)
    fake.listed = ["old"]
    await found.start()
    await _pass_turns()
    clock.now += TTL_S - 1
    found.find("old")
    await _pass_turns()
    assert fake.asked == 1
    fake.listed = ProxyError("upstream", "broken")
    clock.now += 1
    assert ids(found, "old") == ["a/old"]
    await _pass_turns()
    assert fake.asked == 2
    assert ids(found, "old") == ["a/old"]
    fake.listed = ["new"]
    clock.now += RETRY_S
    found.entries()
    await _pass_turns()
    assert ids(found, "new") == ["a/new"]


async def test_a_miss_renews_but_never_waits_and_not_too_often() -> None:
    clock = Clock()
    found, (fake,) = discovered("a", clock=clock)
    await found.start()
    await _pass_turns()
    clock.now += RETRY_S
    fake.listed = ["late"]
    for _ in range(20):
        with pytest.raises(ProxyError) as caught:
            found.find("late")
        assert caught.value.http_status == 404
    await _pass_turns()
    assert ids(found, "late") == ["a/late"]
    assert fake.asked == 2
    for _ in range(20):
        with pytest.raises(ProxyError):
            found.find("never")
        await _pass_turns()
    assert fake.asked == 2


async def test_a_failed_first_listing_is_tried_again_soon() -> None:
    clock = Clock()
    found, (fake,) = discovered("a", clock=clock)
    fake.listed = ProxyError("upstream", "first")
    await found.start()
    await _pass_turns()
    fake.listed = ["m"]
    clock.now += RETRY_S
    found.entries()
    await _pass_turns()
    assert [entry.id for entry in found.entries()] == ["a/m", "m"]


# --- registry --------------------------------------------------------------------------


async def test_configuration_becomes_providers() -> None:
    config = Config.model_validate(
        {
            "providers": [
                {"name": "a", "kind": "openai", "base_url": "http://a/v1", "api_key": "k", "models": ["m"]},
                {"name": "d", "kind": "databricks", "base_url": "h", "wire": "chat"},
                {"name": "o", "kind": "ollama", "base_url": "http://o"},
                {"name": "x", "kind": "onnx", "path": "p"},
            ],
            "aliases": {"alias": "a/m"},
        }
    )
    providers = build(config)
    assert [type(each) for each in providers] == [
        OpenAIProvider,
        DatabricksProvider,
        OllamaProvider,
        OnnxProvider,
    ]
    assert [each.unavailable for each in providers] == [None, None, None, None]
    assert providers[1].surfaces("databricks-claude", "responses") == ("chat",)
    found = build_catalog(config, providers)
    assert ids(found, "alias") == ["a/m"]
    assert ids(found, "o/llama") == ["o/llama"]
    for each in providers:
        await each.aclose()


def test_every_kind_has_a_factory() -> None:
    assert set(FACTORIES) == {"openai", "databricks", "ollama", "onnx"}


async def test_an_unavailable_provider_refuses_everything() -> None:
    off = UnavailableProvider("off", "onnx", "why")
    assert off.surfaces("m", "chat") == ()
    assert off.profile("m", "chat") == Profile()
    assert not off.learn_refusal("m", "chat", 404, b"")
    off.learn_rejections("m", "chat", [Rejection(("seed",))])
    assert off.known_rejections("m", "chat") == ()
    for asking in (off.open("chat", "m", b"{}", stream=False), off.models()):
        with pytest.raises(ProxyError, match="provider off is unavailable: why"):
            await asking
