"""Connections to Postgres, and the one way to run a named query."""

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from time import monotonic
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row
from psycopg.types.json import set_json_loads
from pydantic_core import from_json

from batchmill.config import Pooler
from batchmill.errors import ConfigurationError, MillClosed
from batchmill.store.errors import TRY_AGAIN, is_read_only, translated
from batchmill.store.pool import Pool, PooledConnection
from batchmill.store.queries import queries
from batchmill.store.shares import Kind, Shares
from batchmill.urgency import urgent

log = logging.getLogger("batchmill.store")

OLDEST_SERVER = 15
TRIES = 5

# Their parameters are not written into the text of a statement, which Postgres logs if it fails.
WITH_PAYLOADS = frozenset({"submit", "enqueue", "save_schedule"})

# The cost of these grows with the batch.
LONG_QUERIES = frozenset({"begin_cancel", "cancel_step", "retry_batch", "delete_batch"})

# A peer that vanished is noticed in seconds, not after the kernel's two hours.
PATIENCE = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "batchmill",
}


Connection = AsyncConnection[Any]

# A named query and its parameters.
Call = tuple[str, Mapping[str, Any]]


class Timeouts(NamedTuple):
    """Seconds that a statement may take. Few long statements run at once: see `store/shares.py`."""

    short: float
    long: float


class Database(ABC):
    """The one way to run named queries: as the engine, which has all tenants, or as one tenant."""

    shares: Shares
    # The submits with an idempotency key that are under way here, by tenant and key.
    in_flight: WeakValueDictionary[tuple[str, str], asyncio.Lock]

    @abstractmethod
    def connection(self, kind: Kind = "short") -> AbstractAsyncContextManager[PooledConnection]:
        """A connection of the pool. The `kind` matters to tenants only: see `store/shares.py`."""

    @abstractmethod
    def transaction(self, kind: Kind = "short") -> AbstractAsyncContextManager[PooledConnection]:
        """The same, inside a transaction."""

    @abstractmethod
    async def _run(self, kind: Kind, *calls: Call) -> list[dict[str, Any]]:
        """The rows of the last of these queries; they are one transaction."""

    async def rows(self, name: str, /, **params: Any) -> list[dict[str, Any]]:
        """The rows of a named query. Deadlocks and serialization failures are tried again."""
        kind = "long" if name in LONG_QUERIES else "short"
        for attempt in range(1, TRIES + 1):
            try:
                return await self._run(kind, (name, params))
            except psycopg.Error as error:
                if error.sqlstate not in TRY_AGAIN or attempt == TRIES:
                    raise
                await asyncio.sleep(random.uniform(0, 0.02 * 2**attempt))
        raise AssertionError("unreachable")

    async def row(self, name: str, /, **params: Any) -> dict[str, Any] | None:
        """The first row, if there is one."""
        found = await self.rows(name, **params)
        return found[0] if found else None

    async def value(self, name: str, /, **params: Any) -> Any:
        """The first column of the first row."""
        found = await self.row(name, **params)
        return next(iter(found.values())) if found else None

    async def page(self, name: str, /, **params: Any) -> list[dict[str, Any]]:
        """A part of a list, for a query that reads indexes in their order."""
        return await self._run("short", ("read_in_order", {}), (name, params))

    async def value_unless_locked(self, name: str, /, **params: Any) -> Any:
        """For a query that locks a whole table. If the table is in use, it is left for later:
        waiting would block everyone else."""
        try:
            async with self.transaction() as conn:
                await conn.execute("set local lock_timeout = '200ms'")
                found = await rows(conn, name, params)
        except psycopg.errors.LockNotAvailable:
            log.info("Tables are busy: %s is left for later.", name)
            return None
        return next(iter(found[0].values()))


class PooledDatabase(Database):
    """Has the pool. Behind a pooler in transaction mode it keeps nothing in a session: no prepared
    statements, no LISTEN, settings only inside a transaction.

    `dsn` may be a function, which is called when the database is opened. `prepare` is called with
    the first connection.
    """

    def __init__(
        self,
        dsn: str | Callable[[], Awaitable[str]],
        *,
        pooler: Pooler = "auto",
        size: int = 10,
        prepare: Callable[[AsyncConnection[Any]], Awaitable[Any]] | None = None,
    ):
        self.dsn = ""
        if isinstance(dsn, str):
            self._use(dsn)
        self._source = dsn
        self._prepare = prepare
        self._wanted: Pooler = pooler
        self._size = size
        self._pool: Pool | None = None
        self.behind_pooler = pooler == "transaction"
        self.shares = Shares()
        self.in_flight = WeakValueDictionary()

    @property
    def is_open(self) -> bool:
        return self._pool is not None

    async def open(self) -> None:
        if not isinstance(self._source, str):
            self._use(await self._source())
        await self._look()
        self._pool = Pool(self.connect, self._size)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def connect(self) -> PooledConnection:
        """A connection outside the pool; the caller closes it."""
        with translated():
            conn = await PooledConnection.connect(self.dsn, **self._options())
        set_json_loads(from_json, conn)
        return conn

    @asynccontextmanager
    async def connection(self, kind: Kind = "short") -> AsyncIterator[PooledConnection]:
        if (pool := self._pool) is None:
            raise MillClosed("The mill is not open: use `async with mill:`.")
        with translated():
            with urgent():
                conn = await pool.take()
            try:
                yield conn
                conn.served_at = monotonic()
            except Exception as error:
                if is_read_only(error):
                    # The server is a standby now. A new connection may reach the primary.
                    await conn.close()
                raise
            finally:
                with urgent():
                    await pool.give_back(conn)

    @asynccontextmanager
    async def transaction(self, kind: Kind = "short") -> AsyncIterator[PooledConnection]:
        async with self.connection(kind) as conn, conn.transaction():
            yield conn

    async def _run(self, kind: Kind, *calls: Call) -> list[dict[str, Any]]:
        async with self.connection(kind) as conn:
            return await rows(conn, *calls[0]) if len(calls) == 1 else await at_once(conn, *calls)

    def _use(self, dsn: str) -> None:
        check_dsn(dsn)
        self.dsn = dsn

    async def _look(self) -> None:
        """What kind of server this is, and whether it can be used."""
        async with await self.connect() as conn:
            version = conn.info.server_version // 10_000
            if version < OLDEST_SERVER:
                raise ConfigurationError(f"batchmill needs PostgreSQL 15 or newer, not {version}.")
            if self._wanted == "auto":
                self.behind_pooler = await _is_pooled(conn)
            if self._prepare is not None:
                await self._prepare(conn)

    def _options(self) -> dict[str, Any]:
        return PATIENCE | {
            "autocommit": True,
            "row_factory": dict_row,
            "prepare_threshold": None if self.behind_pooler else 5,
        }


class TenantDatabase(Database):
    """The same database as one tenant sees it. Every transaction takes the role and the tenant for
    itself, so a connection that goes back to a pool, ours or PgBouncer's, carries nothing over. A
    tenant has a share of the connections; a request beyond it waits without one."""

    def __init__(self, whole: PooledDatabase, tenant: str, timeouts: Timeouts | None = None):
        self._whole = whole
        self._tenant = tenant
        self._timeouts = timeouts
        self.shares = whole.shares
        self.in_flight = whole.in_flight

    @asynccontextmanager
    async def connection(self, kind: Kind = "short") -> AsyncIterator[PooledConnection]:
        async with self._shared(kind) as conn:
            await at_once(conn, ("begin", {}), self._acting(kind))
            try:
                yield conn
            except BaseException:
                await rolled_back(conn)
                raise
            await conn.execute("commit")

    @asynccontextmanager
    async def transaction(self, kind: Kind = "short") -> AsyncIterator[PooledConnection]:
        async with self.connection(kind) as conn:
            yield conn

    async def _run(self, kind: Kind, *calls: Call) -> list[dict[str, Any]]:
        if calls[-1][0] in WITH_PAYLOADS:
            async with self.connection(kind) as conn:
                return await rows(conn, *calls[-1])
        async with self._shared(kind) as conn:
            return await at_once(conn, self._acting(kind), *calls)

    @asynccontextmanager
    async def _shared(self, kind: Kind) -> AsyncIterator[PooledConnection]:
        async with self.shares.of(kind).taken(self._tenant), self._whole.connection() as conn:
            # A large submit reads its body meanwhile, and has its connection for long in any case.
            with nullcontext() if kind == "large" else urgent():
                yield conn

    def _acting(self, kind: Kind) -> Call:
        timeout: str | None = None
        if self._timeouts is not None:
            seconds = self._timeouts.short if kind == "short" else self._timeouts.long
            timeout = f"{seconds * 1_000:.0f}"
        return "act_for_tenant", {"acting_tenant": self._tenant, "acting_timeout": timeout}


def check_dsn(dsn: str) -> None:
    """What is wrong with it is not quoted: it may well be a part of the password."""
    if not _is_readable(dsn):
        raise ConfigurationError(
            "The address of the database cannot be read: write it as "
            "postgresql://user:password@host:5432/name, with special characters as %40 and the "
            "like, or as host=… port=… dbname=… user=… password=…"
        )


def _is_readable(dsn: str) -> bool:
    try:
        parts = conninfo_to_dict(dsn)
    except (psycopg.ProgrammingError, ValueError):
        return False
    host, ports = str(parts.get("host") or ""), str(parts.get("port") or "").split(",")
    return "@" not in host and all(
        not port or (port.isdecimal() and 0 < int(port) < 65_536) for port in ports
    )


async def rows(
    conn: AsyncConnection[Any], name: str, params: Mapping[str, Any]
) -> list[dict[str, Any]]:
    cursor = await conn.execute(queries()[name].encode(), params)
    return await cursor.fetchall() if cursor.description else []


async def at_once(conn: AsyncConnection[Any], *calls: Call) -> list[dict[str, Any]]:
    """What the last of these queries gives. They are one message, which Postgres runs as one
    transaction: a BEGIN and a COMMIT around them would be two round trips more."""
    text = ";\n".join(queries()[name] for name, _ in calls)
    # Parameters beside the text would allow one statement only: here they are written into it.
    cursor = AsyncClientCursor(conn, row_factory=dict_row)
    await cursor.execute(text.encode(), ChainMap(*(dict(params) for _, params in calls)))
    while cursor.nextset():
        pass
    return await cursor.fetchall() if cursor.description else []


async def rolled_back(conn: AsyncConnection[Any]) -> None:
    """A connection that cannot do even that is broken, and is not used again."""
    if conn.pgconn.transaction_status != TransactionStatus.IDLE:
        with suppress(psycopg.Error):
            await conn.execute("rollback")


async def _is_pooled(conn: AsyncConnection[Any]) -> bool:
    """A pooler hands out a process id of its own making; Postgres tells the real one."""
    cursor = await conn.execute("select pg_backend_pid() as pid")
    row = await cursor.fetchone()
    return row is None or row["pid"] != conn.info.backend_pid
