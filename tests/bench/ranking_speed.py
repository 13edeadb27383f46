"""How long a ranking takes: `python tests/bench/ranking_speed.py [endpoints ...]`, by default 1000 10000.

Prints microseconds, the median of many runs, for every way a name resolves, and milliseconds for
what happens when a listing or measurements arrive.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from providers.base import ModelInfo
from providers.ranking import LiveProfile, ModelCard, Ranking, make_card

BRANDS = ("claude", "gpt", "gemini", "llama", "qwen3", "mistral", "deepseek", "grok", "glm", "command")
TIERS = ("opus", "sonnet", "haiku", "pro", "mini", "flash", "coder", "large", "70b", "8b")


def names(count: int) -> Iterator[str]:
    made = (
        f"{brand}-{tier}-{major}-{minor}"
        for major, minor in itertools.product(range(1, 41), range(10))
        for brand in BRANDS
        for tier in TIERS
    )
    return itertools.islice(made, count)


def facts_of(at: int) -> dict[str, object]:
    """What a workspace lists of its endpoint number `at`; every second one is scored."""
    facts: dict[str, object] = {"task": "llm/v1/chat"}
    if at % 2:
        scores = {"quality": at % 50, "speed": at % 200, "cost": at % 30}
        facts["config"] = {"served_entities": [{"foundation_model": {"ai_gateway_model_profile": scores}}]}
    return facts


def catalogue(count: int) -> list[ModelCard]:
    """Half of them scored, spread over ten providers."""
    found = ((f"p{at % 10}", name, facts_of(at)) for at, name in enumerate(names(count)))
    return [make_card(ModelInfo(name, provider, facts), "databricks") for provider, name, facts in found]


def median_us(work: Callable[[], object], runs: int) -> float:
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1e6


def measure(count: int) -> dict[str, float]:
    cards = catalogue(count)
    live = {card.target: LiveProfile(0.8, 40.0, 0.01, 20.0) for card in cards[::3]}
    ranking = Ranking.build(cards, live)
    last = cards[-1]
    fresh = itertools.count()
    return {
        "exact id": median_us(lambda: ranking.resolve(last.target), 2000),
        "bare name": median_us(lambda: ranking.resolve(last.model), 2000),
        "class": median_us(lambda: ranking.resolve("chat-fast"), 2000),
        "search, repeated": median_us(lambda: ranking.resolve("claud sonet"), 2000),
        "search, narrow, first time": median_us(lambda: ranking.resolve(f"claude opus 7 {next(fresh)}"), 200),
        "search, misspelled, first time": median_us(
            lambda: ranking.search("claud sonet", limit=next(fresh)), 50
        ),
        "search, one brand, first time": median_us(lambda: ranking.search("gpt", limit=next(fresh)), 50),
        "unknown name, repeated": median_us(lambda: ranking.resolve("gpt-4o-2024-08-06"), 2000),
        "suggestions": median_us(lambda: ranking.suggest("claude-sonnet-4-99"), 50),
        "build (ms)": median_us(lambda: Ranking.build(cards), 3) / 1e3,
        "new measurements (ms)": median_us(lambda: ranking.with_live(live), 3) / 1e3,
    }


def main(counts: Sequence[int]) -> None:
    columns = [measure(count) for count in counts]
    print(f"{'us':34}", *(f"{count:>10}" for count in counts))
    for name in columns[0]:
        print(f"{name:34}", *(f"{column[name]:10.1f}" for column in columns))


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [1000, 10000])
