"""Web pages that call the gateway: which may read its answers, and which may not even ask.

Off unless `server.cors_origins` names some. Keys are put into requests by a page's script, so cookies
are not allowed for. What a page may not read it could still send: a POST of plain text needs no permission.
Where no key is asked that would be anybody's page, so a browser's word that it is another site's is believed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from config.checks import is_loopback
from translators.errors import ProxyError

METHODS = ("GET", "HEAD", "POST", "DELETE")
EXPOSED = (
    *("x-request-id", "retry-after", "x-dragoman-model", "x-dragoman-dropped", "x-dragoman-repairs"),
    *("x-dragoman-stale", "x-dragoman-estimated", "openai-processing-ms"),
    *(
        f"x-ratelimit-{what}-{of}"
        for of in ("requests", "tokens")
        for what in ("limit", "remaining", "reset")
    ),
)
"""Headers that a page's script may read, besides those that browsers show anyway."""


class Cors:
    """Puts an application behind Starlette's middleware for the origins that are configured by now."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._origins: Collection[str] = ()
        self._behind: ASGIApp = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send, origins: Collection[str]) -> None:
        if origins != self._origins:
            self._origins = origins
            self._behind = CORSMiddleware(
                self._app,
                allow_origins=origins,
                allow_methods=METHODS,
                allow_headers=("*",),
                expose_headers=EXPOSED,
            )
        await self._behind(scope, receive, send)


def check_page(headers: Mapping[bytes, bytes], allowed: Collection[str]) -> None:
    """Refuse (403) what a browser says it asks for a page of another site, where everybody may ask.

    Those that do not say whose page it is (Safari before 16.4) name its origin, at least with a POST.
    """
    site = headers.get(b"sec-fetch-site")
    if site not in (None, b"cross-site"):
        return
    origin = headers.get(b"origin", b"null").decode("latin-1").lower()
    own = site is None and is_own(origin, headers)
    if own or origin in allowed or "*" in allowed or not _is_web(origin):
        return
    message = "a page of another site may not ask here: name its origin in server.cors_origins, or use a key"
    raise ProxyError("forbidden", message, code="origin_not_allowed")


def is_own(origin: str, headers: Mapping[bytes, bytes]) -> bool:
    """Whether the page comes from where it asks."""
    return origin.partition("://")[2] == headers.get(b"host", b"").decode("latin-1").lower()


def _is_web(origin: str) -> bool:
    """A page of the web. What runs on this machine has an origin here, or one that is no site's
    (`app://obsidian.md`, `vscode-webview://...`).
    """
    if origin == "null":  # of a frame without an origin, or a page without a referrer
        return True
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and not is_loopback(parts.hostname or "")
