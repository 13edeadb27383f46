"""Lists of thousands of models: written once, in a thread, and everybody else is served meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest

from app.routing import models, ranked
from app.routing.models import ModelList
from app.routing.ranked import MAX_ANSWERS, Query, RankedLists
from config.load import check
from providers.catalog import Catalog
from providers.directory import MAX_KEPT, Directory, Names
from providers.health import Health
from providers.profiles import BY_NAME
from providers.ranking import Ranking
from providers.ranking import ranking as ranking_module
from providers.registry import build

MANY = 3000
KINDS = ("claude-sonnet", "gpt", "llama-3-70b-instruct", "qwen3-coder", "mistral-small")


def catalogue(count: int) -> Catalog:
    names = [f"{KINDS[n % len(KINDS)]}-{n}" for n in range(count)]
    raw = {
        "providers": [{"name": "p", "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "models": names}]
    }
    problems, config = check(raw, {}, BY_NAME)
    assert config is not None, problems
    return Catalog(build(config, None, {}), Names(), {"p": names}, health=Health())


@pytest.fixture(scope="module")
def long() -> Catalog:
    return catalogue(MANY)


@pytest.fixture
def rendered_in(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads that write model objects, one for each."""
    threads: list[int] = []
    plain = models.openai_model

    def noted(entry: Any) -> Any:
        threads.append(threading.get_ident())
        return plain(entry)

    monkeypatch.setattr(models, "openai_model", noted)
    monkeypatch.setattr(ranked, "openai_model", noted)
    return threads


async def test_they_are_rendered_beside_the_loop_and_once(rendered_in: list[int]) -> None:
    catalog = catalogue(20)
    lists, plain = RankedLists(catalog), ModelList(catalog)
    bodies = await asyncio.gather(*(lists.answer(Query()) for _ in range(5)))
    assert len(rendered_in) == 20
    assert all(body is bodies[0] for body in bodies)
    listings = await asyncio.gather(*(plain.listing() for _ in range(5)))
    assert all(listing is listings[0] for listing in listings)
    assert len(rendered_in) == 20 + len(catalog.entries())
    assert threading.get_ident() not in rendered_in
    assert await lists.answer(Query()) is bodies[0]


async def test_few_answers_are_kept_and_none_of_another_catalogue() -> None:
    catalog = catalogue(5)
    lists = RankedLists(catalog)
    queries = [Query(limit=limit) for limit in range(1, MAX_ANSWERS + 2)]
    bodies = [await lists.answer(query) for query in queries]
    assert len(lists._answers) == MAX_ANSWERS
    assert [len(orjson.loads(body)["data"]) for body in bodies] == [1, 2, 3, 4, 5]
    assert await lists.answer(queries[-1]) is bodies[-1]
    assert await lists.answer(queries[0]) is not bodies[0]
    assert await lists.answer(queries[0]) == bodies[0]
    before = catalog._directory
    catalog._directory = before.measured(before.ranking.with_live({}))
    assert await lists.answer(queries[-1]) is not bodies[-1]
    assert len(lists._answers) == 1


async def test_a_failure_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = RankedLists(catalogue(2))

    def broken(*_: object) -> bytes:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(ranked, "listed", broken)
        with pytest.raises(ZeroDivisionError):
            await lists.answer(Query())
    assert len(orjson.loads(await lists.answer(Query()))["data"]) == 2


@pytest.mark.parametrize(("count", "kept"), [(0, 0), (1, 1), (3, 3), (4, 3), (9, 3)])
def test_the_catalogue_fills_what_room_there_is(
    monkeypatch: pytest.MonkeyPatch, count: int, kept: int
) -> None:
    data: list[Mapping[str, Any]] = [{"id": n} for n in range(count)]
    whole = {"object": "list", "data": data, "models": [{"slug": "x" * 50}] * kept}
    monkeypatch.setattr(models, "MAX_BODY_BYTES", len(orjson.dumps(whole)))
    assert models.within_limit(data, [{"slug": "x" * 50}] * count) == orjson.dumps(whole)


def test_names_longer_than_all_room_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "MAX_BODY_BYTES", 10)
    assert (
        models.within_limit([{"id": 1}], [{"slug": 1}]) == b'{"object":"list","data":[{"id":1}],"models":[]}'
    )


def in_threads(work: Any) -> list[BaseException]:
    """What several threads at it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


class Forgetful(dict[Any, Any]):
    """Forgets all between a look and a read, as another thread may make it."""

    def __contains__(self, key: object) -> bool:
        found = super().__contains__(key)
        self.clear()
        return found


def test_a_name_is_found_while_others_are_forgotten(long: Catalog) -> None:
    directory: Directory = long._directory
    directory._kept = Forgetful()
    assert directory.find("chat-fast") == directory.find("chat-fast")
    directory._kept = {}
    assert in_threads(lambda: [directory.find(f"p/{n}") for n in range(3 * MAX_KEPT)]) == []
    assert directory.find("nothing of this name at all") is directory.find("nothing of this name at all")


def test_searches_of_several_threads_are_kept_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking_module, "CACHED", 2)
    ranking: Ranking = catalogue(10)._directory.ranking
    assert in_threads(lambda: [ranking.search(f"gpt {n}") for n in range(200)]) == []
    assert len(ranking._cache) == 2


def test_a_query_can_be_a_key() -> None:
    assert hash(Query(search="a")) == hash(replace(Query(), search="a"))
