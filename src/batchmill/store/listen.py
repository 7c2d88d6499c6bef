"""One connection per process hears every NOTIFY and rings the bells of those who wait.

Every role of the server can listen too, so notices name batches, jobs and workers by digests with a
key that only the engine has.
"""

import asyncio
import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from psycopg.pq.abc import PGconn

from batchmill.store.backoff import Backoff
from batchmill.store.database import Database, rows
from batchmill.store.errors import is_unavailable, translated

log = logging.getLogger("batchmill.listen")

# What they tell concerns no tenant, so they are sent as they are.
PLAIN = ("work", "upkeep")


class Bell:
    """Rings when its topic was heard of, or may have been while nobody listened."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, seconds: float) -> bool:
        """True if it rang within the time; either way, it is quiet again afterwards."""
        # Not wait_for, which in Python 3.11 may swallow a cancellation.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        heard = self._rung.is_set()
        self._rung.clear()
        return heard


class Listener:
    """Hearing only makes things faster: whoever has a bell polls as well."""

    def __init__(self, database: Database):
        self._database = database
        self._bells: defaultdict[str, set[Bell]] = defaultdict(set)
        self._topics: dict[str, str] = {}
        self._key: bytes | None = None
        self._running: asyncio.Task[None] | None = None
        self.hears = False

    @contextmanager
    def bell(self, *topics: str) -> Iterator[Bell]:
        bell = Bell()
        for topic in topics:
            self._bells[topic].add(bell)
            self._topics[self._payload(topic)] = topic
        self._start()
        try:
            yield bell
        finally:
            for topic in topics:
                self._bells[topic].discard(bell)
                if not self._bells[topic]:
                    del self._bells[topic]
                    self._topics.pop(self._payload(topic), None)

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None

    def _start(self) -> None:
        if self._running is None and not self._database.behind_pooler:
            self._running = asyncio.create_task(self._listen(), name="batchmill.listen")

    async def _listen(self) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._hear(backoff)
            except Exception as error:
                if not is_unavailable(error):
                    raise
                self.hears = False
                backoff.warn(log, "Lost the listening connection, polling meanwhile: %s", error)
                await backoff.wait()

    async def _hear(self, backoff: Backoff) -> None:
        with translated():
            async with await self._database.connect() as conn:
                (found,) = await rows(conn, "listening_key", {})
                self._key = found["listening_key"]
                self._topics = {self._payload(topic): topic for topic in self._bells}
                await conn.execute("listen batchmill")
                self.hears = True
                backoff.reset()
                for topic in list(self._bells):
                    self._ring(topic)
                await self._ring_as_told(conn.pgconn)

    async def _ring_as_told(self, pgconn: PGconn) -> None:
        """Until the connection is lost. With psycopg's own `notifies` it would wake up ten times a
        second."""
        loop, socket, told = asyncio.get_running_loop(), pgconn.socket, asyncio.Event()
        loop.add_reader(socket, told.set)
        try:
            while await told.wait():
                told.clear()
                pgconn.consume_input()
                while notice := pgconn.notifies():
                    self._ring(self._topics.get(notice.extra.decode(), ""))
        finally:
            loop.remove_reader(socket)

    def _payload(self, topic: str) -> str:
        """How a notice names it: the SQL function `topic` does the same."""
        if topic in PLAIN:
            return topic
        return hashlib.sha256((self._key or b"") + topic.encode()).hexdigest()[:32]

    def _ring(self, topic: str) -> None:
        for bell in self._bells.get(topic, ()):
            bell.ring()
