"""API keys of the gateway itself: who may ask, and what each may use."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from config.keys import SCHEME, Key, KeyLimits
from translators.errors import ProxyError

from .scopes import Scope

_FORMS = "`Authorization: Bearer KEY` or `x-api-key: KEY`"
_NO_LIMITS = KeyLimits()


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """What the holder of one key of the keys file may do."""

    name: str
    owner: str
    """Whose the responses are that are stored for it."""
    scope: Scope | None
    """None: every model."""
    limits: KeyLimits | None
    """None: no limits."""
    refused: Callable[[float], str | None]
    """Why the key is no longer taken at a `time.time()`, None: it is."""


class RefusedKey(ProxyError):
    """A key of the file that is no longer taken; `name` is for the log, which says whose it was."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__("auth", f"this API key {why}: ask whoever runs this gateway for another")
        self.name = name


class Keys:
    """The keys that may ask; none configured: everyone may (the configuration allows that on loopback only).

    Digests are compared, so that neither a key's length nor its first wrong character shows in the time
    taken. Of `keys` every one is compared, so that its place in the list does not either. Those of the file
    are looked up by the digest of what was sent: whoever asks can choose that no better than guess a key.
    """

    def __init__(
        self,
        keys: Sequence[str],
        entries: Sequence[Key] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`entries` are the keys file's, None: there is no such file. An empty one lets nobody in."""
        self._digests = [_digest(key.encode()) for key in keys]
        self._entries = {
            bytes.fromhex(key.hash.removeprefix(SCHEME)): access_of(key) for key in entries or ()
        }
        self._clock = clock
        self.asked = bool(keys) or entries is not None
        """Whether a key has to be sent at all."""

    def owner(self, headers: Mapping[bytes, bytes]) -> str:
        """Whose the responses of this request are; not the key itself, which nothing keeps."""
        if not self.asked:
            return "local"
        access = self.access(headers)
        if access is not None:
            return access.owner
        token = next((each for each in presented(headers) if self._is_plain(_digest(each))), b"")
        return owner_of(b"dragoman owner: " + token)

    def admit(self, headers: Mapping[bytes, bytes]) -> Access | None:
        """What the request's key may do, None: everything.

        Raises `ProxyError` (401) unless it carries one of the keys.
        """
        if not self.asked:
            return None
        for token in presented(headers):
            digest = hashlib.sha256(token).digest()
            if self._digests and self._is_plain(digest):
                return None
            access = self._entries.get(digest)
            if access is not None:
                why = access.refused(self._clock())
                if why is not None:
                    raise RefusedKey(access.name, why)
                return access
        raise ProxyError("auth", f"invalid API key: send one of the gateway's keys as {_FORMS}")

    def access(self, headers: Mapping[bytes, bytes]) -> Access | None:
        """The same of a request that was let in; its key may have been taken away meanwhile."""
        return self.admit(headers) if self._entries else None

    def scope(self, headers: Mapping[bytes, bytes]) -> Scope | None:
        """The models that a request which was let in may be answered by, None: all."""
        access = self.access(headers)
        return None if access is None else access.scope

    def is_key(self, token: bytes) -> bool:
        """Whether this is a key of the gateway, taken or not: such a one goes nowhere else."""
        digest = _digest(token)
        return self._is_plain(digest) or digest in self._entries

    def _is_plain(self, digest: bytes) -> bool:
        same = [hmac.compare_digest(digest, known) for known in self._digests]  # with all of them
        return any(same)


def access_of(key: Key) -> Access:
    restricted = key.models is not None or key.classes is not None
    scope = Scope(key.models, key.classes) if restricted else None
    until = None if key.expires is None else key.expires.timestamp()

    def refused(now: float) -> str | None:
        if key.disabled:
            return "is disabled"
        return "has expired" if until is not None and now >= until else None

    limits = None if key.limits == _NO_LIMITS else key.limits
    return Access(key.name, owner_of(b"dragoman key owner: " + key.holder.encode()), scope, limits, refused)


def owner_of(identity: bytes) -> str:
    """What stands for it in the store."""
    return _digest(identity).hex()[:32]


def presented(headers: Mapping[bytes, bytes]) -> Sequence[bytes]:
    """What may be a key: of `authorization`, then `x-api-key`."""
    found = []
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if token and scheme.lower() == b"bearer" and (token := token.strip()):
        found.append(token)
    if b"x-api-key" in headers and (token := headers[b"x-api-key"].strip()):
        found.append(token)
    return found


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
