"""One connection per process receives every NOTIFY and wakes up the waiting tasks.

Every role of the server can listen too, so notifications name batches, jobs and workers by keyed
digests. Only the engine has the key.
"""

import asyncio
import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from psycopg.pq.abc import PGconn

from batchmill.store.backoff import Backoff
from batchmill.store.database import PooledDatabase, rows
from batchmill.store.errors import is_unavailable, translated
from batchmill.store.topics import CHANNEL, PLAIN

log = logging.getLogger("batchmill.listen")


class WakeUp:
    """Set when its topic is notified, or may have been while the listener was not connected."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> bool:
        """True if it was set within the time. Clears it in either case."""
        # Not wait_for, which may swallow a cancellation in Python 3.11.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        was_set = self._event.is_set()
        self._event.clear()
        return was_set


class Listener:
    """Notifications only make things faster: every task that waits for a wake-up also polls."""

    def __init__(self, database: PooledDatabase):
        self._database = database
        self._wake_ups: defaultdict[str, set[WakeUp]] = defaultdict(set)
        self._topics: dict[str, str] = {}
        self._key: bytes | None = None
        self._running: asyncio.Task[None] | None = None
        self.is_listening = False

    @property
    def can_listen(self) -> bool:
        """False behind a pooler in transaction mode, where LISTEN does not work."""
        return not self._database.behind_pooler

    @contextmanager
    def subscribe(self, topic: str, wake_up: WakeUp | None = None) -> Iterator[WakeUp]:
        """Sets the wake-up whenever the topic is notified."""
        wake_up = wake_up or WakeUp()
        self._wake_ups[topic].add(wake_up)
        self._topics[self._payload(topic)] = topic
        self._start()
        try:
            yield wake_up
        finally:
            self._wake_ups[topic].discard(wake_up)
            if not self._wake_ups[topic]:
                del self._wake_ups[topic]
                self._topics.pop(self._payload(topic), None)

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None

    def _start(self) -> None:
        if self._running is None and self.can_listen:
            self._running = asyncio.create_task(self._listen(), name="batchmill.listen")

    async def _listen(self) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._listen_on_connection(backoff)
            except Exception as error:
                if not is_unavailable(error):
                    raise
                self.is_listening = False
                backoff.warn(
                    log, "Lost the LISTEN connection; polling until it is restored: %s", error
                )
                await backoff.wait()

    async def _listen_on_connection(self, backoff: Backoff) -> None:
        with translated():
            async with await self._database.connect() as conn:
                (found,) = await rows(conn, "listening_key", {})
                self._key = found["listening_key"]
                self._topics = {self._payload(topic): topic for topic in self._wake_ups}
                await conn.execute(f"listen {CHANNEL}".encode())
                self.is_listening = True
                backoff.reset()
                for topic in list(self._wake_ups):
                    self._wake(topic)
                await self._receive(conn.pgconn)

    async def _receive(self, pgconn: PGconn) -> None:
        """Receives notifications until the connection is lost. psycopg's own `notifies` would wake
        up ten times a second."""
        loop, socket, readable = asyncio.get_running_loop(), pgconn.socket, asyncio.Event()
        loop.add_reader(socket, readable.set)
        try:
            while await readable.wait():
                readable.clear()
                pgconn.consume_input()
                while notice := pgconn.notifies():
                    self._wake(self._topics.get(notice.extra.decode(), ""))
        finally:
            loop.remove_reader(socket)

    def _payload(self, topic: str) -> str:
        """The topic's name in a notification. Must match the SQL function `topic`."""
        if topic in PLAIN:
            return topic
        return hashlib.sha256((self._key or b"") + topic.encode()).hexdigest()[:32]

    def _wake(self, topic: str) -> None:
        for wake_up in self._wake_ups.get(topic, ()):
            wake_up.set()
