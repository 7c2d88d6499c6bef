"""Submitting inside the caller's own transaction: it commits and rolls back with it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row, namedtuple_row, scalar_row
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from batchmill import (
    Batch,
    IdempotencyConflict,
    InvalidInput,
    InvalidPayload,
    Job,
    JobHandle,
    Limits,
    Mill,
    Permanent,
    UnknownTask,
    submission,
)
from tests.invariants import violations
from tests.library.tools import echo_on, nothing_is_left, one

SEVERAL_CALLS = 2 * submission.CALL_JOBS + 1
NOTE = "create table note (n integer)"


class DjangoLike:
    """Like `django.db.connection`: statements run on cursors, which are context managers."""

    def __init__(self, conn: psycopg.Connection[Any]):
        self._conn = conn

    def cursor(self) -> psycopg.Cursor[Any]:
        return self._conn.cursor()

    def commit(self) -> None:
        self._conn.commit()

    def rollback(self) -> None:
        self._conn.rollback()

    def execute(self, query: Any) -> None:
        with self.cursor() as cursor:
            cursor.execute(query)


@contextmanager
def psycopg_connection(dsn: str) -> Iterator[Any]:
    with psycopg.connect(dsn) as conn:
        yield conn


@contextmanager
def psycopg_rows(dsn: str, row_factory: Any) -> Iterator[Any]:
    with psycopg.connect(dsn, row_factory=row_factory) as conn:
        yield conn


@contextmanager
def sqlalchemy_connection(dsn: str) -> Iterator[Any]:
    engine = create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    with engine.connect() as conn:
        yield conn
    engine.dispose()


@contextmanager
def sqlalchemy_session(dsn: str) -> Iterator[Any]:
    engine = create_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    with Session(engine) as session:
        yield session
    engine.dispose()


@contextmanager
def django_like(dsn: str) -> Iterator[Any]:
    with psycopg.connect(dsn) as conn:
        yield DjangoLike(conn)


@asynccontextmanager
async def psycopg_async(dsn: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        yield conn


@asynccontextmanager
async def psycopg_async_rows(dsn: str, row_factory: Any) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(dsn, row_factory=row_factory) as conn:
        yield conn


@asynccontextmanager
async def sqlalchemy_async_connection(dsn: str) -> AsyncIterator[Any]:
    async with _async_engine(dsn) as engine, engine.connect() as conn:
        yield conn


@asynccontextmanager
async def sqlalchemy_async_session(dsn: str) -> AsyncIterator[Any]:
    from sqlalchemy.ext.asyncio import AsyncSession

    async with _async_engine(dsn) as engine, AsyncSession(engine) as session:
        yield session


@asynccontextmanager
async def _async_engine(dsn: str) -> AsyncIterator[Any]:
    pytest.importorskip("greenlet", reason="SQLAlchemy's asyncio needs greenlet.")
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(dsn.replace("postgresql://", "postgresql+psycopg://"))
    yield engine
    await engine.dispose()


SYNC = [psycopg_connection, sqlalchemy_connection, sqlalchemy_session, django_like]
ASYNC = [psycopg_async, sqlalchemy_async_connection, sqlalchemy_async_session]
KINDS = pytest.mark.parametrize("kind", [*SYNC, *ASYNC], ids=lambda kind: kind.__name__)


class Caller:
    """Sync or async code with its own transaction, behind one async interface."""

    def __init__(self, mill: Mill, conn: Any, is_async: bool):
        self._mill = mill
        self.conn = conn
        self._is_async = is_async

    async def submit(self, *args: Any, **options: Any) -> Batch:
        if self._is_async:
            return await self._mill.submit(*args, connection=self.conn, **options)
        call = self._mill.sync.submit
        return await asyncio.to_thread(call, *args, connection=self.conn, **options)

    async def enqueue(self, *args: Any, **options: Any) -> JobHandle:
        if self._is_async:
            return await self._mill.enqueue(*args, connection=self.conn, **options)
        call = self._mill.sync.enqueue
        return await asyncio.to_thread(call, *args, connection=self.conn, **options)

    async def write_note(self) -> None:
        await self.execute("insert into note values (1)")

    async def execute(self, query: Any) -> None:
        if isinstance(self.conn, DjangoLike):
            return self.conn.execute(query)
        is_psycopg = isinstance(self.conn, psycopg.Connection | psycopg.AsyncConnection)
        return await self._do("execute", query if is_psycopg else text(query))

    async def commit(self) -> None:
        await self._do("commit")

    async def rollback(self) -> None:
        await self._do("rollback")

    async def _do(self, name: str, *args: Any) -> None:
        done = getattr(self.conn, name)(*args)
        if self._is_async:
            await done


@asynccontextmanager
async def calling(mill: Mill, dsn: str, kind: Any) -> AsyncIterator[Caller]:
    async with AsyncExitStack() as stack:
        is_async = kind in ASYNC
        conn = (
            await stack.enter_async_context(kind(dsn))
            if is_async
            else stack.enter_context(kind(dsn))
        )
        stack.callback(mill.sync.close)
        yield Caller(mill, conn, is_async)


@KINDS
async def test_a_submit_is_rolled_back_with_the_callers_transaction(
    mill: Mill, dsn: str, sql: psycopg.Connection, kind: Any
) -> None:
    sql.execute(NOTE)
    echo = echo_on(mill)
    async with calling(mill, dsn, kind) as caller:
        await caller.write_note()
        await caller.submit(echo, range(SEVERAL_CALLS), idempotency_key="k", limit=2)
        await caller.enqueue(echo, 1, idempotency_key="j")
        assert nothing_is_left(sql)
        await caller.rollback()
    assert nothing_is_left(sql)
    assert one(sql, "select count(*) from note") == (0,)
    assert one(sql, "select count(*) from batchmill.limits") == (0,)


@KINDS
async def test_a_submit_is_committed_with_the_callers_transaction(
    mill: Mill, dsn: str, sql: psycopg.Connection, kind: Any
) -> None:
    sql.execute(NOTE)
    echo = echo_on(mill)
    async with calling(mill, dsn, kind) as caller:
        await caller.write_note()
        batch = await caller.submit(echo, range(SEVERAL_CALLS), labels={"a": "b"})
        job = await caller.enqueue(echo, {"x": [1, None, "ü"]}, dedup_key="d")
        again = await caller.enqueue(echo, 1, dedup_key="d")
        assert (again.id, again.is_duplicate) == (job.id, True)
        await caller.commit()
    assert (await mill.batch(batch.id).get()).total == SEVERAL_CALLS
    assert (await mill.job(job.id).get()).payload == {"x": [1, None, "ü"]}
    assert one(sql, "select count(*) from note") == (1,)


@KINDS
async def test_errors_on_the_callers_connection_are_batchmill_errors(
    mill: Mill, dsn: str, kind: Any
) -> None:
    echo = echo_on(mill)
    await mill.enqueue(echo, 1, idempotency_key="k")
    async with calling(mill, dsn, kind) as caller:
        with pytest.raises(IdempotencyConflict):
            await caller.enqueue(echo, 2, idempotency_key="k")
        await caller.rollback()
        with pytest.raises(UnknownTask):
            await caller.submit("unheard_of", [1])
        await caller.rollback()
        with pytest.raises(InvalidPayload):
            await caller.submit(echo, [float("nan")])


@KINDS
async def test_a_refused_submit_writes_nothing_in_a_transaction_that_continues(
    mill: Mill, dsn: str, sql: psycopg.Connection, kind: Any
) -> None:
    sql.execute(NOTE)
    echo = echo_on(mill)
    async with calling(mill, dsn, kind) as caller:
        await caller.write_note()
        with pytest.raises(InvalidPayload):
            await caller.submit(echo, [*range(SEVERAL_CALLS), float("nan")])
        await caller.commit()
    assert one(sql, "select count(*) from note") == (1,)
    assert nothing_is_left(sql)


@pytest.mark.parametrize("factory", [dict_row, namedtuple_row, scalar_row])
async def test_the_callers_row_factory_does_not_matter(mill: Mill, dsn: str, factory: Any) -> None:
    echo = echo_on(mill)
    async with psycopg_async_rows(dsn, factory) as conn:
        batch = await mill.submit(echo, [1], connection=conn)
        await conn.commit()
    with psycopg_rows(dsn, factory) as conn:
        try:
            job = await asyncio.to_thread(mill.sync.enqueue, echo, 1, connection=conn)
        finally:
            await asyncio.to_thread(mill.sync.close)
    assert (await mill.batch(batch.id).get()).total == 1
    assert (await mill.job(job.id).get()).payload == 1


async def test_without_a_transaction_a_batch_of_several_calls_is_complete_or_refused(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    """Django's connections commit every statement by default."""
    echo = echo_on(mill)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        try:
            batch = await mill.submit(echo, range(SEVERAL_CALLS), connection=conn)
        except InvalidInput:
            assert nothing_is_left(sql)
        else:
            assert (await batch.get()).total == SEVERAL_CALLS
    with psycopg.connect(dsn, autocommit=True) as conn:
        try:
            await asyncio.to_thread(
                mill.sync.submit, echo, range(SEVERAL_CALLS), connection=DjangoLike(conn)
            )
        except InvalidInput:
            pass
        finally:
            await asyncio.to_thread(mill.sync.close)
    sizes = {count for (count,) in sql.execute("select total from batchmill.batches")}
    assert sizes <= {SEVERAL_CALLS}


@KINDS
async def test_a_batch_of_several_calls_leaves_no_savepoint_behind(
    mill: Mill, dsn: str, kind: Any
) -> None:
    echo = echo_on(mill)
    async with calling(mill, dsn, kind) as caller:
        await caller.submit(echo, range(SEVERAL_CALLS))
        with pytest.raises(Exception, match='savepoint "batchmill_submit" does not exist'):
            await caller.execute("release savepoint batchmill_submit")
        await caller.rollback()
        await caller.execute("select")
        with pytest.raises(InvalidPayload):
            await caller.submit(echo, [*range(SEVERAL_CALLS), float("nan")])
        with pytest.raises(Exception, match='savepoint "batchmill_submit" does not exist'):
            await caller.execute("release savepoint batchmill_submit")


async def test_a_cancelled_submit_writes_nothing_in_a_transaction_that_continues(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    waiting = asyncio.Event()

    async def endless() -> AsyncIterator[int]:
        for n in range(SEVERAL_CALLS):
            yield n
        waiting.set()
        await asyncio.Event().wait()

    async with psycopg_async(dsn) as conn:
        submitting = asyncio.create_task(mill.submit(echo, endless(), connection=conn))
        await waiting.wait()
        submitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await submitting
        await conn.commit()
    assert nothing_is_left(sql)


async def test_an_object_that_is_not_a_connection_is_refused(mill: Mill) -> None:
    with pytest.raises(InvalidInput, match="not a connection"):
        await mill.enqueue(echo_on(mill), 1, connection=object())


@pytest.mark.parametrize("kind", ASYNC, ids=lambda kind: kind.__name__)
async def test_sync_code_with_an_async_connection_is_refused(
    mill: Mill, dsn: str, kind: Any
) -> None:
    echo = echo_on(mill)
    async with kind(dsn) as conn:
        try:
            with pytest.raises(InvalidInput, match="This connection is async"):
                await asyncio.to_thread(mill.sync.submit, echo, [1], connection=conn)
            with pytest.raises(InvalidInput, match="This connection is async"):
                await asyncio.to_thread(mill.sync.enqueue, echo, 1, connection=conn)
        finally:
            await asyncio.to_thread(mill.sync.close)


async def test_sync_code_with_async_items_is_refused(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    async def slow() -> AsyncIterator[int]:
        for n in range(SEVERAL_CALLS):
            yield n
        await asyncio.sleep(0)

    items: Any = slow()
    with psycopg.connect(dsn) as conn:
        try:
            with pytest.raises(InvalidInput, match="need an async connection"):
                await asyncio.to_thread(mill.sync.submit, echo_on(mill), items, connection=conn)
        finally:
            await asyncio.to_thread(mill.sync.close)
    assert nothing_is_left(sql)


async def test_an_idle_worker_runs_jobs_once_their_transaction_commits(
    mill: Mill, dsn: str
) -> None:
    echo = echo_on(mill)
    async with mill.running(), psycopg_async(dsn) as conn:
        job = await mill.enqueue(echo, "job", connection=conn)
        batch = await mill.submit(echo, ["batch"], connection=conn)
        # Other jobs run in the meantime.
        assert await (await mill.enqueue(echo, "other")).result() == "other"
        await conn.commit()
        assert await job.result() == "job"
        assert (await batch.results()).values == ["batch"]


async def test_a_long_transaction_that_has_submitted_blocks_nobody(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    """Submitting only inserts, so it locks no lane, limit or batch of other callers."""

    @mill.task(
        limits=Limits(total=5, per_batch=2, per_tenant=4, per_key=2), key=lambda n: f"{n % 3}"
    )
    async def work(n: int) -> int:
        return n

    async with mill.running(), psycopg_async(dsn) as conn:
        assert await (await mill.enqueue(work, 1, tenant="t")).result() == 1
        running = await mill.submit(work, range(5), tenant="t")
        await mill.enqueue(work, 1, tenant="t", connection=conn, dedup_key="own")
        held = await mill.submit(
            work, range(SEVERAL_CALLS), tenant="t", limit=2, connection=conn, idempotency_key="own"
        )
        assert (await running.results()).values == [0, 1, 2, 3, 4]
        other = await mill.submit(work, range(5), tenant="t", limit=1, idempotency_key="other")
        assert (await other.results()).values == [0, 1, 2, 3, 4]
        same_lane = await mill.enqueue(work, 1, tenant="t", dedup_key="other")
        assert await same_lane.result() == 1
        await mill.limits.set("task:work", slots=4)
        await mill.limits.set("tenant:t", slots=3)
        cancelled = await mill.submit(work, [1], tenant="t", delay=60)
        await cancelled.cancel()
        await conn.rollback()
    assert one(sql, "select count(*) from batchmill.batches where id = %s", held.id) == (0,)
    assert violations(sql) == []


async def test_jobs_of_a_long_transaction_run_after_it_commits(mill: Mill, dsn: str) -> None:
    """A claim skips jobs of old transactions, but not those of one that was still open."""
    echo = echo_on(mill)
    async with mill.running(), psycopg_async(dsn) as conn:
        old = await mill.enqueue(echo, "old", connection=conn)
        for n in range(20):
            assert await (await mill.enqueue(echo, n)).result() == n
        await conn.commit()
        assert await old.result() == "old"


async def test_a_handler_submits_in_the_transaction_of_its_completion(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)

    @mill.task
    async def fan_out(job: Job, fails: bool) -> None:
        async with job.transaction() as conn:
            await mill.submit(echo, range(3), connection=conn, labels={"by": "handler"})
            if fails:
                raise Permanent("after submitting")

    async with mill.running():
        results = await (await mill.submit(fan_out, [True, False])).results()
    assert len(results.values) == len(results.failed) == 1
    count = 'select count(*) from batchmill.batches where labels = \'{"by": "handler"}\''
    assert one(sql, count) == (1,)
