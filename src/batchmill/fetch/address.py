"""Which addresses may be reached: public ones, and those that are explicitly allowed.

The tables are batchmill's own. Python's `is_global` is True for some addresses that are not public,
for example NAT64 addresses that contain a private one, and it changes between releases.
"""

import re
from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import NamedTuple

from batchmill.errors import InvalidInput

_NOT_PUBLIC_4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers; also a cloud's metadata service, 100.100.100.200
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a public address, but a cloud's metadata service
        "169.254.0.0/16",  # link-local; the metadata service of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; also a cloud's metadata service, 192.0.0.192
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved; broadcast
    )
)

# This excludes loopback, link-local, unique local, multicast, IPv4-compatible and local NAT64.
_UNICAST_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments; Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, deprecated, and may contain any IPv4 address
        "3fff::/20",  # documentation
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = {0x0000_5EFE, 0x0200_5EFE}

# Below port 1024, only these speak HTTP. The ports after them speak line-based protocols: there, a
# request would act as commands from the author of the URL.
_WEB_PORTS = {80, 443}
_LINE_PORTS = {2525, 5060, 5061, 6379, *range(6660, 6670), 6697, 11211}

# An IPv6 address needs brackets to have a port.
_WITH_PORT = re.compile(r"(?:(?P<four>[^:\[\]]+)|\[(?P<six>[^\[\]]+)\]):(?P<port>[0-9]+)")

Address = IPv4Address | IPv6Address


class Addresses:
    """Public addresses and those in `allow`, except those in `refuse`.

    An entry is an address or a network, with a port or for all ports: "10.2.0.0/16",
    "127.0.0.1:8123", "fd00::/8", "[::1]:8123".
    """

    def __init__(self, *, allow: Iterable[str] = (), refuse: Iterable[str] = ()):
        self._allowed = [_Place.parse(entry) for entry in allow]
        self._refused = [_Place.parse(entry) for entry in refuse]

    def permit(self, address: str, port: int) -> bool:
        try:
            found = _unmapped(ip_address(address))
        except ValueError:
            return False
        if any(place.covers(found, port) for place in self._refused):
            return False
        if any(place.covers(found, port) for place in self._allowed):
            return True
        return is_public(found) and _is_for_the_web(port)


class _Place(NamedTuple):
    network: IPv4Network | IPv6Network
    port: int | None

    @classmethod
    def parse(cls, entry: str) -> "_Place":
        found = _WITH_PORT.fullmatch(entry)
        try:
            if found:
                return cls(ip_network(found["four"] or found["six"]), _port(found["port"]))
            return cls(ip_network(entry), None)
        except ValueError as error:
            raise InvalidInput(
                f'"{entry}" is not a valid address or network. Use a form such as '
                '"10.2.0.0/16", "127.0.0.1:8123" or "[::1]:8123".'
            ) from error

    def covers(self, address: Address, port: int) -> bool:
        scoped = isinstance(address, IPv6Address) and address.scope_id is not None
        return not scoped and address in self.network and self.port in (None, port)


def is_public(address: Address) -> bool:
    """True for global unicast. Also checks an address that is embedded in another one."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    if address.scope_id is not None:
        return False
    if address in _MAPPED or address in _NAT64:
        return is_public(_last_32_bits(address))
    if address not in _UNICAST_6 or any(address in network for network in _NOT_PUBLIC_6):
        return False
    return not _is_isatap(address) or is_public(_last_32_bits(address))


def _port(text: str) -> int:
    port = int(text)
    if not 0 < port < 65_536:
        raise ValueError(f"{port} is not a valid port: use 1 to 65535.")
    return port


def _unmapped(address: Address) -> Address:
    """The IPv4 address to which the operating system really connects."""
    if isinstance(address, IPv6Address) and address.scope_id is None and address in _MAPPED:
        return _last_32_bits(address)
    return address


def _is_isatap(address: IPv6Address) -> bool:
    return int(address) >> 32 & 0xFFFF_FFFF in _ISATAP


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)


def _is_for_the_web(port: int) -> bool:
    return port in _WEB_PORTS or (port >= 1024 and port not in _LINE_PORTS)
