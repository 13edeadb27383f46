"""Which addresses a client's URL may lead to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from providers.addresses import is_public

PUBLIC = """
1.1.1.1 8.8.8.8 93.184.215.14 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.0.1.0
168.63.129.15 223.255.255.255 2606:4700:4700::1111 2001:4860:4860::8888 2a00:1450::1 2001:200::1
"""
CLOSED = {
    "loopback": "127.0.0.1 127.1.2.3 127.255.255.255 ::1",
    "private": "10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 fc00::1 fd12:3456::1 fec0::1",
    "link-local": "169.254.0.1 fe80::1 fe80::1%1",
    "metadata": "169.254.169.254 169.254.170.2 100.100.100.200 192.0.0.192 168.63.129.16 fd00:ec2::254",
    "behind a carrier's NAT": "100.64.0.1 100.127.255.255",
    "unspecified": "0.0.0.0 0.1.2.3 ::",
    "multicast": "224.0.0.1 239.255.255.255 ff02::1 ff0e::1",
    "broadcast, reserved": "255.255.255.255 240.0.0.1",
    "documentation": "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1",
    "benchmarks": "198.18.0.1 198.19.255.255",
    "IPv4 mapped or compatible": "::ffff:127.0.0.1 ::ffff:8.8.8.8 ::127.0.0.1",
    "IPv4 behind a translator": "64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::808:808 "
    "64:ff9b:1::1 192.88.99.1",
    "IPv4 in a tunnel": "2002:7f00:1::1 2002:a9fe:a9fe:: 2001:0:7f00:1::1",
    "not assigned": "4000::1 1::1 100::1",
}


@pytest.mark.parametrize("address", PUBLIC.split())
def test_the_public_internet(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize("address", " ".join(CLOSED.values()).split())
def test_everything_else(address: str) -> None:
    assert not is_public(ip_address(address))
