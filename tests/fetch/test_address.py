"""Addresses that are not public are refused in every notation."""

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill import Addresses, InvalidInput

FORBIDDEN_4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
]
FORBIDDEN_6 = [
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]

WRAPPINGS: dict[str, Callable[[int, int], int]] = {
    "mapped": lambda inner, _: 0xFFFF << 32 | inner,
    "compatible": lambda inner, _: inner,
    "translated": lambda inner, _: 0xFFFF << 48 | inner,
    "NAT64": lambda inner, _: 0x64FF9B << 96 | inner,
    "local NAT64": lambda inner, rest: 0x64FF9B_0001 << 80 | (rest & 0xFFFF_FFFF) << 32 | inner,
    "6to4": lambda inner, rest: 0x2002 << 112 | inner << 80 | rest & (1 << 80) - 1,
    "Teredo server": lambda inner, rest: 0x2001_0000 << 96 | inner << 64 | rest & (1 << 64) - 1,
    "Teredo client": lambda inner, _: 0x2001_0000 << 96 | inner ^ 0xFFFF_FFFF,
    "ISATAP": lambda inner, rest: _prefix(rest) | 0x0000_5EFE << 32 | inner,
    "ISATAP, unique": lambda inner, rest: _prefix(rest) | 0x0200_5EFE << 32 | inner,
}


def _prefix(rest: int) -> int:
    """A public 64-bit prefix."""
    return 0x2A00 << 112 | (rest & (1 << 48) - 1) << 64


def inside(networks: list[str]) -> st.SearchStrategy[int]:
    """Addresses as integers, with equal weight for each network."""

    def members(text: str) -> st.SearchStrategy[int]:
        network = (IPv6Network if ":" in text else IPv4Network)(text)
        return st.integers(int(network.network_address), int(network.broadcast_address))

    return st.one_of(list(map(members, networks)))


@given(inside(FORBIDDEN_4))
def test_a_forbidden_ipv4_address_is_refused(number: int):
    assert not Addresses().permit(str(IPv4Address(number)), 80)


@given(inside(FORBIDDEN_6))
def test_a_forbidden_ipv6_address_is_refused(number: int):
    assert not Addresses().permit(str(IPv6Address(number)), 80)


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@given(inner=inside(FORBIDDEN_4), rest=st.integers(0, (1 << 128) - 1))
def test_a_forbidden_address_embedded_in_another_is_refused(wrapping: str, inner: int, rest: int):
    wrapped = IPv6Address(WRAPPINGS[wrapping](inner, rest))
    assert not Addresses().permit(str(wrapped), 80)


@given(st.integers(0, (1 << 128) - 1), st.text("abcdef0123", min_size=1))
def test_an_address_with_a_scope_is_refused(number: int, scope: str):
    address = f"{IPv6Address(number)}%{scope}"
    assert not Addresses().permit(address, 80)
    assert not Addresses(allow=["::/0"]).permit(address, 80)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "169.254.169.254",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
        "255.255.255.255",
        "0.0.0.0",
        "::",
        "::1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "2002:a9fe:a9fe::",
        "2002:808:808::1",
        "2001:0:808:808::1",
        "2a00:1450::5efe:a00:1",
        "localhost",
        "",
        "8.8.8.8:80",
        "127.1",
        "2130706433",
    ],
)
def test_a_non_public_address_is_refused(address: str):
    assert not Addresses().permit(address, 80)


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "1.1.1.1",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "168.63.129.17",
        "223.255.255.255",
        "2a00:1450:4001:80f::200e",
        "2606:4700:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2a00:1450::5efe:808:808",
    ],
)
def test_a_public_address_is_permitted(address: str):
    assert Addresses().permit(address, 443)


@pytest.mark.parametrize("port", [80, 443, 1024, 3000, 8000, 8080, 8443, 65535])
def test_web_ports_are_permitted(port: int):
    assert Addresses().permit("8.8.8.8", port)


@pytest.mark.parametrize("port", [1, 21, 22, 25, 110, 465, 587, 2525, 5060, 6379, 6667, 11211])
def test_ports_of_other_protocols_are_refused(port: int):
    assert not Addresses().permit("8.8.8.8", port)


class TestAllow:
    @pytest.mark.parametrize(
        ("entry", "address"),
        [
            ("127.0.0.1:8123", "127.0.0.1"),
            ("127.0.0.1/32:8123", "127.0.0.1"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.0/8", "127.9.9.9"),
            ("127.0.0.1:8123", "::ffff:127.0.0.1"),
            ("[::1]:8123", "::1"),
            ("[fd00::/8]:8123", "fd12::1"),
            ("fd00::/8", "fd12::1"),
        ],
    )
    def test_an_address_covered_by_an_entry_is_permitted(self, entry: str, address: str):
        assert Addresses(allow=[entry]).permit(address, 8123)

    @pytest.mark.parametrize(
        ("address", "port"),
        [
            ("127.0.0.1", 8124),
            ("127.0.0.2", 8123),
            ("::1", 8123),
            ("64:ff9b::127.0.0.1", 8123),
            ("2002:7f00:1::", 8123),
        ],
    )
    def test_an_address_outside_the_entry_is_refused(self, address: str, port: int):
        assert not Addresses(allow=["127.0.0.1:8123"]).permit(address, port)

    def test_an_entry_can_allow_any_port(self):
        assert Addresses(allow=["10.0.0.5:25"]).permit("10.0.0.5", 25)

    def test_refuse_takes_precedence_over_allow(self):
        addresses = Addresses(allow=["8.8.0.0/16"], refuse=["8.8.8.0/24", "1.1.1.1:443"])
        assert not addresses.permit("8.8.8.8", 80)
        assert not addresses.permit("::ffff:8.8.8.8", 80)
        assert addresses.permit("8.8.4.4", 80)
        assert not addresses.permit("1.1.1.1", 443)
        assert addresses.permit("1.1.1.1", 80)

    @pytest.mark.parametrize(
        "entry",
        ["", "localhost", "127.0.0.1:x", "10.0.0.1/8", "[::1]8123x", "[::1", "1.2.3.4:99999", "*"],
    )
    def test_an_invalid_entry_is_refused(self, entry: str):
        with pytest.raises(InvalidInput, match="is not a valid address or network"):
            Addresses(allow=[entry])
