"""Certificates for backends on loopback: one that the test's authority signed, and wrong ones."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority, and its certificate in a file for `SSL_CERT_FILE`."""

    authority: trustme.CA
    file: Path

    def context(self, *names: str, expired: bool = False) -> ssl.SSLContext:
        """Of a server that is called `names`."""
        until = datetime.now(UTC) + timedelta(days=-1 if expired else 1)
        since = until - timedelta(days=2)
        return _serving(self.authority.issue_cert(*names, not_before=since, not_after=until))


def new_authority(folder: Path) -> Authority:
    authority, file = trustme.CA(), folder / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    return Authority(authority, file)


def stranger(*names: str) -> ssl.SSLContext:
    """Of a server whose authority nobody knows."""
    return _serving(trustme.CA().issue_cert(*names))


def _serving(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context
