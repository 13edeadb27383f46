"""Headers that a backend is signed with where they change: kept, renewed in time, asked for once.

A request takes the kept ones without waiting: one look at the clock. Shortly before they die they
are renewed behind the requests' backs; when none are left, all requests wait for the same renewal.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog

from translators.errors import ProxyError

MASKED_FROM = 6
"""Characters of a secret that is masked in errors; a shorter one hides nothing, its mask ordinary words."""
REFUSED_S = 10.0
"""How long a sign-in that was refused is not tried again: its cause lies in the configuration."""
FAILED_S = 0.25
"""The same for one that broke, which may be over in a moment."""
USELESS_S = 60.0
"""How long refusals are believed after fresh headers were refused as well: they are not about the token."""

_TOKEN = re.compile(r"[\x21-\x7e]+")

_log = structlog.get_logger("dragoman")


@dataclass(frozen=True, slots=True)
class Signature:
    """Headers, and their ages in seconds: from which a renewal is begun, and from which they are dead."""

    headers: Mapping[str, str] = field(repr=False)
    renew_s: float
    dies_s: float


Sign = Callable[[bool], Awaitable[Signature]]
"""Gets a signature; True: nothing that was kept by whoever is asked is good any more.

Raises `ProxyError`, in words without a secret.
"""


def bearer(token: str) -> dict[str, str]:
    """Raises ValueError for what can stand in no header."""
    if not _TOKEN.fullmatch(token):
        raise ValueError("not a token")
    return {"Authorization": f"Bearer {token}"}


class Signer:
    """One account's headers; for one event loop.

    `private` is what no client may read: the secrets, the newest tokens and those before them, which
    answers under way may still quote. The list stays the same object.
    """

    def __init__(
        self,
        provider: str,
        sign: Sign,
        secrets: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider, self._sign, self._clock = provider, sign, clock
        self._secrets = [secret for secret in secrets if len(secret) >= MASKED_FROM]
        self.private: list[str] = list(self._secrets)
        self._headers: Mapping[str, str] = {}
        self._renew_at = self._dies_at = self._useless_until = float("-inf")
        self._failure: ProxyError | None = None
        self._failed_until = float("-inf")
        self._task: asyncio.Task[None] | None = None

    def fresh(self) -> Mapping[str, str] | None:
        """Headers that are good now; None: `headers` must be waited for."""
        now = self._clock()
        if now < self._renew_at:
            return self._headers
        if now >= self._dies_at:
            return None
        if self._task is None and now >= self._failed_until:
            self._begin(anew=False)
        return self._headers

    async def headers(self) -> Mapping[str, str]:
        """Raises `ProxyError` when none can be had."""
        found = self.fresh()
        if found is None:
            await self._renewed(anew=False)
            found = self._headers
        return found

    async def instead_of(self, refused: Mapping[str, str]) -> Mapping[str, str] | None:
        """Others than those that a backend has just refused; None: there are none to be had.

        However many were refused at the same time, one renewal serves them all.
        """
        try:
            if self._headers is refused and self._task is not None:
                await self._renewed(anew=True)
            if self._headers is refused and self._clock() >= self._useless_until:
                await self._renewed(anew=True)
                if self._headers is refused:  # signing in again gave the same ones
                    self.note_useless()
        except ProxyError:
            return None
        return None if self._headers is refused else self._headers

    def note_useless(self) -> None:
        """Headers from `instead_of` were refused like the old ones."""
        self._useless_until = self._clock() + USELESS_S

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _renewed(self, anew: bool) -> None:
        if self._task is None and self._clock() >= self._failed_until:
            self._begin(anew)
        if self._task is not None:
            await asyncio.shield(self._task)  # a client that goes away takes nobody's token with it
        if self._failure is not None:
            raise replace(self._failure)  # each caller adds words of its own

    def _begin(self, anew: bool) -> None:
        self._task = asyncio.get_running_loop().create_task(self._renew(anew))

    async def _renew(self, anew: bool) -> None:
        began = self._clock()
        try:
            signature = await self._sign(anew)
        except ProxyError as error:
            self._failure = error
            pause = REFUSED_S if error.kind == "upstream_auth" else FAILED_S
            self._failed_until = self._clock() + pause
            _log.warning("sign_in_failed", provider=self._provider, reason=str(error))
        else:
            self._failure = None
            self._keep(signature, began)
            if anew:
                _log.info("signed_in_again", provider=self._provider)
        finally:
            self._task = None

    def _keep(self, signature: Signature, began: float) -> None:
        self._renew_at, self._dies_at = began + signature.renew_s, began + signature.dies_s
        if signature.headers == self._headers:
            return
        new, old = _tokens(signature.headers), _tokens(self._headers)
        self._headers = signature.headers
        self.private[:] = dict.fromkeys((*self._secrets, *new, *old))


def _tokens(headers: Mapping[str, str]) -> list[str]:
    """The secret part of each header: what follows the scheme."""
    parts = (value.rpartition(" ")[2] for value in headers.values())
    return [part for part in parts if len(part) >= MASKED_FROM]
