"""API keys of the gateway itself."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence

from translators.errors import ProxyError

_FORMS = "`Authorization: Bearer KEY` or `x-api-key: KEY`"


class Keys:
    """The keys that may ask; none configured: everyone may (the configuration allows that on loopback only).

    Digests are compared, so that neither a key's length nor its first wrong character shows in
    the time taken, and every key is compared, so that its place in the list does not either.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._digests = [_digest(key.encode()) for key in keys]

    def admit(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise `ProxyError` (401) unless the request carries one of the keys."""
        if not self._digests:
            return
        given = _digest(_presented(headers))
        known = [hmac.compare_digest(given, digest) for digest in self._digests]
        if not any(known):
            raise ProxyError("auth", f"invalid API key: send one of the gateway's keys as {_FORMS}")


def _presented(headers: Mapping[bytes, bytes]) -> bytes:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer":
        return token.strip()
    return headers.get(b"x-api-key", b"").strip()


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
