"""What a gateway takes along from one configuration to the next, and what it leaves."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.access.auth import Access
from app.gateway import RETIRE_S, Gateway, assemble
from app.stream import Client
from app.telemetry.log import Log, Sink
from app.telemetry.metrics import Metrics
from config.keys import KeyLimits
from config.schema import Config
from providers.health import FAILURES_TO_REST, Health
from providers.openai import OpenAIProvider
from providers.quirks import Quirks
from tests.backends.scripted import ScriptedBackend
from translators.errors import ProxyError
from translators.ir import Usage
from translators.rejections import Rejection

SETTINGS = {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "models": ["m"]}


def config_of(*providers: dict[str, Any], **more: Any) -> Config:
    return Config.model_validate({"providers": [{**SETTINGS, **each} for each in providers], **more})


Start = Callable[[Config], Gateway]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    made: list[Gateway] = []

    def gateway_of(config: Config) -> Gateway:
        health, quirks = Health(), Quirks()
        parts = assemble(config, quirks, health)
        made.append(Gateway(parts, health, Log(Sink()), Metrics(), quirks))
        return made[-1]

    yield gateway_of
    for each in made:
        await each.aclose()


async def test_what_was_measured_stays_with_a_provider_that_stays(start: Start) -> None:
    gateway = start(config_of({"name": "same"}, {"name": "moved"}, {"name": "gone"}))
    for endpoint in ("same/m", "moved/m", "gone/m"):
        for _ in range(FAILURES_TO_REST):
            gateway.health.failed(endpoint)
    assert gateway.health.resting("moved/m")
    await gateway.reconfigure(
        config_of({"name": "same"}, {"name": "moved", "base_url": "http://127.0.0.1:8/v1"})
    )
    # What is wrong may be what was put right: nobody waits for a rest to pass.
    assert [gateway.health.resting(each) for each in ("same/m", "moved/m", "gone/m")] == [True, False, False]


async def test_a_limit_holds_over_a_change(start: Start) -> None:
    gateway = start(config_of({"name": "same", "max_concurrency": 1}, {"name": "more", "max_concurrency": 1}))
    before = dict(gateway.limits)
    await gateway.reconfigure(
        config_of({"name": "same", "max_concurrency": 1}, {"name": "more", "max_concurrency": 2})
    )
    assert gateway.limits["same"] is before["same"]
    assert gateway.limits["more"] is not before["more"]
    await gateway.reconfigure(config_of({"name": "same"}))
    assert gateway.limits == {}


async def test_models_that_were_listed_stay_known(start: Start) -> None:
    with ScriptedBackend(("first", "second")) as backend:
        asked: dict[str, Any] = {"models": None, "base_url": f"{backend.origin}/v1"}
        gateway = start(config_of({"name": "p", **asked}))
        await gateway.catalog.start(5)
        assert gateway.catalog.find("second").choices[0].target.id == "p/second"
    # The backend is gone: its list cannot be had again.
    await gateway.reconfigure(config_of({"name": "p", **asked}, aliases={"x": "p/first"}))
    assert gateway.catalog.find("second").choices[0].target.id == "p/second"
    assert gateway.catalog.stale == ["p"]
    assert "second" in [entry.id for entry in gateway.catalog.entries()]


async def test_found_dimensions_stay_with_a_provider_that_stays(start: Start) -> None:
    listed = {"models": ["text-embedding-x"]}
    gateway = start(config_of({"name": "same", **listed}, {"name": "moved", **listed}))
    for name in ("same", "moved"):
        await gateway.catalog.learn_dimensions(f"{name}/text-embedding-x", 3)
    await gateway.reconfigure(
        config_of(
            {"name": "same", **listed}, {"name": "moved", "base_url": "http://127.0.0.1:8/v1", **listed}
        )
    )
    cards = {each.card.provider: each.card.dimensions for each in gateway.catalog.ranking().all}
    assert cards == {"same": 3, "moved": None}


async def test_a_new_list_is_waited_for_but_not_for_long(start: Start) -> None:
    with ScriptedBackend(("late",)) as backend:
        gateway = start(config_of({"name": "p"}))
        asked: dict[str, Any] = {"models": None, "base_url": f"{backend.origin}/v1"}
        await gateway.reconfigure(config_of({"name": "q", **asked}))
        assert gateway.catalog.find("late").choices[0].target.id == "q/late"


async def test_quirks_stay_and_so_do_conversations(start: Start) -> None:
    gateway = start(config_of({"name": "p"}))
    gateway.catalog.providers[0].learn_rejections("m", "chat", [Rejection(("seed",))])
    gateway.catalog.providers[0].learn_refusal("m", "responses", 404, b"")
    sticky = gateway.router._sticky
    await gateway.reconfigure(config_of({"name": "p", "wire": "chat"}))
    assert [each.path for each in gateway.catalog.providers[0].known_rejections("m", "chat")] == [("seed",)]
    assert gateway.router._sticky is sticky


async def test_the_key_of_seals_changes_only_with_its_setting(start: Start) -> None:
    gateway = start(config_of({"name": "p"}, server={"seal_key": "one"}))
    key = gateway.seal_key
    await gateway.reconfigure(config_of({"name": "p"}, server={"seal_key": "one", "keepalive_s": 3}))
    assert gateway.seal_key is key
    await gateway.reconfigure(config_of({"name": "p"}, server={"seal_key": "two"}))
    assert gateway.seal_key() != key()


KEPT: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({}, {}, True),
    ({}, {"server": {"keepalive_s": 3}, "aliases": {"x": "p/m"}}, True),
    ({"api_key": "another"}, {}, False),
    ({}, {"server": {"idle_timeout_s": 3}}, False),
]


@pytest.mark.parametrize(("change", "more", "kept"), KEPT)
async def test_a_provider_that_is_the_same_goes_on_itself(
    start: Start, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], more: dict[str, Any], kept: bool
) -> None:
    closed: list[object] = []

    async def close(provider: OpenAIProvider) -> None:
        closed.append(provider.name)

    monkeypatch.setattr(OpenAIProvider, "aclose", close)
    gateway = start(config_of({"name": "p"}, {"name": "gone"}))
    first = gateway.catalog.providers[0]
    await gateway.reconfigure(config_of({"name": "p", **change}, {"name": "new"}, **more))
    assert (gateway.catalog.providers[0] is first) == kept
    await asyncio.sleep(RETIRE_S)
    assert closed == (["gone"] if kept else ["p", "gone"])


async def test_an_account_that_other_files_tell_of_is_read_again(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "databrickscfg"
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(file))
    account = {"name": "d", "kind": "databricks", "base_url": None, "config_profile": "P", "models": ["m"]}
    gateway = start(config_of(account))
    assert gateway.catalog.providers[0].unavailable is not None
    file.write_text("[P]\nhost = https://one.cloud.databricks.com\ntoken = dapi-0123456789\n")
    await gateway.reconfigure(config_of(account))
    found = gateway.catalog.providers[0]
    assert found.unavailable is None
    await gateway.reconfigure(config_of(account))
    assert gateway.catalog.providers[0] is not found


async def test_the_old_one_is_closed_when_its_last_request_has_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[object] = []

    async def close(provider: OpenAIProvider) -> None:
        closed.append(provider)

    monkeypatch.setattr(OpenAIProvider, "aclose", close)
    gateway = start(config_of({"name": "p"}))
    first = gateway.catalog.providers[0]
    request = object.__new__(Client)
    gateway.serving.add(request)
    await gateway.reconfigure(config_of({"name": "p", "wire": "chat"}))
    later = object.__new__(Client)
    gateway.serving.add(later)
    await asyncio.sleep(RETIRE_S * 2)
    assert closed == []
    gateway.serving.discard(request)
    await asyncio.sleep(RETIRE_S * 2)
    assert closed == [first]  # the later one goes by the new configuration


async def test_the_end_waits_for_nothing_and_closes_all(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[object] = []

    async def close(provider: OpenAIProvider) -> None:
        closed.append(provider)

    monkeypatch.setattr(OpenAIProvider, "aclose", close)
    gateway = start(config_of({"name": "p"}))
    gateway.serving.add(object.__new__(Client))
    await gateway.reconfigure(config_of({"name": "p", "wire": "chat"}))
    await gateway.aclose()
    assert len(closed) == 2


async def test_what_cannot_be_built_changes_nothing(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = start(config_of({"name": "p"}))
    before = (gateway.catalog, gateway.keys, gateway.router, gateway.limits, gateway.server)

    def broken(*_: object) -> None:
        raise RuntimeError("no good")

    monkeypatch.setattr("app.gateway.build", broken)
    with pytest.raises(RuntimeError):
        await gateway.reconfigure(config_of({"name": "q"}, server={"api_keys": ["a-new-key"]}))
    assert (gateway.catalog, gateway.keys, gateway.router, gateway.limits, gateway.server) == before


async def test_many_changes_leave_no_task_and_no_catalogue(start: Start) -> None:
    gateway = start(config_of({"name": "p"}))
    await gateway.reconfigure(config_of({"name": "p0"}))
    await asyncio.sleep(RETIRE_S)
    before = len(asyncio.all_tasks())
    for at in range(20):
        await gateway.reconfigure(config_of({"name": f"p{at % 2}", "models": None}))
    await asyncio.sleep(RETIRE_S)
    assert len(asyncio.all_tasks()) == before
    gc.collect()
    assert (
        sum(isinstance(each, OpenAIProvider) and each.name in ("p0", "p1") for each in gc.get_objects()) == 1
    )


async def test_new_prices_hold_at_once(start: Start) -> None:
    gateway = start(config_of({"name": "p"}, prices={"m": {"input": 1, "output": 0}}))
    assert gateway.prices.cost("p/m", Usage(1_000_000)) == 1.0
    await gateway.reconfigure(config_of({"name": "p"}, prices={"m": {"input": 2, "output": 0}}))
    assert gateway.prices.cost("p/m", Usage(1_000_000)) == 2.0


async def test_places_that_a_key_has_taken_stay_taken(start: Start) -> None:
    gateway = start(config_of({"name": "p"}))
    access = Access("mine", "o", None, KeyLimits(concurrency=1), lambda _: None)
    client = SimpleNamespace(committed=False, head_with=lambda _: None, trace=None)

    def ask() -> Any:
        return gateway.limiter().within(access, client, b"")  # type: ignore[arg-type]

    async with ask():
        await gateway.reconfigure(config_of({"name": "p"}, limits={"on_failure": "closed"}))
        with pytest.raises(ProxyError, match="1 requests under way"):
            await ask().__aenter__()
    async with ask() as place:
        free = place.pass_on()
    await gateway.reconfigure(config_of({"name": "p"}))
    with pytest.raises(ProxyError, match="1 requests under way"):
        await ask().__aenter__()
    free()  # what was begun under the former configuration has ended
    async with ask():
        pass
