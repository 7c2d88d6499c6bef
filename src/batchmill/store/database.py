"""Connections to Postgres, and the one way to run a named query."""

import asyncio
import logging
import random
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from time import monotonic
from typing import Any, NamedTuple, TypeVar
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

T = TypeVar("T")

log = logging.getLogger("batchmill.store")

OLDEST_SERVER = 15
TRIES = 5

# The parameters of these are sent separately from the statement text, because Postgres logs the
# text of a statement that fails.
WITH_PAYLOADS = frozenset({"submit", "submit_one", "enqueue", "save_schedule"})

# For each of these, `…_as_tenant` sets the role and the tenant in the same statement.
AS_TENANT = frozenset({"submit", "submit_one", "enqueue"})

# The cost of these queries grows with the size of the batch.
LONG_QUERIES = frozenset({"begin_cancel", "cancel_step", "retry_batch", "delete_batch"})

# A lost peer is noticed within seconds, not after the kernel's default of two hours.
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
    """Runs named queries: as the engine, which sees all tenants, or as one tenant."""

    shares: Shares
    # Locks of the submits with an idempotency key in this process, by tenant and key.
    in_flight: WeakValueDictionary[tuple[str, str], asyncio.Lock]

    @abstractmethod
    def connection(self, kind: Kind = "short") -> AbstractAsyncContextManager[PooledConnection]:
        """A connection from the pool. `kind` matters only for tenants: see `store/shares.py`."""

    @abstractmethod
    def transaction(self, kind: Kind = "short") -> AbstractAsyncContextManager[PooledConnection]:
        """A connection from the pool, in a transaction."""

    @abstractmethod
    async def _run(self, kind: Kind, *calls: Call) -> list[dict[str, Any]]:
        """Runs the queries in one transaction and returns the rows of the last one."""

    async def rows(self, name: str, /, **params: Any) -> list[dict[str, Any]]:
        """The rows of a named query. Retries after deadlocks and serialization failures."""
        kind = "long" if name in LONG_QUERIES else "short"
        return await retried(lambda: self._run(kind, (name, params)))

    async def row(self, name: str, /, **params: Any) -> dict[str, Any] | None:
        """The first row, or None."""
        found = await self.rows(name, **params)
        return found[0] if found else None

    async def value(self, name: str, /, **params: Any) -> Any:
        """The first column of the first row. Retries like `rows`."""
        kind = "long" if name in LONG_QUERIES else "short"
        return await retried(lambda: self._value(kind, (name, params)))

    async def _value(self, kind: Kind, call: Call) -> Any:
        found = await self._run(kind, call)
        return next(iter(found[0].values())) if found else None

    async def page(self, name: str, /, **params: Any) -> list[dict[str, Any]]:
        """One page of a list, for a query that must read indexes in order."""
        return await self._run("short", ("read_in_order", {}), (name, params))

    async def value_in_any_time(self, name: str, /, **params: Any) -> Any:
        """For a query that reads whole tables: no statement timeout of the server ends it."""
        found = await self._run("short", ("take_any_time", {}), (name, params))
        return next(iter(found[0].values()))

    async def value_unless_locked(self, name: str, /, **params: Any) -> Any:
        """For a query that locks a whole table. If the table is in use, it does nothing and leaves
        the work for later: a waiting lock would block all other users of the table. Sends all
        statements in one message: a process that is paused between two would keep the lock."""
        try:
            found = await self._run("short", ("wait_briefly", {}), (name, params))
        except psycopg.errors.LockNotAvailable:
            log.info("Tables are locked; %s runs later.", name)
            return None
        return next(iter(found[0].values()))


class PooledDatabase(Database):
    """Owns the pool. Behind a pooler in transaction mode it keeps no session state: no prepared
    statements, no LISTEN, and settings only inside a transaction.

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
            raise MillClosed("The mill is not open. Use `async with mill:`.")
        with translated():
            if (conn := pool.take_trusted()) is None:
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

    async def _value(self, kind: Kind, call: Call) -> Any:
        async with self.connection(kind) as conn:
            return await value(conn, *call)

    def _use(self, dsn: str) -> None:
        check_dsn(dsn)
        self.dsn = dsn

    async def _look(self) -> None:
        """Detects a pooler, and checks that the server can be used."""
        async with await self.connect() as conn:
            version = conn.info.server_version // 10_000
            if version < OLDEST_SERVER:
                raise ConfigurationError(f"batchmill needs PostgreSQL 15 or newer, not {version}.")
            await _require_read_committed(conn)
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
    """The database as one tenant sees it. Every transaction sets the role and the tenant itself, so
    a connection that returns to a pool, ours or PgBouncer's, keeps neither. A tenant has a share of
    the connections. A request beyond the share waits without a connection."""

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

    async def _value(self, kind: Kind, call: Call) -> Any:
        name, params = call
        # A statement cannot set its own timeout, so a timeout needs two more round trips.
        if name not in AS_TENANT or self._timeouts is not None:
            return await super()._value(kind, call)
        async with self._shared(kind) as conn:
            return await value(conn, f"{name}_as_tenant", {"acting_tenant": self._tenant, **params})

    @asynccontextmanager
    async def _shared(self, kind: Kind) -> AsyncIterator[PooledConnection]:
        async with self.shares.of(kind).taken(self._tenant), self._whole.connection() as conn:
            # A large submit reads its body here, and holds its connection for long in any case.
            with nullcontext() if kind == "large" else urgent():
                yield conn

    def _acting(self, kind: Kind) -> Call:
        timeout: str | None = None
        if self._timeouts is not None:
            seconds = self._timeouts.short if kind == "short" else self._timeouts.long
            timeout = f"{seconds * 1_000:.0f}"
        return "act_for_tenant", {"acting_tenant": self._tenant, "acting_timeout": timeout}


async def retried(run: Callable[[], Awaitable[T]]) -> T:
    """Runs a transaction again after a deadlock or a serialization failure."""
    for attempt in range(1, TRIES + 1):
        try:
            return await run()
        except psycopg.Error as error:
            if error.sqlstate not in TRY_AGAIN or attempt == TRIES:
                raise
            await asyncio.sleep(random.uniform(0, 0.02 * 2**attempt))
    raise AssertionError("unreachable")


def check_dsn(dsn: str) -> None:
    """The error does not quote the invalid part, because it may belong to the password."""
    if not _is_readable(dsn):
        raise ConfigurationError(
            "The database URL is not valid. Use postgresql://user:password@host:5432/name, "
            "with special characters encoded, for example @ as %40, or use host=… port=… "
            "dbname=… user=… password=…"
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


async def value(conn: PooledConnection, name: str, params: Mapping[str, Any]) -> Any:
    """The first column of the first row."""
    await conn.scalars.execute(queries()[name].encode(), params)
    return await conn.scalars.fetchone()


async def at_once(conn: AsyncConnection[Any], *calls: Call) -> list[dict[str, Any]]:
    """Returns the rows of the last of these queries. They are sent as one message, which Postgres
    runs as one transaction. BEGIN and COMMIT would cost two more round trips."""
    text = ";\n".join(queries()[name] for name, _ in calls)
    # With separate parameters a message holds only one statement, so they go into the text.
    cursor = AsyncClientCursor(conn, row_factory=dict_row)
    await cursor.execute(text.encode(), ChainMap(*(dict(params) for _, params in calls)))
    while cursor.nextset():
        pass
    return await cursor.fetchall() if cursor.description else []


async def rolled_back(conn: AsyncConnection[Any]) -> None:
    """If the rollback fails, the connection is broken and is not used again."""
    if conn.pgconn.transaction_status != TransactionStatus.IDLE:
        with suppress(psycopg.Error):
            await conn.execute("rollback")


async def _require_read_committed(conn: AsyncConnection[Any]) -> None:
    """A function that has waited for a lock reads rows again, which needs a new snapshot. Setting
    the level on each connection would need session state, which a pooler does not keep."""
    cursor = await conn.execute("show default_transaction_isolation")
    (level,) = (await cursor.fetchone() or {}).values()
    if level != "read committed":
        raise ConfigurationError(
            f"batchmill needs transactions with the isolation level read committed, but the "
            f"default of this database or user is {level}. Run `alter role … set "
            f"default_transaction_isolation = 'read committed'` for the user that batchmill "
            f"connects as."
        )


async def _is_pooled(conn: AsyncConnection[Any]) -> bool:
    """A pooler gives the client a made-up process id; `pg_backend_pid()` is the real one."""
    cursor = await conn.execute("select pg_backend_pid() as pid")
    row = await cursor.fetchone()
    return row is None or row["pid"] != conn.info.backend_pid
