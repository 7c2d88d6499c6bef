"""The connections of a server: how many there may be, and which of them have waited too long."""

import asyncio
import logging
import resource
from collections import Counter
from typing import Protocol

from batchmill.config import ServiceSettings
from batchmill.service.addresses import Proxies, counted_as, read_address
from batchmill.service.slowing import Slowing

log = logging.getLogger("batchmill.service")

# For the database, files, pipes of children, and connections that are accepted but not yet counted.
RESERVED_HANDLES = 128
MOST_HANDLES = 65_536
# Connections accepted in one iteration of the event loop. One that has to go again keeps its handle
# for three iterations, so three times as many have to fit into the reserve.
ACCEPTED_AT_ONCE = 32
FEWEST = 16
CHECK_SECONDS = 0.5


class Connection(Protocol):
    """`address` is None for a trusted proxy, which speaks for many clients."""

    address: str | None

    def check(self, now: float) -> None:
        """Ends the connection if its time is over."""
        ...

    def evict(self) -> None: ...


class Connections:
    """Counts connections per address and in all.

    When there is no room, the connection that has waited longest for a request makes room for the
    new one. If all are busy, the new one is refused.
    """

    def __init__(self, settings: ServiceSettings):
        self.settings = settings
        self._proxies = Proxies(settings.trusted_proxies)
        self._most = most_connections(settings.connections)
        self._open: dict[Connection, None] = {}
        # Those without a request, in the order in which they began to wait.
        self._waiting: dict[Connection, None] = {}
        self._of_address: Counter[str] = Counter()
        self._log_lines = Slowing(tries=1, seconds=60)
        self._next_check: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def counted_address(self, address: str) -> str | None:
        """The address to count the connection on, or None for a trusted proxy."""
        if read_address(address) is None or address in self._proxies:
            return None
        return counted_as(address)

    def enter(self, connection: Connection) -> bool:
        """False if there is no room. A connection begins without a request."""
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
        """The connection has no request under way."""
        if connection in self._open:
            self._waiting[connection] = None

    def work(self, connection: Connection) -> None:
        """A request has come."""
        self._waiting.pop(connection, None)

    def _make_room(self, address: str | None) -> bool:
        of_address = self._of_address[address] if address is not None else 0
        if of_address >= self.settings.connections_per_address:
            return self._evict(address)
        return len(self._open) < self._most or self._evict(None)

    def _evict(self, address: str | None) -> bool:
        """Ends the connection that waits longest, of that address if one is given."""
        if self._log_lines.allow(address or "") is None:
            log.warning("No more connections from %s: the limit is reached.", address or "anyone")
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
        """One timer for all connections: most requests end long before any time is over."""
        self._next_check = None
        now = loop.time()
        for connection in list(self._open):
            connection.check(now)
        if self._open:
            self._schedule()


def most_connections(wanted: int) -> int:
    """Fewer than wanted if the process may not open enough files: an upload needs two handles."""
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if handles == resource.RLIM_INFINITY:
        return wanted
    return max(FEWEST, min(wanted, (handles - RESERVED_HANDLES) // 2))


def raise_handle_limit() -> None:
    """Takes as many file handles as the system gives without more rights, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_HANDLES if hard == resource.RLIM_INFINITY else min(hard, MOST_HANDLES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
