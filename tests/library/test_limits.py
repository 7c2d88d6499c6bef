"""Limits with real workers: never exceeded, fully used, and changed while jobs run."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from batchmill import (
    Advance,
    InvalidLimit,
    Item,
    Job,
    Limits,
    Mill,
    NotFound,
    Pipeline,
    Rate,
    Task,
    WorkerOptions,
)
from tests.invariants import violations
from tests.library.tools import echo_on, one, rows, until, until_event
from tests.store.engine import Engine
from tests.store.rivals import Rival

Define = Callable[[Mill], Any]


@asynccontextmanager
async def two_workers(
    dsn: str, define: Define, options: WorkerOptions | None = None
) -> AsyncIterator[tuple[Mill, Any]]:
    """Yields the first worker's mill and what `define` returned for it."""
    async with AsyncExitStack() as stack:
        mills = [Mill(dsn), Mill(dsn)]
        made = [define(mill) for mill in mills]
        for mill in mills:
            await stack.enter_async_context(mill.running(options))
        yield mills[0], made[0]


class Meter:
    """Counts running jobs by label. A job waits until `full` jobs of its label have run at once."""

    def __init__(self, full: int):
        self.full = full
        self.running: Counter[Any] = Counter()
        self.peak: Counter[Any] = Counter()
        self.was_full: defaultdict[Any, asyncio.Event] = defaultdict(asyncio.Event)

    async def run(self, label: Any) -> None:
        self.running[label] += 1
        self.peak[label] = max(self.peak[label], self.running[label])
        if self.running[label] == self.full:
            self.was_full[label].set()
        await self.was_full[label].wait()
        await asyncio.sleep(0.002)
        self.running[label] -= 1


class Gates:
    """Jobs that run until `end_jobs` is called."""

    def __init__(self) -> None:
        self.running: list[int] = []
        self.most = 0
        self.go = asyncio.Semaphore(0)

    def define(self, mill: Mill, **options: Any) -> Task[..., Any]:
        @mill.task(name="work", **options)
        async def work(n: int) -> int:
            self.running.append(n)
            self.most = max(self.most, len(self.running))
            await self.go.acquire()
            self.running.remove(n)
            return n

        return work

    def end_jobs(self, count: int) -> None:
        self.most = 0
        for _ in range(count):
            self.go.release()


async def assert_invariants(sql: psycopg.Connection) -> None:
    """Uses a thread, because a transaction of the worker on this loop may hold a lock it needs."""
    assert await asyncio.to_thread(violations, sql) == []


# Never exceeded, fully used


@pytest.mark.parametrize(
    ("limits", "label"),
    [
        (Limits(total=3), lambda job: "all"),
        (Limits(per_batch=3), lambda job: job.batch_id),
        (Limits(per_tenant=3), lambda job: job.tenant),
        (Limits(per_key=3), lambda job: job.key),
    ],
    ids=["total", "per batch", "per tenant", "per key"],
)
@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
async def test_two_workers_never_exceed_the_limits_of_a_task(
    dsn: str, sql: psycopg.Connection, limits: Limits, label: Any, keyed: bool
) -> None:
    if limits.per_key and not keyed:
        pytest.skip("Only keyed tasks have keys.")
    meter = Meter(full=3)

    def define(mill: Mill) -> Any:
        @mill.task(limits=limits, key=(lambda n: f"key {n % 2}") if keyed else None)
        async def work(job: Job, n: int) -> None:
            await meter.run(label(job))

        return work

    async with two_workers(dsn, define) as (mill, work):
        batches = [await mill.submit(work, range(20), tenant=t) for t in ("a", "a", "b", "b")]
        for batch in batches:
            await until_event(batch, "job_completed", count=5)
            await assert_invariants(sql)
        for batch in batches:
            await batch.wait()
    assert set(meter.peak.values()) == {3}
    assert violations(sql) == []


async def test_two_workers_never_exceed_the_limits_of_a_pipeline(
    dsn: str, sql: psycopg.Connection
) -> None:
    """Jobs of three stages and single jobs run side by side. They count together."""
    per_batch, total = Meter(full=3), Meter(full=7)

    def define(mill: Mill) -> Any:
        flow = Pipeline("flow", limits=Limits(total=7, per_batch=3))

        async def run(job: Job) -> None:
            if job.batch_id is None:
                await total.run("all")
            else:
                await asyncio.gather(per_batch.run(job.batch_id), total.run("all"))

        @mill.task(pipeline=flow, priority=2)
        async def third(job: Job, n: int) -> None:
            await run(job)

        @mill.task(pipeline=flow, priority=1)
        async def second(job: Job, n: int) -> Advance:
            await run(job)
            return Advance(third, n)

        @mill.task(pipeline=flow)
        async def first(job: Job, n: int) -> Advance:
            await run(job)
            return Advance(second, n)

        return first

    async with two_workers(dsn, define) as (mill, first):
        batches = [await mill.submit(first, range(15)) for _ in range(3)]
        single = [await mill.enqueue(first, n) for n in range(10)]
        for batch in batches:
            await until_event(batch, "job_completed", count=3)
            await assert_invariants(sql)
        for batch in batches:
            await batch.wait()
        for job in single:
            await job.result()
    assert set(per_batch.peak.values()) == {3}
    assert total.peak == {"all": 7}
    assert violations(sql) == []


async def test_a_batch_keeps_the_limit_it_was_submitted_with(
    dsn: str, sql: psycopg.Connection
) -> None:
    meter = Meter(full=2)

    def define(mill: Mill) -> Any:
        @mill.task(limits=Limits(per_batch=10))
        async def work(job: Job, n: int) -> None:
            await meter.run(job.batch_id)

        return work

    async with two_workers(dsn, define) as (mill, work):
        batches = [await mill.submit(work, range(15), limit=2) for _ in range(3)]
        for batch in batches:
            await batch.wait()
    assert set(meter.peak.values()) == {2}
    assert violations(sql) == []


async def test_the_system_limit_counts_every_task(dsn: str, sql: psycopg.Connection) -> None:
    meter = Meter(full=4)

    def define(mill: Mill) -> Any:
        async def work(n: int) -> None:
            await meter.run("system")

        return [mill.task(name=name)(work) for name in ("first", "second")]

    async with Mill(dsn) as mill:
        await mill.limits.set("system", slots=4)
    async with two_workers(dsn, define) as (mill, (first, second)):
        batches = [await mill.submit(task, range(20)) for task in (first, second)]
        singles = [await mill.enqueue(first, n) for n in range(5)]
        for batch in batches:
            await batch.wait()
        for single in singles:
            await single.result()
    assert meter.peak == {"system": 4}
    assert violations(sql) == []


async def test_all_kinds_of_limits_hold_at_the_same_time(dsn: str, sql: psycopg.Connection) -> None:
    allowed = {"all": 6, "batch": 3, "tenant": 4, "key": 2}
    running: Counter[Any] = Counter()
    exceeded: list[Any] = []

    def define(mill: Mill) -> Any:
        limits = Limits(total=6, per_batch=3, per_tenant=4, per_key=2)

        @mill.task(limits=limits, key=lambda n: f"{n % 5}")
        async def work(job: Job, n: int) -> None:
            mine = [("all",), ("batch", job.batch_id), ("tenant", job.tenant), ("key", job.key)]
            for label in mine:
                running[label] += 1
                if running[label] > allowed[label[0]]:
                    exceeded.append(label)
            await asyncio.sleep(0.002)
            running.subtract(mine)

        return work

    async with two_workers(dsn, define) as (mill, work):
        batches = [await mill.submit(work, range(25), tenant=t) for t in ("a", "b", "a", "b")]
        for batch in batches:
            await batch.wait()
            await assert_invariants(sql)
    assert exceeded == []


# Changed while running


@pytest.mark.parametrize(
    "name",
    [
        *("system", "task:work", "tenant:default", "task:work/tenant:default", "batch:ID"),
        *("task:work/batch:*", "tenant:*", "task:work/tenant:*", "batch:*"),
    ],
)
async def test_a_limit_is_raised_and_lowered_while_jobs_run(
    dsn: str, sql: psycopg.Connection, name: str
) -> None:
    gates = Gates()
    async with two_workers(dsn, gates.define) as (mill, work):
        options: Any = {"limit": 1} if "ID" in name else {}
        if not options:
            await mill.limits.set(name, slots=1)
        batch = await mill.submit(work, range(20), **options)
        name = name.replace("ID", str(batch.id))
        await until_event(batch, "job_started")
        assert (await batch.get()).running == 1
        await mill.limits.set(name, slots=4)
        await until_event(batch, "job_started", count=4)
        await assert_invariants(sql)
        await mill.limits.set(name, slots=2)
        gates.end_jobs(3)
        await until_event(batch, "job_started", count=5)
        gates.end_jobs(17)
        assert (await batch.wait()).completed == 20
        assert gates.most <= 2
    assert violations(sql) == []


async def test_no_job_starts_while_slots_are_set_to_zero(mill: Mill) -> None:
    gates = Gates()
    work, echo = gates.define(mill), echo_on(mill)
    async with mill.running():
        await mill.limits.set("task:work", slots=0)
        batch = await mill.submit(work, [1])
        assert await (await mill.enqueue(echo, "other")).result() == "other"
        assert (await batch.get()).running == 0
        await mill.limits.reset("task:work")
        gates.end_jobs(1)
        assert (await batch.wait()).completed == 1


async def test_resetting_a_limit_restores_what_the_code_declares(mill: Mill) -> None:
    gates = Gates()
    work = gates.define(mill, limits=Limits(total=3))
    async with mill.running():
        record = await mill.limits.set("task:work", slots=1)
        assert (record.slots, record.is_set) == (1, True)
        batch = await mill.submit(work, range(6))
        await until_event(batch, "job_started")
        assert (await batch.get()).running == 1
        record = await mill.limits.reset("task:work")
        assert (record.slots, record.is_set) == (3, False)
        await until_event(batch, "job_started", count=3)
        gates.end_jobs(6)
        await batch.wait()
    assert gates.most <= 3


@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("task:work", Limits(total=2)),
        ("task:work/tenant:*", Limits(per_tenant=2)),
        ("task:work/batch:*", Limits(per_batch=2)),
    ],
)
async def test_declared_slots_can_be_set_to_unlimited(
    mill: Mill, name: str, declared: Limits
) -> None:
    gates = Gates()
    work = gates.define(mill, limits=declared)
    async with mill.running():
        record = await mill.limits.set(name, slots="unlimited")
        assert (record.slots, record.is_set, record.paused) == (None, True, False)
        batch = await mill.submit(work, range(6))
        await until_event(batch, "job_started", count=6)
        assert record.name in [limit.name for limit in await mill.limits.all()]
        assert (await mill.limits.reset(name)).slots == 2
        gates.end_jobs(6)
        await batch.wait()


async def test_an_unknown_limit_cannot_be_resumed_or_reset(
    mill: Mill, sql: psycopg.Connection
) -> None:
    for attempt in (mill.limits.resume("tenant:nobody"), mill.limits.reset("task:nothing")):
        with pytest.raises(NotFound, match='There is no limit "t'):
            await attempt
    assert one(sql, "select count(*) from batchmill.limits") == (0,)


async def test_registering_tasks_keeps_a_limit_that_an_operator_set(dsn: str) -> None:
    for _ in range(2):
        async with Mill(dsn) as mill:
            Gates().define(mill, limits=Limits(total=3))
            await mill.register_tasks()
            if not (await mill.limits.all())[0].is_set:
                await mill.limits.set("task:work", slots=1)
            assert [(m.name, m.slots, m.is_set) for m in await mill.limits.all()] == [
                ("task:work", 1, True)
            ]


async def test_a_new_declaration_replaces_the_old_one(dsn: str) -> None:
    for limits, expected in [
        (Limits(total=3, rate=Rate(5, 60)), [("task:work", 3, 5, 60)]),
        (Limits(total=2), [("task:work", 2, None, None)]),
        (Limits(), []),
    ]:
        async with Mill(dsn) as mill:
            Gates().define(mill, limits=limits)
            await mill.register_tasks()
            listed = [(m.name, m.slots, m.rate, m.period) for m in await mill.limits.all()]
            assert listed == expected


async def test_listed_limits_have_the_number_of_running_jobs(mill: Mill) -> None:
    gates = Gates()
    work = gates.define(mill, limits=Limits(total=3, per_tenant=2))
    async with mill.running():
        batch = await mill.submit(work, range(5), tenant="t")
        await until_event(batch, "job_started", count=2)
        listed = {m.name: (m.slots, m.running) for m in await mill.limits.all()}
        gates.end_jobs(5)
        await batch.wait()
    assert listed == {
        "task:work": (3, 2),
        "task:work/tenant:*": (2, 0),
        "task:work/tenant:t": (2, 2),
    }


@pytest.mark.parametrize("name", ["task:work", "tenant:t", "task:work/tenant:t", "tenant:*"])
async def test_a_pause_lets_running_jobs_finish_and_starts_no_others(mill: Mill, name: str) -> None:
    gates = Gates()
    work, echo = gates.define(mill), echo_on(mill)
    async with mill.running(WorkerOptions(concurrency=3)):
        batch = await mill.submit(work, range(10), tenant="t", limit=2)
        await until_event(batch, "job_started", count=2)
        assert (await mill.limits.pause(name)).paused
        gates.end_jobs(2)
        await until_event(batch, "job_completed", count=2)
        if name != "tenant:*":
            # Since then the worker has claimed again: this job, and none of the batch.
            assert await (await mill.enqueue(echo, 1)).result() == 1
        record = await batch.get()
        assert (record.running, record.completed) == (0, 2)
        assert not (await mill.limits.resume(name)).paused
        gates.end_jobs(8)
        assert (await batch.wait()).completed == 10


async def test_a_paused_limit_is_listed_with_its_slots(mill: Mill) -> None:
    Gates().define(mill, limits=Limits(total=3))
    await mill.register_tasks()
    paused = await mill.limits.pause("task:work")
    (listed,) = await mill.limits.all()
    assert (listed.slots, listed.paused) == (3, True)
    assert paused == listed


# Several lanes


FULL: dict[str, tuple[str | None, dict[str, Any]]] = {
    "by its own limit": (None, {"limit": 1}),
    "by what its task allows": ("task:work/batch:*", {}),
    "by its tenant": ("tenant:big", {"tenant": "big"}),
}


@pytest.mark.parametrize(
    ("how", "count"), list(zip(FULL, (100_000, 5_000, 5_000), strict=True)), ids=str
)
async def test_a_large_batch_at_its_limit_does_not_delay_a_new_batch(
    mill: Mill, sql: psycopg.Connection, how: str, count: int
) -> None:
    gates = Gates()
    work = gates.define(mill)
    await mill.register_tasks()
    limit, options = FULL[how]
    if limit:
        await mill.limits.set(limit, slots=1)
    (answer,) = one(
        sql,
        """select batchmill.submit('work', json_agg(json_build_object('payload', n)), %s)
        from generate_series(1, %s) n""",
        Jsonb(options),
        count,
    )
    big = mill.batch(answer["batch_id"])
    async with mill.running(WorkerOptions(concurrency=3)):
        await until_event(big, "job_started")
        small = await mill.submit(work, [-1])
        await until(lambda: gates.running == [1, -1])
        assert await asyncio.to_thread(rows_read_by_a_claim, sql) < 20
        await big.cancel()
        gates.end_jobs(2)
        assert (await small.wait()).completed == 1


def rows_read_by_a_claim(sql: psycopg.Connection) -> int:
    """The number of jobs that a claim reads when it can start none."""
    engine = Engine(sql)
    worker = engine.worker("work")
    with sql.transaction(force_rollback=True):
        assert engine.claim(worker, "work") == []
        (read,) = one(
            sql,
            """select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)
            from pg_stat_xact_user_tables where schemaname = 'batchmill' and relname = 'jobs'""",
        )
    return read


@pytest.mark.parametrize("concurrency", [1, 2, 4])
async def test_batches_take_turns(mill: Mill, concurrency: int) -> None:
    order: list[str] = []

    @mill.task
    async def note(name: str) -> None:
        order.append(name)
        await asyncio.sleep(0.001)

    batches = [await mill.submit(note, [name] * 80) for name in "ab"]
    async with mill.running(WorkerOptions(concurrency=concurrency, prefetch=0)):
        for batch in batches:
            await batch.wait()
    for first in range(0, 80, 20):
        assert 4 <= order[first : first + 20].count("a") <= 16


async def test_a_late_batch_does_not_wait_for_earlier_batches(mill: Mill) -> None:
    order: list[str] = []

    @mill.task
    async def note(name: str) -> None:
        order.append(name)
        if len(order) == 20:
            await mill.submit(note, ["late"])

    async with mill.running(WorkerOptions(concurrency=1, prefetch=0)):
        await (await mill.submit(note, ["early"] * 60)).wait()
    assert order.index("late") in (20, 21)


async def test_a_tenant_with_many_batches_at_its_limit_does_not_block_other_tenants(
    mill: Mill, sql: psycopg.Connection
) -> None:
    """Lanes behind a full limit are parked, so a claim reaches the other lanes."""
    gates = Gates()
    work = gates.define(mill, limits=Limits(per_tenant=1))
    batches = [await mill.submit(work, [n], tenant="busy") for n in range(30)]
    async with mill.running(WorkerOptions(concurrency=4)):
        await until(lambda: len(gates.running) == 1)
        await mill.submit(work, [100], tenant="other")
        await until(lambda: len(gates.running) == 2)
        assert 100 in gates.running
        await assert_invariants(sql)
        gates.end_jobs(1000)
        for batch in batches:
            await batch.wait()
    assert violations(sql) == []


async def test_a_task_without_a_worker_does_not_block_other_tasks(mill: Mill, dsn: str) -> None:
    async with Mill(dsn) as other:
        absent = other.task(name="absent")(lambda n: n)
        await other.submit(absent, range(1_000))
    echo = echo_on(mill)
    async with mill.running():
        assert (await (await mill.submit(echo, range(10))).results()).values == list(range(10))


# Rates


def starts_in_any_window(starts: list[float], period: float) -> int:
    starts = sorted(starts)
    return max(sum(s <= at < s + period for at in starts) for s in starts)


@pytest.mark.parametrize("keyed", [False, True], ids=["per task", "per key"])
async def test_no_time_window_has_more_starts_than_the_rate_allows(
    dsn: str, sql: psycopg.Connection, keyed: bool
) -> None:
    rate = Rate(4, 0.4)

    def define(mill: Mill) -> Any:
        limits = Limits(key_rate=rate) if keyed else Limits(rate=rate)

        @mill.task(limits=limits, key=(lambda n: f"{n % 2}") if keyed else None)
        async def work(n: int) -> None: ...

        return work

    async with two_workers(dsn, define) as (mill, work):
        batches = [await mill.submit(work, range(10)) for _ in range(2)]
        for batch in batches:
            await batch.wait()
    started = "select key, extract(epoch from started_at)::float8 from batchmill.finished"
    by_key: defaultdict[str, list[float]] = defaultdict(list)
    for key, at in rows(sql, started):
        by_key[key].append(at)
    assert len(by_key) == (2 if keyed else 1)
    for starts in by_key.values():
        assert starts_in_any_window(starts, rate.period) == rate.starts


async def test_a_rate_can_be_changed_while_jobs_wait_for_it(mill: Mill) -> None:
    echo = echo_on(mill)
    async with mill.running():
        await mill.limits.set("task:echo", rate=Rate(1, 3600))
        batch = await mill.submit(echo, range(5))
        await until_event(batch, "job_completed")
        assert (await batch.get()).running == 0
        await mill.limits.set("task:echo", rate=Rate(5, 3600))
        assert (await batch.wait()).completed == 5


async def test_the_start_time_of_a_job_is_after_the_claim_waited_for_locks(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    """A claim that waits for a lock starts its jobs late, and the rate must count from then."""
    echo_on(mill)
    await mill.register_tasks()
    await mill.limits.set("task:echo", rate=Rate(1, 60))
    await mill.enqueue("echo", 1)
    with psycopg.connect(dsn, autocommit=True) as conn, psycopg.connect(dsn) as holder:
        engine = Engine(conn)
        worker = engine.worker("echo")
        holder.execute("select from batchmill.limits for update")
        claiming = Rival(lambda: engine.claim(worker, "echo")).wait_until_blocked(engine)
        (released_at,) = one(sql, "select clock_timestamp()")
        holder.commit()
        await asyncio.to_thread(claiming.result)
    assert one(sql, "select started_at > %s from batchmill.jobs", released_at) == (True,)


# Limits created while jobs run


async def test_the_first_limit_counts_jobs_that_are_being_claimed(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await mill.submit(echo, range(5))
    with psycopg.connect(dsn, autocommit=True) as conn, psycopg.connect(dsn) as operator:
        engine = Engine(conn)
        worker = engine.worker("echo")
        Engine(operator).set_limit("system", 2)
        claiming = Rival(lambda: engine.claim(worker, "echo")).wait_until_blocked(engine)
        operator.commit()
        claims = await asyncio.to_thread(claiming.result)
        await assert_invariants(sql)
        assert len(claims) == 2
        assert engine.complete(*claims) == []


async def test_a_limit_per_tenant_counts_jobs_that_end_while_it_is_created(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await mill.submit(echo, [1])
    with psycopg.connect(dsn, autocommit=True) as conn, psycopg.connect(dsn) as ending:
        engine = Engine(conn)
        worker = engine.worker("echo")
        claims = engine.claim(worker, "echo")
        engine.set_limit("tenant:*", 2)
        await mill.submit(echo, [2])
        assert Engine(ending).complete(*claims) == []
        claiming = Rival(lambda: engine.claim(worker, "echo")).wait_until_blocked(engine)
        ending.commit()
        assert len(await asyncio.to_thread(claiming.result)) == 1
    assert violations(sql) == []


# Invalid limits


@pytest.mark.parametrize("count", [-1, 1.5, "3", True, 2**31, float("nan")])
@pytest.mark.parametrize("field", ["total", "per_batch", "per_tenant", "per_key"])
def test_slots_must_be_integers_from_zero_on(field: str, count: Any) -> None:
    with pytest.raises(InvalidLimit):
        Limits(**{field: count})


@pytest.mark.parametrize(
    ("starts", "period"),
    [(0, 1), (-1, 1), (1.5, 1), ("1", 1), (1, 0), (1, -1), (1, float("nan")), (1, float("inf"))],
)
def test_a_rate_must_have_positive_starts_and_a_positive_period(starts: Any, period: Any) -> None:
    with pytest.raises(InvalidLimit):
        Rate(starts, period)


INVALID_NAMES = [
    *("", "nonsense", "task:", "tenant:", "key:", "batch:", "system:1", "task:a b", "task:a/"),
    *("task:a/b", "task:a/tenant:", "task:*", "task:*/tenant:x", "tenant:nul\0", "key:\ud800"),
]


async def test_invalid_names_of_limits_are_refused(mill: Mill, sql: psycopg.Connection) -> None:
    for name in INVALID_NAMES:
        for attempt in (
            mill.limits.set(name, slots=1),
            mill.limits.pause(name),
            mill.limits.resume(name),
            mill.limits.reset(name),
        ):
            with pytest.raises(InvalidLimit):
                await attempt
    assert one(sql, "select count(*) from batchmill.limits") == (0,)


async def test_invalid_slots_are_refused(mill: Mill, sql: psycopg.Connection) -> None:
    for slots in (-1, 1.5, "3", True):
        with pytest.raises(InvalidLimit):
            await mill.limits.set("system", slots=slots)  # type: ignore[arg-type]
    assert one(sql, "select count(*) from batchmill.limits") == (0,)


async def test_tenants_and_keys_may_have_any_name(dsn: str, sql: psycopg.Connection) -> None:
    names = ["*", "a/b", "task:x", "tenant:*", "%s", "'", "{}", "key:*"]
    meter = Meter(full=1)

    def define(mill: Mill) -> Any:
        @mill.task(limits=Limits(per_tenant=1), key=lambda name: name)
        async def work(job: Job, name: str) -> None:
            await meter.run(job.tenant)

        return work

    async with two_workers(dsn, define) as (mill, work):
        batches = [await mill.submit(work, map(Item, names), tenant=name) for name in names]
        for batch in batches:
            assert (await batch.wait(30)).completed == len(names)
    assert set(meter.peak.values()) == {1}
