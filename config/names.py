"""The names of models in a configuration: aliases, groups, fallbacks, and whether each leads somewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .problems import Place, Problem, did_you_mean

CLASSES = ("chat-thinking", "chat-balanced", "chat-fast", "embedding")
"""Names that mean the best models of a class."""


def check_names(raw: Mapping[str, Any], providers: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Of the parsed file; what has the wrong type is passed over."""
    names = _Names(raw, providers)
    yield from names.aliases()
    yield from names.groups()
    yield from names.fallbacks()
    yield from names.compaction()


class _Names:
    def __init__(self, raw: Mapping[str, Any], providers: Sequence[Mapping[str, Any]]) -> None:
        self._aliases, self._groups = _table(raw.get("aliases")), _table(raw.get("groups"))
        self._fallbacks = _table(raw.get("fallbacks"))
        self._compaction = _table(raw.get("compaction"))
        self._providers = [name for each in providers if isinstance(name := each.get("name"), str)]
        self._listed = [
            model for each in providers for model in _list(each.get("models")) if isinstance(model, str)
        ]
        self._all_listed = all("models" in each for each in providers)

    def aliases(self) -> Iterator[Problem]:
        for alias, target in self._aliases.items():
            yield from self._unreachable(("aliases", alias), alias)
            if self._leads_back(alias):
                yield Problem(("aliases", alias), "leads back to itself")
            elif isinstance(target, str):
                yield from self._target(("aliases", alias), target)

    def groups(self) -> Iterator[Problem]:
        for name, members in self._groups.items():
            yield from self._unreachable(("groups", name), name)
            if name in self._aliases:
                yield Problem(("groups", name), "is an alias too; a name means one of them")
            seen: set[str] = set()
            for position, member in enumerate(_list(members)):
                model = member.get("model") if isinstance(member, Mapping) else None
                if isinstance(model, str):
                    yield from self._member(("groups", name, position, "model"), model, seen)

    def fallbacks(self) -> Iterator[Problem]:
        for name, targets in self._fallbacks.items():
            yield from self._target(("fallbacks", name), name)
            for position, target in enumerate(_list(targets)):
                if target == name:
                    yield Problem(("fallbacks", name, position), "is the model itself")
                elif isinstance(target, str):
                    yield from self._target(("fallbacks", name, position), target)

    def compaction(self) -> Iterator[Problem]:
        """Of a bare name only the running gateway knows: it may be a search."""
        model = self._compaction.get("model")
        if isinstance(model, str) and "/" in model:
            yield from self._target(("compaction", "model"), model)

    def _member(self, place: Place, model: str, seen: set[str]) -> Iterator[Problem]:
        if model in seen:
            yield Problem(place, f"{model!r} is a member already; its weight says how often it is asked")
        seen.add(model)
        if "/" not in model:
            yield Problem(place, "must be provider/model: a group names its endpoints")
        else:
            yield from self._target(place, model)

    def _unreachable(self, place: Place, name: str) -> Iterator[Problem]:
        if "/" in name and name.partition("/")[0] in self._providers:
            message = "can never be reached: a name that begins with a provider's addresses that provider"
            yield Problem(place, message)

    def _leads_back(self, alias: str) -> bool:
        seen, name = set(), alias
        while isinstance(self._aliases.get(name), str):
            if name in seen:
                return True
            seen.add(name)
            name = self._aliases[name]
        return False

    def _target(self, place: Place, target: str) -> Iterator[Problem]:
        """`provider/model`, an alias, a group, a class, or the bare name of a model that a provider lists."""
        given = (*self._aliases, *self._groups, *CLASSES)
        prefix, slash, _ = target.partition("/")
        known = (slash and prefix in self._providers) or target in self._listed or target in given
        if known or not target.strip():
            return
        if slash:
            hint = did_you_mean(prefix, self._providers)
            yield Problem(place, f"no provider is named {prefix!r}{hint}")
        elif self._all_listed:
            hint = did_you_mean(target, [*self._listed, *given])
            yield Problem(place, f"no provider lists {target!r}{hint}")


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
