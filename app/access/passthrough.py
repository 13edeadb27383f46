"""The caller's own key on its way to the one backend that it is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from providers.base import Provider, Target
from providers.passthrough import PassthroughProvider

from .auth import Keys, presented

Sign = Callable[[Sequence[Target], Mapping[bytes, bytes]], Sequence[Target]]


def signing(providers: Sequence[Provider], keys: Callable[[], Keys]) -> Sign | None:
    """What gives targets the key of a request; None: no provider takes one."""
    if not any(isinstance(each, PassthroughProvider) for each in providers):
        return None

    def sign(targets: Sequence[Target], headers: Mapping[bytes, bytes]) -> Sequence[Target]:
        key = key_for_backends(headers, keys())
        return [_signed(target, key) for target in targets]

    return sign


def key_for_backends(headers: Mapping[bytes, bytes], keys: Keys) -> str | None:
    """What a request carries that is no key of the gateway: those go nowhere."""
    for token in presented(headers):
        if token.isascii() and not keys.is_key(token):
            return token.decode()
    return None


def _signed(target: Target, key: str | None) -> Target:
    provider = target.provider
    if not isinstance(provider, PassthroughProvider):
        return target
    return Target(provider.signed_by(key), target.model)
