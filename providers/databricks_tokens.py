"""Ways to sign in to a Databricks workspace whose token changes; each is a `Sign` of `signing.py`.

A service principal's token is fetched here: it is one form post. Whatever else there is (Azure,
Google, the command line's login, a notebook's own) the vendor's SDK knows; it blocks, so it is
asked in a thread of its own.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import orjson
import structlog

from translators.errors import Kind, ProxyError
from translators.redaction import redact

from .extras import install, is_installed
from .signing import Sign, Signature, bearer

TOKEN_S = 10.0
"""Longest wait for the token endpoint."""
EARLY_S = 40.0
"""A token is not used in its last seconds (S databricks-sdk: the same)."""
AHEAD_S = 600.0
"""How long before its end a token is renewed in the background (S dbx-tools)."""
UNKNOWN_S = 1800.0
"""Lifetime of a token that does not tell it (S dbx-tools)."""
SDK_S = 30.0
"""Longest wait for the SDK: it may start the vendor's command line, which calls out."""
SDK_RENEW_S, SDK_DIES_S = 20.0, 35.0
"""The SDK keeps the token itself and renews it 40 s before its end: one taken 35 s ago is alive."""
NO_SDK = f'signing in this way needs the extra "databricks": {install("databricks")}'

_LABEL = re.compile(r"[a-z_]{3,60}")
"""An OAuth error code; anything else in its place is not repeated."""

_log = structlog.get_logger("dragoman")


@dataclass(frozen=True, slots=True)
class ServicePrincipal:
    """OAuth for machines: client credentials against the workspace's own token endpoint."""

    provider: str
    host: str
    client_id: str
    client_secret: str = field(repr=False)

    async def sign(self, _anew: bool) -> Signature:
        """Raises `ProxyError`: upstream_auth (refused), upstream (failed), timeout."""
        # Imported on use: with a static key nothing needs it, and it costs 0.1 s of start.
        import httpx

        try:
            async with asyncio.timeout(TOKEN_S), httpx.AsyncClient(timeout=TOKEN_S) as client:
                answer = await client.post(
                    f"{self.host}/oidc/v1/token",
                    auth=(self.client_id, self.client_secret),
                    data={"grant_type": "client_credentials", "scope": "all-apis"},
                )
        except (TimeoutError, httpx.TimeoutException) as error:
            raise self._failed("timeout", f"did not answer within {TOKEN_S:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self._failed("upstream", f"could not be reached ({type(error).__name__})") from error
        return self._read(answer.status_code, answer.content)

    def _read(self, status: int, content: bytes) -> Signature:
        body = _table(content)
        if status != 200:
            label = body.get("error")
            why = f" ({label})" if isinstance(label, str) and _LABEL.fullmatch(label) else ""
            passing = status >= 500 or status in (408, 429)
            raise self._failed(
                "upstream" if passing else "upstream_auth", f"answered with status {status}{why}"
            )
        try:
            headers = bearer(str(body.get("access_token", "")))
        except ValueError:
            raise self._failed("upstream_auth", "gave no token") from None
        return lasting(headers, body.get("expires_in"))

    def _failed(self, kind: Kind, what: str) -> ProxyError:
        code = None if kind == "timeout" else "upstream_auth"
        return ProxyError(kind, f"provider {self.provider}: the workspace's token endpoint {what}", code=code)


def lasting(headers: Mapping[str, str], expires_in: Any) -> Signature:
    """A signature that ends `expires_in` seconds from now, as its endpoint says."""
    told = isinstance(expires_in, int | float) and not isinstance(expires_in, bool) and expires_in > 0
    life = float(expires_in) if told else UNKNOWN_S
    return Signature(headers, max(life - AHEAD_S, life / 2), life - min(EARLY_S, life / 4))


def kept_token(provider: str, read: Callable[[], str | None]) -> Sign:
    """A token from a file that someone may replace: it is read again when it is refused."""

    async def sign(_anew: bool) -> Signature:
        try:
            return Signature(bearer(read() or ""), float("inf"), float("inf"))
        except ValueError:
            message = f"provider {provider}: its profile holds no token any more"
            raise ProxyError("upstream_auth", message) from None

    return sign


def sdk_is_installed() -> bool:
    return is_installed("databricks")


class Sdk:
    """The vendor's chain of strategies, for one workspace and, if named, one profile of its file."""

    def __init__(self, provider: str, host: str, profile: str | None = None) -> None:
        self._provider = provider
        self._host, self._profile = host, profile
        self._config: Any = None
        self._busy = False

    async def sign(self, anew: bool) -> Signature:
        """Raises `ProxyError`: upstream_auth (not signed in), upstream (failed), timeout."""
        try:
            async with asyncio.timeout(SDK_S):
                headers = await self._in_thread(lambda: self._ask(anew))
        except TimeoutError as error:
            raise self._failed("timeout", f"did not sign in within {SDK_S:g} s") from error
        except Exception as error:  # whatever it and the libraries under it raise
            raise self._told(error) from error
        return Signature(headers, SDK_RENEW_S, SDK_DIES_S)

    def _ask(self, anew: bool) -> dict[str, str]:
        from databricks.sdk.core import Config

        if anew or self._config is None:
            self._config = Config(
                host=self._host,
                profile=self._profile,
                http_timeout_seconds=TOKEN_S,
                retry_timeout_seconds=int(SDK_S),
                disable_async_token_refresh=True,  # it is asked ahead of time as it is
                product="dragoman",
                product_version=version("dragoman"),
            )
        return {name: str(value) for name, value in self._config.authenticate().items()}

    async def _in_thread(self, work: Callable[[], dict[str, str]]) -> dict[str, str]:
        """Run `work` in a thread that ends with the process: a sign-in may wait for a person for ever.

        Never two at a time, so that one that hangs leaves no others behind.
        """
        if self._busy:
            raise TimeoutError
        self._busy = True
        outcome: Future[dict[str, str]] = Future()
        outcome.set_running_or_notify_cancel()  # from now on nobody can take it from the thread

        def run() -> None:
            try:
                headers = work()
            except BaseException as error:
                self._busy = False
                outcome.set_exception(error)
            else:
                self._busy = False
                outcome.set_result(headers)

        threading.Thread(target=run, name=f"sign-in {self._provider}", daemon=True).start()
        return await asyncio.wrap_future(outcome)

    def _told(self, error: Exception) -> ProxyError:
        """The SDK's words name hosts, tenants and paths: they are for the log."""
        _log.warning("databricks_sdk_failed", provider=self._provider, reason=redact(str(error)))
        passing = type(error).__module__.startswith("requests.")  # the network, not the account
        what = f"could not sign in ({type(error).__name__}); the gateway's log says why"
        return self._failed("upstream" if passing else "upstream_auth", what)

    def _failed(self, kind: Kind, what: str) -> ProxyError:
        code = None if kind == "timeout" else "upstream_auth"
        return ProxyError(kind, f"provider {self._provider}: databricks-sdk {what}", code=code)


def _table(content: bytes) -> Mapping[str, Any]:
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
