"""Which IP addresses belong to the public internet.

Kept as a table, because what `ipaddress.is_global` says changes between patch releases of
Python and is yes for multicast, NAT64 and the host-only addresses of clouds.
Source: IANA's special-purpose address registries for IPv4 and IPv6 (RFC 6890).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_NOT_PUBLIC = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # behind a carrier's NAT; Alibaba's metadata is 100.100.100.200
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host, which answers virtual machines only
        "169.254.0.0/16",  # link-local; the metadata of most clouds is 169.254.169.254
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocols; Oracle's metadata is 192.0.0.192
        "192.0.2.0/24",  # documentation, as are 198.51.100.0 and 203.0.113.0
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)

_UNICAST = IPv6Network("2000::/3")
"""All that is assigned for the public. Outside of it: loopback, link-local, unique local (AWS's
metadata is fd00:ec2::254), multicast, IPv4-mapped and NAT64 (64:ff9b::/96), which lead to IPv4."""

_NOT_UNICAST = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocols; Teredo, which leads to IPv4
        "2001:db8::/32",  # documentation, as is 3fff::
        "2002::/16",  # 6to4, which leads to IPv4
        "3fff::/20",
    )
)


def is_public(address: Address) -> bool:
    """Whether anyone on the internet could mean the same host by `address`."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC)
    return address in _UNICAST and not any(address in network for network in _NOT_UNICAST)
