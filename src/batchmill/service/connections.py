"""The connections of a server: limits on their number, and timeouts for idle ones."""

import asyncio
import logging
import resource
from collections import Counter
from typing import Protocol

from batchmill.config import ServiceSettings
from batchmill.service.addresses import Proxies, counted_as, read_address
from batchmill.service.slowing import Slowing

log = logging.getLogger("batchmill.service")

# For the database, files, pipes of child processes, and accepted connections not yet counted.
RESERVED_HANDLES = 128
MOST_HANDLES = 65_536
# Connections accepted in one iteration of the event loop. A refused connection keeps its handle
# for three iterations, so the reserve must hold three times this number.
ACCEPTED_AT_ONCE = 32
FEWEST = 16
CHECK_SECONDS = 0.5


class Connection(Protocol):
    """`address` is None for a trusted proxy, which speaks for many clients."""

    address: str | None

    def check(self, now: float) -> None:
        """Closes the connection if its deadline has passed."""
        ...

    def evict(self) -> None: ...


class Connections:
    """Counts connections per address and in total.

    When the server is full, a new connection replaces the connection that has waited longest for a
    request. If all connections are busy, the server refuses the new one.
    """

    def __init__(self, settings: ServiceSettings):
        self.settings = settings
        self._proxies = Proxies(settings.trusted_proxies)
        self._most = most_connections(settings.connections)
        self._open: dict[Connection, None] = {}
        # Connections without a request, in the order in which they began to wait.
        self._waiting: dict[Connection, None] = {}
        self._of_address: Counter[str] = Counter()
        self._log_lines = Slowing(tries=1, seconds=60)
        self._next_check: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def counted_address(self, address: str) -> str | None:
        """The address under which the connection counts, or None for a trusted proxy."""
        if read_address(address) is None or address in self._proxies:
            return None
        return counted_as(address)

    def enter(self, connection: Connection) -> bool:
        """Returns False if the server is full. A connection starts without a request."""
        if not self._make_room(connection.address):
            return False
        self._open[connection] = None
        self._waiting[connection] = None
        if connection.address is not None:
            self._of_address[connection.address] += 1
        if self._next_check is None:
            self._schedule()
        return True

    def leave(self, connection: Connection) -> None:
        if connection not in self._open:
            return
        del self._open[connection]
        self._waiting.pop(connection, None)
        if (address := connection.address) is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]

    def wait(self, connection: Connection) -> None:
        """Marks the connection as waiting for a request."""
        if connection in self._open:
            self._waiting[connection] = None

    def work(self, connection: Connection) -> None:
        """Marks the connection as busy with a request."""
        self._waiting.pop(connection, None)

    def _make_room(self, address: str | None) -> bool:
        of_address = self._of_address[address] if address is not None else 0
        if of_address >= self.settings.connections_per_address:
            return self._evict(address)
        return len(self._open) < self._most or self._evict(None)

    def _evict(self, address: str | None) -> bool:
        """Closes the connection that has waited longest, for this address if one is given."""
        if self._log_lines.allow(address or "") is None:
            log.warning(
                "The limit of connections from %s is reached: idle ones are closed, or new "
                "ones refused.",
                address or "all addresses",
            )
        for connection in self._waiting:
            if address is None or connection.address == address:
                connection.evict()
                self.leave(connection)
                return True
        return False

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        self._next_check = loop.call_later(CHECK_SECONDS, self._check, loop)

    def _check(self, loop: asyncio.AbstractEventLoop) -> None:
        """One timer serves all connections, because most requests end long before a deadline."""
        self._next_check = None
        now = loop.time()
        for connection in list(self._open):
            connection.check(now)
        if self._open:
            self._schedule()


def most_connections(wanted: int) -> int:
    """Limits `wanted` by the number of file handles: an upload needs two."""
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if handles == resource.RLIM_INFINITY:
        return wanted
    return max(FEWEST, min(wanted, (handles - RESERVED_HANDLES) // 2))


def raise_handle_limit() -> None:
    """Raises the soft limit of file handles up to the hard limit, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_HANDLES if hard == resource.RLIM_INFINITY else min(hard, MOST_HANDLES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
