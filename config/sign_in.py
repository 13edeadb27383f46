"""Which keys of a provider may stand together to say how the gateway signs in to a Databricks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_KEYS = ("auth", "client_id", "client_secret", "config_profile")
_PAIR = {"client_id": "client_secret", "client_secret": "client_id"}
_REFUSED: Mapping[str, tuple[str, ...]] = {
    "pat": ("client_id", "client_secret"),
    "oauth-m2m": ("api_key",),
    "sdk": ("api_key", "client_id", "client_secret"),
}
"""Keys that say another way than `auth` does."""


def sign_in_problems(provider: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str]]:
    """Key and fault, in the order of the keys; `kind` empty: it is wrong itself."""
    given = [key for key in _KEYS if key in provider]
    if kind != "databricks":
        yield from ((key, f"has no meaning for kind {kind}") for key in given if kind)
        return
    for key in given:
        if key in _PAIR and _PAIR[key] not in provider:
            yield key, f"needs {_PAIR[key]} beside it"
    auth = provider.get("auth")
    refused = _REFUSED.get(auth, ()) if isinstance(auth, str) else ()
    yield from ((key, f"has no meaning with auth {auth}") for key in refused if key in provider)
    if auth is None and "api_key" in provider and "client_id" in provider:
        yield "client_id", "stands beside api_key: keep one of them"
    if "config_profile" in provider and ("api_key" in provider or "client_id" in provider):
        yield "config_profile", "has no meaning beside api_key or client_id: keep one way to sign in"
