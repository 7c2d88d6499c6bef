"""The pool of connections that a process keeps to Postgres.

Not psycopg_pool: its lock admits callers one by one, with one iteration of the event loop each. On
a busy loop, a hundred requests a second waited longer for that lock than for Postgres.
"""

import asyncio
import random
import selectors
from collections import deque
from collections.abc import Awaitable, Callable
from functools import cached_property
from time import monotonic
from typing import Any

from psycopg import AsyncConnection, AsyncCursor
from psycopg.pq import TransactionStatus
from psycopg.rows import scalar_row

from batchmill.errors import DatabaseUnavailable, MillClosed
from batchmill.store.backoff import Backoff

# How long a caller waits for a connection, also while the server is unavailable.
WAIT_SECONDS = 10.0
IDLE_SECONDS = 60.0
# A backend's caches grow, and the host name may point to another server by then.
LIFETIME_SECONDS = 3_600.0
CHECK_SECONDS = 2.0
TRUSTED_SECONDS = 1.0

# Unlike the default selector, these open no file descriptor. Windows has no poll.
_Selector = getattr(selectors, "PollSelector", selectors.SelectSelector)


class PooledConnection(AsyncConnection[Any]):
    """Records when it last ran a statement successfully."""

    served_at = -TRUSTED_SECONDS
    idle_since = 0.0
    expires_at = float("inf")

    @property
    def is_trusted(self) -> bool:
        """Open, recently used, and nothing to read: a healthy idle connection receives nothing,
        while a server that closes a connection sends a message first."""
        is_recent = monotonic() - self.served_at < TRUSTED_SECONDS
        return is_recent and not self.closed and not self._selector.select(timeout=0)

    @property
    def is_reusable(self) -> bool:
        """Open, not too old, outside a transaction, and with no answer outstanding."""
        return (
            not self.closed
            and monotonic() < self.expires_at
            and self.pgconn.transaction_status == TransactionStatus.IDLE
        )

    async def is_alive(self) -> bool:
        """Also detects a peer that accepts data but never replies."""
        if self.closed or self.is_trusted:
            return not self.closed
        asking = asyncio.ensure_future(self.execute(""))
        asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        try:
            await asyncio.wait({asking}, timeout=CHECK_SECONDS)
            return asking.done() and asking.exception() is None
        finally:
            if not asking.done():
                # First, or psycopg would ask the unresponsive server to cancel the statement.
                self.pgconn.finish()
                asking.cancel()

    @cached_property
    def scalars(self) -> AsyncCursor[Any]:
        """For queries that return one value. A new cursor for each takes a fifth of the time of a
        short query. This one keeps the last result and its parameters in memory."""
        return self.cursor(row_factory=scalar_row)

    @cached_property
    def _selector(self) -> selectors.BaseSelector:
        selector = _Selector()
        selector.register(self.pgconn.socket, selectors.EVENT_READ)
        return selector


class Pool:
    """At most `size` connections. They are opened in separate tasks when callers wait, so a caller
    that gives up does not stop the attempt to reach the server."""

    def __init__(self, connect: Callable[[], Awaitable[PooledConnection]], size: int):
        self._connect = connect
        self._size = size
        # Connections that are open or being opened.
        self._count = 0
        # The most recently used connection is used next, so surplus ones stay idle and get closed.
        self._idle: list[PooledConnection] = []
        self._waiting: deque[asyncio.Future[PooledConnection]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_shrinking = False
        self._is_closed = False
        # Why the server could not be reached; None after a success.
        self._failure: Exception | None = None

    def take_trusted(self) -> PooledConnection | None:
        """What `take` would return, if that needs no check. It never waits, and costs much less."""
        return self._idle.pop() if self._idle and self._idle[-1].is_trusted else None

    async def take(self) -> PooledConnection:
        """The caller must give it back in every case."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                return await self._alive() or await self._wait()
        except TimeoutError:
            raise DatabaseUnavailable(
                str(self._failure)
                if self._failure
                else f"All database connections of this process were busy for {WAIT_SECONDS:.0f} s."
            ) from self._failure

    async def give_back(self, conn: PooledConnection) -> None:
        """A broken or interrupted connection is not used again."""
        if conn.is_reusable and not self._is_closed:
            self._offer(conn)
        else:
            await self._drop(conn)

    async def close(self) -> None:
        """Connections in use are closed when they are given back."""
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(MillClosed("The mill was closed."))
        while self._idle:
            await self._drop(self._idle.pop())

    async def _alive(self) -> PooledConnection | None:
        while self._idle:
            conn = self._idle.pop()
            try:
                if await conn.is_alive():
                    return conn
            except BaseException:
                await self._drop(conn)
                raise
            # The server or the network was lost, so the other idle connections are broken too.
            lost, self._idle = [conn, *self._idle], []
            for each in lost:
                await self._drop(each)
        return None

    async def _wait(self) -> PooledConnection:
        offered: asyncio.Future[PooledConnection] = asyncio.get_running_loop().create_future()
        self._waiting.append(offered)
        self._make_more()
        try:
            return await offered
        except BaseException:
            if offered.done() and not offered.cancelled() and offered.exception() is None:
                await self.give_back(offered.result())
            raise

    def _offer(self, conn: PooledConnection) -> None:
        """Gives the connection to the caller that has waited longest."""
        while self._waiting:
            if not (waiting := self._waiting.popleft()).done():
                waiting.set_result(conn)
                return
        conn.idle_since = monotonic()
        self._idle.append(conn)
        if not self._is_shrinking:
            self._is_shrinking = True
            self._begin(self._shrink())

    async def _drop(self, conn: PooledConnection) -> None:
        self._count -= 1
        self._make_more()
        await conn.close()

    def _make_more(self) -> None:
        if self._waiting and self._count < self._size and not self._is_closed:
            self._count += 1
            self._begin(self._make())

    async def _make(self) -> None:
        """Opens one connection, unless no caller waits for one any more."""
        backoff = Backoff()
        made = None
        try:
            while made is None and self._someone_waits():
                try:
                    made = await self._connect()
                except DatabaseUnavailable as error:
                    self._failure = error
                    await backoff.wait()
        except Exception as error:
            # A retry would not help, so the error goes to a caller.
            if self._someone_waits():
                self._waiting.popleft().set_exception(error)
        finally:
            if made is None:
                self._count -= 1
                self._make_more()
        if made is not None:
            self._failure = None
            made.expires_at = monotonic() + random.uniform(0.9, 1.1) * LIFETIME_SECONDS
            self._offer(made)

    def _someone_waits(self) -> bool:
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()
        return bool(self._waiting)

    async def _shrink(self) -> None:
        """Runs while there are connections, also while all are in use: a new task for each use of
        the only connection would cost more than taking it."""
        while self._count:
            now = monotonic()
            oldest_since = self._idle[0].idle_since if self._idle else now
            if (left := oldest_since + IDLE_SECONDS - now) > 0:
                await asyncio.sleep(left)
            else:
                await self._drop(self._idle.pop(0))
        self._is_shrinking = False

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
