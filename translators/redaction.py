"""What a backend's words must not tell a client: keys, inner addresses, stack traces.

Error texts quote what the gateway sent ("Incorrect API key provided: sk-..."), where it
sent it, and sometimes the backend's own source. The useful words around them stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_LENGTH = 2000
"""Characters of a backend's text that a client gets; a page of HTML is no error message."""

_MASK = "[redacted]"

_SECRETS = re.compile(
    r"""
    \bBearer\s+[^\s"',;]+
    | \b(?:sk|pk|rk|gsk|xai|nvapi|pplx|csk|tgp|fw|hf|ghp|glpat|key)[-_](?=[A-Za-z_.\-]*[0-9*])
      [A-Za-z0-9_*.\-]{6,}
    | \bdapi[0-9A-Fa-f*]{6,}[-0-9]*
    | \bAIza[A-Za-z0-9_\-*]{10,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,}
    | \beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-.]+
    | \b(?:org|proj)-[A-Za-z0-9]{8,}
    | \b[0-9A-Fa-f]{32,}\b
    | (?<![A-Za-z0-9+/_\-])(?=(?:[A-Za-z+/_\-]*[0-9]){3})(?=[a-z0-9+/_\-]*[A-Z])(?=[A-Z0-9+/_\-]*[a-z])
      [A-Za-z0-9+/_\-]{40,}={0,2}
    """,
    re.VERBOSE,
)

_LABELLED = re.compile(
    r"""(\b(?:api[ _-]?key|access[ _-]?token|token|secret|password)\b(?:\ provided)?\s*[:=]\s*['"]?)"""
    r"""(?:(?=[^\s'",;]*[0-9])[^\s'",;]{6,}|[^\s'",;]{16,})""",
    re.IGNORECASE,
)

_URL = re.compile(
    r"\b(?:https?|wss?)://(?:[^\s/@\"'<>]+@)?(\[[0-9A-Fa-f:.]+\]|\[redacted\]|[^\s/:\"'<>)\]]+)(:\d+)?[^\s\"'<>)\]]*"
)

_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?(?![\w.]?\d)|\blocalhost(?::\d+)?\b")

_INNER_NAME = re.compile(
    r"\b[a-z0-9][a-z0-9.\-]{0,80}\.(?:internal|local|localdomain|lan|intranet|corp|svc)(?:\.[a-z0-9.\-]+)?(?::\d+)?",
    re.IGNORECASE,
)

_TRACEBACK = "Traceback (most recent call last):"


def without_secrets(text: str) -> str:
    """`text` as it is, but for what looks like a key."""
    return _LABELLED.sub(rf"\1{_MASK}", _SECRETS.sub(_MASK, text))


def redact(text: str, hide: Sequence[str] = ()) -> str:
    """`text` without secrets and inner addresses, at most `MAX_LENGTH` characters.

    `hide`: strings the caller knows to be private (its key, the backend's host).
    """
    text = _without_trace(text)[: 2 * MAX_LENGTH]  # bounded: some patterns cost the square of it
    for private in hide:
        if private:
            text = text.replace(private, _MASK)
    text = without_secrets(text)
    text = _URL.sub(_public_url, text)
    text = _ADDRESS.sub(_MASK, _INNER_NAME.sub(_MASK, text)).strip()
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"


def _without_trace(text: str) -> str:
    """A Python traceback is told by its last line, the exception."""
    before, mark, trace = text.partition(_TRACEBACK)
    return before + trace.rstrip().rpartition("\n")[2] if mark else text


def _public_url(match: re.Match[str]) -> str:
    """A link to a vendor's pages stays; an address with a port or inside a network does not."""
    host, port = match.group(1), match.group(2)
    inner = (
        port or "." not in host or host[0] == "[" or _ADDRESS.fullmatch(host) or _INNER_NAME.fullmatch(host)
    )
    return _MASK if inner or _MASK in match.group(0) else match.group(0)
