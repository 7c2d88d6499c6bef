"""Handlers enter limits: on the event loop, in threads and in processes, whatever interrupts them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
import pytest

from batchmill import (
    InvalidInput,
    InvalidLimit,
    Job,
    JobCancelled,
    JobFailed,
    Mill,
    NotFound,
    Rate,
    Retry,
    SyncJob,
    Task,
    WorkerOptions,
)
from batchmill.store.providers import SlotConnection
from tests.invariants import violations
from tests.library.tools import one, rows, until
from tests.postgres import Server, start_pgbouncer, with_database
from tests.worker import limited

API = "provider:api"
ONCE = Retry(attempts=1)
OPTIONS = WorkerOptions(concurrency=300, patience=5, lease=6)


class Room:
    """A task whose jobs enter the limit, and stay until `let_out` is called."""

    def __init__(self) -> None:
        self.inside: list[int] = []
        self.order: list[int] = []
        self.highest = 0
        self._door = asyncio.Semaphore(0)

    def define(self, mill: Mill, **options: Any) -> Task[..., Any]:
        @mill.task(name="call", **options)
        async def call(job: Job, n: int) -> int:
            async with job.limit(API):
                self.inside.append(n)
                self.order.append(n)
                self.highest = max(self.highest, len(self.inside))
                try:
                    await self._door.acquire()
                finally:
                    self.inside.remove(n)
            return n

        return call

    def let_out(self, count: int) -> None:
        for _ in range(count):
            self._door.release()


def waiting(sql: psycopg.Connection) -> int:
    return one(sql, "select count(*) from batchmill.holds where granted_at is null")[0]


@asynccontextmanager
async def two_workers(
    dsn: str, define: Callable[[Mill], Any], **limit: Any
) -> AsyncIterator[tuple[Mill, Any]]:
    async with AsyncExitStack() as stack:
        mills = [Mill(dsn), Mill(dsn)]
        made = [define(mill) for mill in mills]
        for mill in mills:
            mill.limit(API, **limit)
            await stack.enter_async_context(mill.running(WorkerOptions(concurrency=20)))
        yield mills[0], made[0]


@pytest.mark.parametrize("limited_task", ["on_loop", "in_thread", "in_process"])
async def test_every_kind_of_handler_enters_a_limit(
    mill: Mill, sql: psycopg.Connection, limited_task: str
) -> None:
    sql.execute(limited.TABLES)
    task: Task[..., Any] = getattr(limited, limited_task)
    mill.tasks[task.name] = task
    mill.limit(API, slots=2)
    async with mill.running(WorkerOptions(processes=4)):
        batch = await mill.submit(task, [sql.info.dsn + f" password={sql.info.password}"] * 12)
        results = await batch.results()
    assert results.batch.completed == 12, results
    assert limited.highest(sql) == 2
    assert rows(sql, "select number from batchmill.holds") == []


async def test_two_workers_share_the_slots(dsn: str, sql: psycopg.Connection) -> None:
    room = Room()
    async with two_workers(dsn, room.define, slots=3) as (mill, call):
        batch = await mill.submit(call, range(40))
        await until(lambda: len(room.inside) == 3 and waiting(sql) == 37)
        room.let_out(40)
        assert (await batch.results()).batch.completed == 40
    assert room.highest == 3
    assert violations(sql) == []


async def test_attempts_of_all_workers_enter_in_the_order_in_which_they_asked(
    dsn: str, sql: psycopg.Connection
) -> None:
    room = Room()
    async with two_workers(dsn, room.define, slots=1) as (mill, call):
        jobs = []
        for n in range(10):
            jobs.append(await mill.enqueue(call, n))
            await until(lambda n=n: waiting(sql) == n and room.inside)
        workers = rows(sql, "select distinct worker_id from batchmill.holds")
        room.let_out(10)
        for job in jobs:
            await job.result()
    assert len(workers) == 2
    assert room.order == list(range(10))


async def test_a_rate_limits_how_many_attempts_enter_in_any_window(
    mill: Mill, sql: psycopg.Connection
) -> None:
    sql.execute("""
        create table public.grants (at timestamptz);
        create function public.note_grant() returns trigger language plpgsql as $$
        begin
            insert into public.grants values (new.granted_at);
            return null;
        end $$;
        create trigger note_grant after update on batchmill.holds
        for each row execute function public.note_grant()""")

    @mill.task
    async def call(job: Job, n: int) -> None:
        async with job.limit(API):
            pass

    mill.limit(API, rate=Rate(5, 0.5))
    async with mill.running(OPTIONS):
        await (await mill.submit(call, range(22))).wait()
    starts = [at for (at,) in rows(sql, "select at from public.grants order by at")]
    assert len(starts) == 22
    for first, sixth in zip(starts, starts[5:], strict=False):
        assert (sixth - first).total_seconds() >= 0.5


async def test_a_slot_is_free_after_a_block_that_raises(mill: Mill) -> None:
    @mill.task(retry=ONCE)
    async def call(job: Job, n: int) -> int:
        async with job.limit(API):
            if n == 0:
                raise ValueError("broken")
            return n

    mill.limit(API, slots=1)
    async with mill.running():
        results = await (await mill.submit(call, range(4))).results()
    assert results.values == [1, 2, 3]


async def test_waiting_handlers_share_one_call_and_hold_no_connection(
    mill: Mill, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    async def counted(*args: Any) -> Any:
        calls.append(args)
        return await hold(*args)

    hold = SlotConnection.hold
    monkeypatch.setattr(SlotConnection, "hold", counted)
    room = Room()
    call = room.define(mill)
    mill.limit(API, slots=1)
    async with mill.running(OPTIONS):
        batch = await mill.submit(call, range(250))
        await until(lambda: room.inside and waiting(sql) == 249)
        began, polls = len(calls), 3
        await until(lambda: len(calls) >= began + polls)
        # The worker's own connections: claims (2), lease, LISTEN, upkeep, limiter, and the pool.
        connections = one(sql, CONNECTIONS)[0]
        assert connections <= 6 + POOL
        await until(lambda: one(sql, IN_TRANSACTION)[0] == 0)
        room.let_out(250)
        await batch.wait()
    # Fewer calls than the 250 handlers: what they ask for during a call goes into the next one.
    assert began < 100


POOL = 10
CONNECTIONS = """select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()"""
IN_TRANSACTION = CONNECTIONS + " and xact_start is not null"


async def test_slots_are_changed_while_handlers_wait(mill: Mill, sql: psycopg.Connection) -> None:
    room = Room()
    call = room.define(mill)
    mill.limit(API, slots=2)
    async with mill.running(OPTIONS):
        batch = await mill.submit(call, range(10))
        await until(lambda: len(room.inside) == 2 and waiting(sql) == 8)
        changed = await mill.limits.set(API, slots=5)
        assert (changed.slots, changed.running, changed.is_set) == (5, 5, True)
        await until(lambda: len(room.inside) == 5)
        await mill.limits.set(API, slots=1)
        room.let_out(4)
        await until(lambda: len(room.inside) == 1)
        assert waiting(sql) == 5
        assert (await mill.limits.reset(API)).slots == 2
        await until(lambda: len(room.inside) == 2)
        room.let_out(6)
        assert (await batch.results()).batch.completed == 10


async def test_a_paused_limit_lets_nobody_in_until_it_is_resumed(
    mill: Mill, sql: psycopg.Connection
) -> None:
    room = Room()
    call = room.define(mill)
    mill.limit(API, slots=2)
    async with mill.running(OPTIONS):
        assert (await mill.limits.pause(API)).paused
        batch = await mill.submit(call, range(4))
        await until(lambda: waiting(sql) == 4)
        assert room.order == []
        await mill.limits.resume(API)
        await until(lambda: len(room.inside) == 2)
        room.let_out(4)
        await batch.wait()


async def test_the_list_of_limits_shows_how_many_attempts_hold_a_slot(
    mill: Mill, sql: psycopg.Connection
) -> None:
    room = Room()
    call = room.define(mill)
    mill.limit(API, slots=2, rate=Rate(100, 60))
    async with mill.running(OPTIONS):
        batch = await mill.submit(call, range(3))
        await until(lambda: len(room.inside) == 2 and waiting(sql) == 1)
        (shown,) = await mill.limits.all()
        assert (shown.name, shown.running, shown.slots) == (API, 2, 2)
        assert (shown.rate, shown.period, shown.is_set) == (100, 60, False)
        room.let_out(3)
        await batch.wait()


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("ends_by", ["cancel", "timeout"])
async def test_an_attempt_that_ends_while_it_waits_gives_up_its_place(
    mill: Mill, sql: psycopg.Connection, in_thread: bool, ends_by: str
) -> None:
    room = Room()
    call = room.define(mill)
    seen: list[str] = []
    options: dict[str, Any] = {"timeout": 0.5 if ends_by == "timeout" else None, "retry": ONCE}

    @mill.task(**options)
    async def on_loop(job: Job) -> None:
        try:
            async with job.limit(API):
                pass
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    @mill.task(**options)
    def thread(job: SyncJob) -> None:
        try:
            with job.limit(API):
                pass
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    mill.limit(API, slots=1)
    async with mill.running(OPTIONS):
        holding = await mill.enqueue(call, 1)
        await until(lambda: room.inside)
        job = await mill.enqueue(thread if in_thread else on_loop)
        await until(lambda: waiting(sql) == 1 or seen)
        if ends_by == "cancel":
            await job.cancel()
        with pytest.raises(JobCancelled if ends_by == "cancel" else JobFailed):
            await job.result()
        await until(lambda: waiting(sql) == 0)
        await until(lambda: seen)
        room.let_out(1)
        await holding.result()
    assert seen == ["LeaseLost" if in_thread else "CancelledError"]


async def test_a_thread_that_is_stopped_cannot_wait_again(mill: Mill) -> None:
    """Otherwise it would wait for ever, and occupy a thread of the worker."""
    begun, ended = threading.Event(), threading.Event()
    errors: list[Exception] = []

    @mill.task(retry=ONCE)
    def stubborn(job: SyncJob) -> None:
        begun.set()
        while not job.cancelled:
            pass
        try:
            with job.limit(API):
                pass
        except Exception as error:
            errors.append(error)
        ended.set()

    mill.limit(API, slots=0)
    async with mill.running(OPTIONS):
        job = await mill.enqueue(stubborn)
        await asyncio.to_thread(begun.wait)
        await job.cancel()
        assert await asyncio.to_thread(ended.wait, 10)
    assert [type(error).__name__ for error in errors] == ["LeaseLost"]


async def test_a_wait_that_the_database_lost_is_asked_for_again(
    mill: Mill, sql: psycopg.Connection
) -> None:
    """As after a failover to a standby that missed the last commits."""
    room = Room()
    call = room.define(mill)
    mill.limit(API, slots=1)
    async with mill.running(OPTIONS):
        batch = await mill.submit(call, range(2))
        await until(lambda: waiting(sql) == 1)
        sql.execute("delete from batchmill.holds where granted_at is null")
        room.let_out(2)
        assert (await batch.wait()).completed == 2


async def test_a_drained_worker_gives_up_slots_and_places(
    mill: Mill, sql: psycopg.Connection
) -> None:
    room = Room()
    call = room.define(mill)
    mill.limit(API, slots=1)
    async with mill.running(WorkerOptions(grace=0)):
        await mill.submit(call, range(3))
        await until(lambda: room.inside and waiting(sql) == 2)
    assert room.inside == []
    (shown,) = await mill.limits.all()
    assert shown.running == 0


async def test_an_unknown_limit_fails_the_job_and_says_how_to_declare_it(mill: Mill) -> None:
    @mill.task
    async def call(job: Job) -> None:
        async with job.limit("provider:unknown"):
            pass

    async with mill.running():
        job = await mill.enqueue(call)
        with pytest.raises(JobFailed):
            await job.result()
    record = await job.get()
    assert (record.attempt, record.error and record.error.code) == (1, "not_found")
    assert record.error and 'mill.limit("provider:unknown", slots=…' in record.error.detail


async def test_a_name_that_is_no_provider_fails_the_job(mill: Mill) -> None:
    @mill.task
    async def call(job: Job, n: int) -> None:
        async with job.limit(["task:call", "provider:\0", "provider:*", ""][n]):
            pass

    async with mill.running():
        batch = await mill.submit(call, range(4))
        results = await batch.results()
    assert results.batch.failed == 4
    assert {job.error and job.error.code for job in results.failed} == {"invalid_input"}


@pytest.mark.parametrize("pool_size", [1, 5])
async def test_limits_work_through_pgbouncer(
    server: Server, dsn: str, sql: psycopg.Connection, pool_size: int
) -> None:
    bouncer = start_pgbouncer(server.dsn, pool_size=pool_size)
    if bouncer is None:
        pytest.skip("Debian's pgbouncer is not installed.")
    room = Room()
    with bouncer:
        pooled = with_database(bouncer.dsn, dsn.rsplit("/", 1)[1])
        async with two_workers(pooled, room.define, slots=2) as (mill, call):
            assert mill.database.behind_pooler
            batch = await mill.submit(call, range(12))
            await until(lambda: len(room.inside) == 2 and waiting(sql) == 10)
            room.let_out(12)
            assert (await batch.results()).batch.completed == 12
    assert room.highest == 2


async def test_a_worker_that_was_marked_lost_lets_nobody_in(
    mill: Mill, sql: psycopg.Connection
) -> None:
    room = Room()
    call = room.define(mill)
    mill.limit(API, slots=1)
    async with mill.running(WorkerOptions(upkeep=False)):
        await mill.submit(call, range(2))
        await until(lambda: room.inside and waiting(sql) == 1)
        one(sql, "update batchmill.workers set state = 'lost' returning id")
        room.let_out(2)
        await until(lambda: one(sql, "select count(*) from batchmill.workers")[0] == 2)
    assert len(room.order) == 1


@pytest.mark.parametrize(
    ("name", "limit", "error"),
    [
        ("task:call", {"slots": 1}, InvalidLimit),
        ("provider:", {"slots": 1}, InvalidLimit),
        ("provider:*", {"slots": 1}, InvalidLimit),
        (API, {}, InvalidLimit),
        (API, {"slots": -1}, InvalidLimit),
    ],
)
def test_a_limit_that_is_not_valid_is_refused(
    name: str, limit: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Mill("postgresql://nowhere").limit(name, **limit)


def test_a_limit_is_declared_once() -> None:
    mill = Mill("postgresql://nowhere")
    mill.limit(API, slots=1)
    with pytest.raises(InvalidInput, match="already declared"):
        mill.limit(API, slots=2)


async def test_reset_and_resume_of_an_unknown_provider_raise_not_found(mill: Mill) -> None:
    for change in (mill.limits.reset, mill.limits.resume):
        with pytest.raises(NotFound):
            await change(API)


async def test_handlers_in_transactions_get_slots_although_they_hold_all_pooled_connections(
    mill: Mill,
) -> None:
    """The pool has ten connections, and the limiter needs one more."""
    mill.limit(API, slots=1)
    reached = asyncio.Barrier(10)

    @mill.task(timeout=60)
    async def book(job: Job, n: int) -> int:
        async with job.transaction():
            await reached.wait()
            async with job.limit(API):
                job.complete(n)
        return n

    async with mill.running(OPTIONS):
        batch = await mill.submit(book, range(10))
        assert (await batch.results()).values == list(range(10))


async def test_the_connection_of_the_limiter_is_closed_when_it_is_idle(
    mill: Mill, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchmill.worker.limiter.IDLE", 0.05)
    mill.limit(API, slots=1)

    @mill.task
    async def enter(job: Job, n: int) -> int:
        async with job.limit(API):
            return n

    asking = "select count(*) from pg_stat_activity where query like '%%hold_slots%%' and pid <> pg_backend_pid()"
    async with mill.running(OPTIONS):
        for n in range(3):
            assert await (await mill.enqueue(enter, n)).result() == n
            await until(lambda: one(sql, asking) == (0,))
