"""What more than one key decides: judged of a whole profile, after its layers are merged.

A layer that says half of a thing is fine where another layer says the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from providers.profiles import reachable
from translators.profile import Profile

from .address import normalise
from .problems import Place, Problem


def conflicts(profile: Profile) -> Iterator[Problem]:
    """Keys of one merged profile that cannot stand together; places begin at the sections."""
    rules = profile.request
    if rules.chars_per_token is not None and rules.context_window is None:
        yield Problem(("request", "chars_per_token"), "needs `request.context_window` beside it")


def provider_conflicts(provider: Mapping[str, Any], sections: Mapping[str, Any]) -> Iterator[Problem]:
    """The same of a provider's overrides, over every built-in row that one of its models can get.

    `provider` is its table as read, `sections` its overrides, which have no fault of their own. Each
    conflict is told once, with the first profile that has it.
    """
    host, kind = _host(provider), str(provider.get("kind"))
    if host is None:  # told elsewhere
        return
    found: dict[tuple[Place, str], str] = {}
    for surface, profile in reachable(kind, host, provider.get("profile"), sections):
        doors = _doors(profile, provider.get("wire", "auto")) if surface == "chat" else ()
        for problem in (*conflicts(profile), *doors):
            found.setdefault((problem.place, problem.message), profile.name)
    yield from (Problem(place, f"{message} (profile {row})") for (place, message), row in found.items())


def _doors(profile: Profile, spoken: Any) -> Iterator[Problem]:
    """`profile` is the one on Chat: what its row says the backend has. `spoken` is the provider's `wire`."""
    wire = profile.wire
    if wire.chat is not None or wire.ollama is not None or spoken == "responses":
        return
    if spoken == "chat":
        yield Problem(("wire", "chat"), 'is off, and `wire = "chat"` of the provider allows no other way')
    elif wire.responses is None and wire.open_responses is None:
        yield Problem(("wire", "chat"), "is off, and there is no other way: set `wire.responses`")


def _host(provider: Mapping[str, Any]) -> str | None:
    """Empty where none is given, None where what is given is none."""
    url, kind = provider.get("base_url"), str(provider.get("kind"))
    if url is None:
        return ""
    try:
        return urlsplit(normalise(url, kind)).hostname if isinstance(url, str) else None
    except ValueError:
        return None
