"""What was learned of backends, as `dragoman quirks` shows it: a table, JSON, or configuration.

As configuration it is a provider's overrides, so that it holds for good and on other machines. Lists there
replace those of the built-in rows, so they hold both. What no setting says is named in a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import orjson

from config.schema import Config, ProviderConfig
from providers.profiles import resolve
from providers.quirks_file import Learned, host_of
from translators.profile import Profile, merge
from translators.rejections import EACH, SYSTEM_FIRST, Rejection


def table(learned: Sequence[Learned]) -> str:
    head = ("HOST", "MODEL", "SURFACE", "FIELD", "DONE", "UNTIL")
    lines = [head, *(_line(each) for each in learned)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def as_json(learned: Sequence[Learned]) -> str:
    return orjson.dumps([each.table() for each in learned], option=orjson.OPT_INDENT_2).decode()


def as_toml(learned: Sequence[Learned], config: Config) -> str:
    """One `[[providers]]` table with overrides for each provider of `config` that it was learned of.

    A host that no provider has stands under its own name.
    """
    parts = ["# Learned by Dragoman: take the overrides over into the provider of the same name."]
    for host, of_host in groupby(sorted(learned, key=lambda each: each.host), lambda each: each.host):
        entries = list(of_host)
        owners = [each for each in config.providers if host_of(each.base_url or "") == host]
        owners = owners or [ProviderConfig(name="unknown", kind="openai", base_url=f"http://{host}/v1")]
        parts += ["\n".join(_provider(owner, host, entries)) for owner in owners]
    return "\n\n".join(parts)


def is_of(learned: Learned, model: str) -> bool:
    """Whether `model` names its model: as the backend does, with the provider's name, or with the host."""
    # What is learned of an Ollama's model is filed with a part of its digest.
    own = learned.model.rpartition("@")[0] if learned.surface == "ollama" else ""
    return any(
        name in (model, model.partition("/")[2]) or model == f"{learned.host}/{name}"
        for name in (learned.model, own)
        if name
    )


def _line(learned: Learned) -> tuple[str, ...]:
    until = datetime.fromtimestamp(learned.until, UTC).strftime("%Y-%m-%d %H:%MZ")
    place = (learned.host, learned.model, learned.surface)
    return (*place, learned.rejection.field, done(learned.rejection), until)


def done(rejection: Rejection) -> str:
    """What is done about it, in words."""
    value = "" if rejection.value is None else f"{orjson.dumps(rejection.value).decode()} "
    if rejection.bounds is not None:
        return "moved into {:g} to {:g}".format(*rejection.bounds)
    if rejection.name is not None:
        return f"sent as {rejection.name}"
    if rejection.beside is not None:
        return f"left out beside {rejection.beside}"
    return f"{value}sent as {rejection.instead}" if rejection.instead else f"{value}left out"


# --- as configuration ------------------------------------------------------------------


def _provider(owner: ProviderConfig, host: str, learned: Sequence[Learned]) -> Iterator[str]:
    overrides: dict[str, Any] = {}
    yield "[[providers]]"
    yield f"name = {_toml(owner.name)}"
    for each in learned:
        place = f"{each.model} on {each.surface}: {each.rejection.field} {done(each.rejection)}"
        setting = _setting(each.rejection, _profile(owner, host, each), overrides)
        yield f"# {place}" + ("" if setting else " (no setting says so)")
        overrides = merge(overrides, setting)
    if overrides:
        yield "[providers.overrides]"
        yield from (f"{section} = {_toml(values)}" for section, values in overrides.items())


def _profile(owner: ProviderConfig, host: str, learned: Learned) -> Profile:
    return resolve(
        kind=owner.kind,
        host=host.rpartition(":")[0],
        model=learned.model,
        surface=learned.surface,
        profile=owner.profile,
        overrides=owner.overrides,
    )


_SETTINGS: Mapping[tuple[str, ...], Mapping[str, Any]] = {
    ("messages", EACH, "name"): {"messages": {"user_name": "drop"}},
    ("think",): {"reasoning": {"ask": "none"}},
}


def _setting(rejection: Rejection, profile: Profile, before: Mapping[str, Any]) -> dict[str, Any]:
    """The override that says the same; empty: there is none."""
    path, rules = rejection.path, profile.request
    if rejection.bounds is not None:
        return {"request": {"clamp": {rejection.field: list(rejection.bounds)}}}
    if rejection.name is not None:
        return {"request": {"rename": {**rules.rename, rejection.field: rejection.name}}}
    if rejection.instead == SYSTEM_FIRST:
        return {"messages": {"system": "hoist_all"}}
    if path[-1] == "role":
        return {"messages": {"developer": rejection.instead}}
    if rejection.beside is not None:
        return {}
    if rejection.value is not None:
        effort = rejection.instead is not None
        return {"reasoning": {"map": {str(rejection.value): rejection.instead}}} if effort else {}
    if path[-1] == "strict" and path[0] == "tools":
        return {"tools": {"strict": "drop"}}
    if path in _SETTINGS:
        return dict(_SETTINGS[path])
    if EACH in path or (len(path) > 1 and path != ("text", "verbosity")):
        return {}
    dropped = before.get("request", {}).get("drop", rules.drop)
    return {"request": {"drop": sorted({*rules.drop, *dropped, rejection.field})}}


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return orjson.dumps(value).decode()


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else orjson.dumps(key).decode()
