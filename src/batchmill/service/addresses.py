"""Addresses of clients and proxies."""

from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from batchmill.errors import ConfigurationError

# The usual IPv6 allocation of one household or one rented machine.
IPV6_NETWORK = 64


def read_address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    address = read_address(host)
    return address.is_loopback if address else host == "localhost"


def counted_as(address: str) -> str:
    """Returns an IPv4 address itself, and an IPv6 network, since a client has many addresses."""
    found = read_address(address)
    if not isinstance(found, IPv6Address):
        return address
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ip_network((found, IPV6_NETWORK), strict=False))


class Proxies:
    """The trusted proxies: the service accepts the client addresses that they report."""

    def __init__(self, given: Iterable[str]):
        self._networks = _networks(given)

    def __contains__(self, address: str) -> bool:
        found = read_address(address)
        return found is not None and any(found in network for network in self._networks)

    def client(self, peer: str, forwarded: Iterable[str]) -> str:
        """Returns the client's address: the last address in `forwarded` (the values of
        X-Forwarded-For) that is not a trusted proxy. Ignores it from untrusted peers."""
        rest = ",".join(forwarded).split(",")
        address = peer
        while address in self:
            if not rest or not (there := read_address(rest.pop().strip())):
                break
            address = str(there)
        return address


def _networks(given: Iterable[str]) -> list[IPv4Network | IPv6Network]:
    try:
        return [ip_network(each) for each in given]
    except ValueError as error:
        raise ConfigurationError(
            f"BATCHMILL_TRUSTED_PROXIES must be networks such as 10.0.0.0/8: {error}."
        ) from None
