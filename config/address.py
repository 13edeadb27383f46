"""Base URLs as people write them, put into one form: scheme, host, path, no trailing slash."""

from __future__ import annotations

from urllib.parse import urlsplit

_ROUTES = ("/chat/completions", "/responses", "/embeddings", "/models")
_WORKSPACE_PATHS = ("/serving-endpoints", "/ai-gateway", "/api/2.0", "/browse", "/login")


def normalise(url: str, kind: str) -> str:
    """The base URL without what the kind adds itself; raises ValueError saying what to change.

    A Databricks host is often copied from a browser or from DATABRICKS_HOST: without a
    scheme, with a query (`?o=123`), a trailing slash or the path of a page.
    """
    text = url.strip()
    if "://" not in text and kind in _DEFAULT_SCHEME:
        text = f"{_DEFAULT_SCHEME[kind]}://{text}"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https"):
        raise ValueError("must begin with http:// or https://")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user or password; put the key into api_key")
    if not parts.hostname or not _port_is_valid(parts.netloc):
        raise ValueError("has no valid host and port")
    path = parts.path.rstrip("/")
    if kind == "databricks":
        path = _before(path, _WORKSPACE_PATHS)
    elif parts.query or parts.fragment:
        raise ValueError("must not hold a query; put it into overrides.wire.chat")
    if kind == "ollama":
        path = path.removesuffix("/v1").removesuffix("/api")
    route = next((each for each in _ROUTES if path.endswith(each)), None)
    if route:
        raise ValueError(f"must end before {route}; the gateway adds it")
    return f"{parts.scheme}://{parts.netloc}{path}"


# What their own tools assume when the host stands alone.
_DEFAULT_SCHEME = {"databricks": "https", "ollama": "http"}


def _before(path: str, markers: tuple[str, ...]) -> str:
    cuts = [at for marker in markers if (at := path.find(marker)) >= 0]
    return path[: min(cuts)] if cuts else path


def _port_is_valid(netloc: str) -> bool:
    try:
        port = urlsplit(f"//{netloc}").port
    except ValueError:
        return False
    return port is None or port > 0
