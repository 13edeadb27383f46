"""Finding models by what somebody types: every word must fit, numbers exactly, names of models not at all.

A word of a search fits a model when it is one of the words of its name, begins one, or is one
misspelled (`sonet`). Its score is 0.001, 0.002, or the share of letters to change; that of a model is
the mean over the words, 0 for its own name, which finds nothing else. Numbers must be the version
from its beginning (`claude opus 5` is not 4.5), words of one or two letters must stand whole, makers'
names don't count. A name that means one model (`names.is_full_id`) finds only that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .cards import ModelCard
from .names import VENDORS, Segments, core, is_date, is_full_id, numbers, segments, undated

THRESHOLD = 0.4
"""Highest score that still counts as a match."""
WHOLE = 0.001
BEGINS = 0.002
MAX_QUERY = 128
"""Characters; a longer name means nothing, and neither work nor memory may grow with what is sent."""
_WHOLE_ONLY_BELOW = 3
_SPELLED_FROM = 4
"""Letters from which a word may be misspelled: of three, one wrong letter makes another name (glm, llm)."""
_PAST_LETTERS = "\x7f"
"""Sorts after every letter and digit of a name."""
_ALIKE = 55.0
"""Percent of two names that must agree for one to be suggested for the other."""
BRANDS = frozenset({"claude", "gemini", "gemma", "glm", "gpt", "llama", "qwen"})
"""A search for only this means the newest of it."""


@dataclass(frozen=True, slots=True)
class Query:
    """A search taken apart."""

    words: tuple[str, ...]
    """Without makers' names and numbers; each once, a repeated one means nothing more."""
    numbers: Segments
    brand: str | None
    """The brand, if that is all."""


def parse(text: str) -> Query:
    said = [word for word in segments(text) if word not in VENDORS]
    words = tuple(dict.fromkeys(word for word in said if not word.isdigit()))
    brand = words[0] if len(said) == 1 and words and words[0] in BRANDS else None
    return Query(words, numbers(tuple(said)), brand)


class SearchIndex:
    """The names of a catalogue by their words; built once, never changed. Models are places in `cards`."""

    def __init__(self, cards: Sequence[ModelCard]) -> None:
        self._holders: dict[str, set[int]] = {}
        self._segments = [card.segments for card in cards]
        self._numbers = [numbers(words) for words in self._segments]
        self._numbered: dict[str, set[int]] = {}
        self._families: dict[str | None, set[int]] = {}
        self._same: dict[Segments, list[int]] = {}
        self._snapshots: dict[Segments, list[int]] = {}
        for at, card in enumerate(cards):
            self._add(at, card)
        self._words = sorted(self._holders)
        self._vocabulary = [word for word in self._words if len(word) >= _SPELLED_FROM]

    def _add(self, at: int, card: ModelCard) -> None:
        for word in card.segments:
            self._holders.setdefault(word, set()).add(at)
        for start in _starts(self._numbers[at]):
            self._numbered.setdefault(self._numbers[at][start], set()).add(at)
        self._families.setdefault(card.family, set()).add(at)
        for name in {card.segments, segments(card.model)} - {()}:
            self._same.setdefault(name, []).append(at)
        plain = undated(card.segments)
        if plain != card.segments:
            self._snapshots.setdefault(plain, []).append(at)

    def same(self, name: str) -> list[int]:
        """Models of this very name spelled otherwise: dots for dashes, without the maker or the date.

        A name with a maker or a path must match with it: `openai/gpt-4o` is not another provider's.
        Of several snapshots the newest comes first.
        """
        words = segments(name)
        found = self._same.get(words)
        if found is not None or words != core(name) or undated(words) != words:
            return found or []
        return sorted(self._snapshots.get(words, []), key=self._age, reverse=True)

    def _age(self, at: int) -> tuple[bool, list[int]]:
        """`latest`, then by date: the year counts first, wherever it stands (`08-2024`)."""
        dates = sorted(self._numbers[at], key=lambda number: not is_date(number))
        return "latest" in self._segments[at], [int(number) for number in dates]

    def find(self, text: str, threshold: float = THRESHOLD) -> dict[int, float]:
        """Place -> score of every model that all of the search fits; in order only where the score is 0."""
        text = text.strip()
        if len(text) > MAX_QUERY:
            return {}
        same = self.same(text)
        if same or is_full_id(text):
            return dict.fromkeys(same, 0.0)
        query = parse(text)
        # A number alone, or a maker's name, is true of too many models to mean any.
        return self._scores(query, threshold) if query.words else {}

    def _scores(self, query: Query, threshold: float) -> dict[int, float]:
        fitting = [self._fitting(word, threshold) for word in query.words]
        kept = set(fitting[0]).intersection(*fitting[1:])
        if query.numbers:
            kept &= self._with_numbers(query.numbers)
        if query.brand == "gpt":
            kept -= self._families.get("gpt-oss", set())
        terms = len(query.words) + len(query.numbers)
        exact = WHOLE * len(query.numbers)
        return {at: (sum(held[at] for held in fitting) + exact) / terms for at in kept}

    def _with_numbers(self, wanted: Segments) -> set[int]:
        """Models whose version, or snapshot, begins with these numbers."""
        held = self._numbered.get(wanted[0], set())
        return {at for at in held if _begins_with(self._numbers[at], wanted)}

    def _fitting(self, word: str, threshold: float) -> dict[int, float]:
        """Place -> best score of one word of the search."""
        found: dict[int, float] = {}
        for score, fitting in reversed(list(self._fitting_words(word, threshold))):
            found.update(dict.fromkeys(self._holders[fitting], score))
        return found

    def _fitting_words(self, word: str, threshold: float) -> Iterator[tuple[float, str]]:
        """Words of names that `word` may mean, best first."""
        if word in self._holders:
            yield WHOLE, word
        if len(word) < _WHOLE_ONLY_BELOW or word[0].isdigit():
            return
        first, last = bisect_right(self._words, word), bisect_right(self._words, word + _PAST_LETTERS)
        yield from ((BEGINS, each) for each in self._words[first:last])
        if len(word) >= _SPELLED_FROM:
            yield from self._misspelled(word, threshold)

    def _misspelled(self, word: str, threshold: float) -> Iterator[tuple[float, str]]:
        """Words a few letters from `word`; the first is seldom mistyped, and tells names apart."""
        most = int(threshold * len(word) + 1e-9)
        if not most:
            return
        from rapidfuzz import process
        from rapidfuzz.distance import OSA  # 2.5 MB, for processes that are asked for a misspelled name

        alike = process.extract(word, self._vocabulary, scorer=OSA.distance, score_cutoff=most, limit=None)
        for each, changes, _ in alike:
            if changes and each[0] == word[0] and not each[0].isdigit():
                yield changes / len(word), each


def _starts(held: Segments) -> Iterator[int]:
    """Where the numbers of a search may begin: at the version, or at a date."""
    return (at for at, number in enumerate(held) if at == 0 or is_date(number))


def _begins_with(held: Segments, wanted: Segments) -> bool:
    return any(held[at : at + len(wanted)] == wanted for at in _starts(held))


def compared(name: str) -> str:
    """A name as `near` compares it: its words without the maker's."""
    return " ".join(core(name))


def near(name: str, written: Sequence[str], names: Sequence[str], limit: int = 5) -> list[str]:
    """Up to `limit` of the names `written` that are like `name`, best first; `names`: they, `compared`."""
    wanted = compared(name) if len(name) <= MAX_QUERY else ""
    if not wanted:
        return []
    holding = [each for each, plain in zip(written, names, strict=True) if wanted in plain][:limit]
    from rapidfuzz import fuzz, process

    alike = process.extract(
        wanted, names, scorer=fuzz.ratio, processor=None, limit=limit, score_cutoff=_ALIKE
    )
    return list(dict.fromkeys(holding + [written[at] for _, _, at in alike]))[:limit]
