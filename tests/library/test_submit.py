"""What can be submitted, and what is refused. A refused submit writes nothing."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from batchmill import (
    BatchmillError,
    BatchState,
    BatchSummary,
    IdempotencyConflict,
    InvalidInput,
    InvalidLimit,
    InvalidPayload,
    Item,
    Job,
    JobState,
    Mill,
    PayloadTooLarge,
    Permanent,
    RequestInProgress,
    UnknownTask,
    WorkerOptions,
    submission,
)
from batchmill.store import idempotency
from tests.invariants import violations
from tests.library.tools import echo_on, later, nothing_is_left, one, rows, types

ONE_AT_A_TIME = WorkerOptions(concurrency=1)
SEVERAL_CALLS = 2 * submission.CALL_JOBS + 1


class Sheet(BaseModel):
    url: str
    pages: list[int] = Field(default_factory=list)


@dataclass
class Point:
    x: int
    y: int = 0


class Swimmer(TypedDict):
    name: str


# Payloads


async def test_payloads_are_converted_to_the_annotated_types(mill: Mill) -> None:
    @mill.task
    async def model(sheet: Sheet) -> list[int]:
        assert isinstance(sheet, Sheet)
        return sheet.pages

    @mill.task
    async def data(point: Point) -> Point:
        assert isinstance(point, Point)
        return Point(point.y, point.x)

    @mill.task
    async def typed(swimmer: Swimmer) -> str:
        return swimmer["name"]

    @mill.task
    async def several(job: Job, point: Point, when: datetime, times: int = 2) -> int:
        assert isinstance(point, Point) and when.tzinfo
        return point.x * times

    @mill.task
    async def nothing() -> str:
        return "called"

    async with mill.running():
        now = datetime.now(UTC)
        for task, payload, result in [
            (model, Sheet(url="u", pages=[3]), [3]),
            (model, {"url": "u", "pages": ["4"]}, [4]),
            (data, Point(1, 2), Point(2, 1)),
            (data, {"x": 5}, Point(0, 5)),
            (typed, {"name": "Ada"}, "Ada"),
            (several, {"point": Point(4), "when": now}, 8),
            (several, {"point": {"x": 4}, "when": now.isoformat(), "times": 3}, 12),
            (nothing, None, "called"),
        ]:
            assert await (await mill.enqueue(task, payload)).result() == result


async def test_an_invalid_payload_is_refused_with_its_path_and_the_reason(
    mill: Mill, sql: psycopg.Connection
) -> None:
    @mill.task
    async def read(sheet: Sheet) -> None: ...

    good: Any = {"url": "u"}
    with pytest.raises(InvalidPayload) as refused:
        await mill.submit(read, [good, good, {"url": "u", "pages": [1, "two"]}])
    assert refused.value.path == "item 2: $.pages[1]"
    assert "integer" in refused.value.reason
    with pytest.raises(InvalidPayload) as refused:
        await mill.enqueue(read, {})
    assert (refused.value.path, refused.value.reason) == ("$.url", "Field required")
    assert nothing_is_left(sql)


async def test_an_invalid_item_after_thousands_of_valid_ones_leaves_nothing(
    mill: Mill, sql: psycopg.Connection
) -> None:
    @mill.task
    async def count(n: int) -> None: ...

    with pytest.raises(InvalidPayload, match=f"item {SEVERAL_CALLS}: "):
        await mill.submit(count, [*range(SEVERAL_CALLS), "x"])
    assert nothing_is_left(sql)


async def test_an_iterator_that_raises_an_error_leaves_nothing(
    mill: Mill, sql: psycopg.Connection
) -> None:
    def breaking() -> Iterator[int]:
        yield from range(SEVERAL_CALLS)
        raise OSError("the file ends here")

    with pytest.raises(OSError, match="the file ends here"):
        await mill.submit(echo_on(mill), breaking())
    assert nothing_is_left(sql)


async def test_a_late_refusal_by_the_database_leaves_nothing(
    mill: Mill, sql: psycopg.Connection
) -> None:
    @mill.task(payload_limit=100)
    async def small(text: str) -> None: ...

    await mill.register_tasks()
    elsewhere = Mill(mill.settings.dsn)
    async with elsewhere:
        with pytest.raises(PayloadTooLarge, match="101 bytes; the limit is 100"):
            fits = ["x"] * SEVERAL_CALLS
            await elsewhere.submit("small", [*fits, "x" * 99, *fits])
    assert nothing_is_left(sql)


async def test_reading_many_items_does_not_block_the_event_loop(mill: Mill) -> None:
    echo = echo_on(mill)
    await mill.register_tasks()
    read = turns = 0

    def items() -> Iterator[int]:
        nonlocal read
        for n in range(SEVERAL_CALLS):
            read = n
            yield n

    async def count_turns() -> None:
        nonlocal turns
        while read < SEVERAL_CALLS - 1:
            turns += 0 < read < SEVERAL_CALLS - 1
            await asyncio.sleep(0)

    await asyncio.gather(mill.submit(echo, items()), count_turns())
    assert turns >= SEVERAL_CALLS // submission.HANDFUL - 2


async def test_values_that_postgres_cannot_store_are_refused(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    nan, inf = float("nan"), float("inf")
    for value in ("nul \0", {"nul \0": 1}, "\ud800", ["\udfff"], nan, [inf]):
        assert await refusal(mill.submit(echo, [1, value])) is InvalidPayload, value
        assert await refusal(mill.enqueue(echo, value)) is InvalidPayload, value
    assert nothing_is_left(sql)


async def test_the_payload_limit_is_exact(mill: Mill, sql: psycopg.Connection) -> None:
    @mill.task(payload_limit=100)
    async def small(text: str) -> None: ...

    await mill.enqueue(small, "x" * 98)
    await mill.submit(small, ["é" * 49])
    assert one(sql, "select array_agg(octet_length(payload::text)) from batchmill.jobs")[0] == [
        100,
        100,
    ]
    for text in ("x" * 99, "é" * 49 + "x"):
        with pytest.raises(PayloadTooLarge, match=r"101 bytes .* 100"):
            await mill.enqueue(small, text)
        with pytest.raises(PayloadTooLarge, match=r"101 bytes .* 100"):
            await mill.submit(small, ["fits", text])
    assert one(sql, "select count(*) from batchmill.batches") == (1,)


async def test_the_default_payload_limit_is_one_mebibyte(mill: Mill) -> None:
    echo = echo_on(mill)
    await mill.enqueue(echo, "x" * (1_048_576 - 2))
    with pytest.raises(PayloadTooLarge):
        await mill.enqueue(echo, "x" * (1_048_576 - 1))


# Tasks


async def test_unregistered_tasks_are_refused(mill: Mill, sql: psycopg.Connection) -> None:
    echo = echo_on(mill)
    for attempt in (
        mill.submit("unheard_of", [1]),
        mill.enqueue("unheard_of", 1),
        mill.submit(echo, [1], on_finish="unheard_of"),
        mill.submit("no name at all\0", [1]),
    ):
        with pytest.raises((UnknownTask, InvalidInput)):
            await attempt
    assert nothing_is_left(sql)


async def test_jobs_for_a_task_of_another_process_are_submitted_by_its_name(
    mill: Mill, dsn: str
) -> None:
    echo_on(mill)
    async with mill.running(), Mill(dsn) as other:
        assert await (await other.enqueue("echo", 7)).result() == 7
        assert (await (await other.submit("echo", [1, 2])).results()).values == [1, 2]


async def test_the_database_checks_jobs_of_tasks_of_other_processes(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    @mill.task(key=lambda name: name)
    async def keyed(name: str) -> None: ...

    @mill.task(payload_limit=10)
    async def short(text: str) -> None: ...

    await mill.register_tasks()
    async with Mill(dsn) as other:
        for refused, attempt in (
            (InvalidInput, other.submit("keyed", ["host"])),
            (InvalidInput, other.enqueue("keyed", "host")),
            (PayloadTooLarge, other.submit("short", ["x" * 8, "x" * 9])),
            (PayloadTooLarge, other.enqueue("short", "x" * 9)),
        ):
            with pytest.raises(refused, match="declares a key|the limit is 10"):
                await attempt
    assert nothing_is_left(sql)


async def test_the_payload_limit_of_a_task_of_another_process_applies(mill: Mill, dsn: str) -> None:
    @mill.task(payload_limit=3_000_000)
    async def large(text: str) -> int:
        return len(text)

    text = "x" * 2_500_000
    async with mill.running(), Mill(dsn) as other:
        assert await (await other.enqueue("large", text)).result() == len(text)
        assert (await (await other.submit("large", [text])).results()).values == [len(text)]


async def test_an_idempotency_key_works_across_processes(mill: Mill, dsn: str) -> None:
    echo = echo_on(mill)
    here = await mill.enqueue(echo, 1, idempotency_key="job")
    batch = await mill.submit(echo, [1], idempotency_key="batch")
    async with Mill(dsn) as other:
        assert (await other.enqueue("echo", 1, idempotency_key="job")).id == here.id
        assert (await other.submit("echo", [1], idempotency_key="batch")).id == batch.id


# Batches


async def test_items_can_come_from_a_list_a_generator_or_an_async_generator(mill: Mill) -> None:
    echo = echo_on(mill)

    async def numbers() -> AsyncIterator[int]:
        for n in range(5):
            await asyncio.sleep(0)
            yield n

    async with mill.running():
        for items in ([0, 1, 2, 3, 4], range(5), (n for n in range(5)), numbers()):
            batch = await mill.submit(echo, items)
            assert (await batch.results()).values == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("count", [submission.CALL_JOBS, SEVERAL_CALLS])
async def test_positions_continue_across_calls(mill: Mill, count: int) -> None:
    async def numbers() -> AsyncIterator[int]:
        for n in range(count):
            yield n

    echo = echo_on(mill)
    for items in (range(count), numbers()):
        batch = await mill.submit(echo, items)
        assert (await batch.get()).total == count
        assert [(j.position, j.payload) async for j in batch.jobs()] == [
            (n, n) for n in range(count)
        ]


async def test_memory_does_not_grow_while_100000_jobs_are_submitted(mill: Mill) -> None:
    """Measured separately: 1,000,000 jobs of 400 bytes took 27 s, with a peak of 3.6 MB."""
    echo = echo_on(mill)

    def texts(count: int) -> Iterator[str]:
        return (f"{n:0400}" for n in range(count))

    await mill.submit(echo, texts(10))
    tracemalloc.start()
    try:
        batch = await mill.submit(echo, texts(100_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (await batch.get()).total == 100_000
    assert peak < 12_000_000, "the payloads alone are 40 MB"


async def test_a_batch_has_at_least_one_job(mill: Mill, sql: psycopg.Connection) -> None:
    async def nothing() -> AsyncIterator[int]:
        return
        yield

    echo = echo_on(mill)
    for items in ([], nothing()):
        with pytest.raises(InvalidInput, match="nothing to submit"):
            await mill.submit(echo, items)
    assert nothing_is_left(sql)


async def test_a_batch_has_at_most_a_million_jobs(
    mill: Mill, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert submission.MOST_JOBS == 1_000_000
    monkeypatch.setattr(submission, "MOST_JOBS", SEVERAL_CALLS)
    echo = echo_on(mill)
    with pytest.raises(InvalidInput, match="at most"):
        await mill.submit(echo, range(SEVERAL_CALLS + 1))
    assert nothing_is_left(sql)
    await mill.submit(echo, range(SEVERAL_CALLS))


# Order and time


async def test_jobs_of_a_lane_run_in_order_of_priority(mill: Mill) -> None:
    order: list[int] = []

    @mill.task
    async def note(n: int) -> None:
        order.append(n)

    given = [0, -5, 7, 3, 7, -32_768, 32_767]
    batch = await mill.submit(note, [*(Item(n, priority=n) for n in given), Item(5), 5], priority=5)
    async with mill.running(ONE_AT_A_TIME):
        await batch.wait()
    assert order == [32_767, 7, 7, 5, 5, 3, 0, -5, -32_768]


async def test_single_jobs_run_in_order_of_priority(mill: Mill) -> None:
    order: list[int] = []

    @mill.task
    async def note(n: int) -> None:
        order.append(n)

    jobs = [await mill.enqueue(note, n, priority=n) for n in (1, 3, 2)]
    async with mill.running(ONE_AT_A_TIME):
        for job in jobs:
            await job.result()
    assert order == [3, 2, 1]


async def test_jobs_wait_until_they_are_due(mill: Mill, dsn: str, sql: psycopg.Connection) -> None:
    echo = echo_on(mill)
    due = datetime.now(UTC) + timedelta(hours=1)
    batch = await mill.submit(
        echo,
        [
            Item("as the batch"),
            Item("own delay", delay=timedelta(hours=2)),
            Item("own time", run_at=due + timedelta(hours=2)),
            Item("now", delay=0),
        ],
        run_at=due,
    )
    single = await mill.enqueue(echo, "single", delay=3600)
    async with mill.running():
        jobs = [job async for job in batch.jobs()]
        assert await mill.job(jobs[3].id).result() == "now"
        states = [job.state async for job in batch.jobs()]
        assert states == ["scheduled", "scheduled", "scheduled", "completed"]
        assert (await single.get()).state is JobState.SCHEDULED
    assert jobs[0].run_at == due
    assert jobs[1].run_at - jobs[1].created_at == timedelta(hours=2)
    assert jobs[2].run_at == due + timedelta(hours=2)

    future = Mill(later(dsn, "200min"))
    echo_on(future)
    async with future.running():
        assert await future.job(single.id).result() == "single"
        assert len((await future.batch(batch.id).results()).values) == 4


async def test_times_in_other_zones_are_the_same_instant(mill: Mill) -> None:
    tokyo = datetime.fromisoformat("2040-01-01T09:00:00+09:00")
    job = await mill.enqueue(echo_on(mill), run_at=tokyo)
    assert (await job.get()).run_at == datetime(2040, 1, 1, tzinfo=UTC)


# Keys


async def test_enqueue_returns_a_live_job_with_the_same_deduplication_key(mill: Mill) -> None:
    echo = echo_on(mill)
    first = await mill.enqueue(echo, 1, dedup_key="k")
    again = await mill.enqueue(echo, 2, dedup_key="k")
    foreign = await mill.enqueue(echo, 3, dedup_key="k", tenant="other")
    assert (again.id, first.is_duplicate, again.is_duplicate) == (first.id, False, True)
    assert foreign.id != first.id and not foreign.is_duplicate
    async with mill.running():
        assert await again.result() == 1
    after = await mill.enqueue(echo, 4, dedup_key="k")
    assert after.id != first.id and not after.is_duplicate


async def test_duplicates_in_a_batch_are_counted_and_not_run(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await mill.enqueue(echo, "live", dedup_key="a", delay=60)
    keys = ["a", "b", "b", "c"]
    batch = await mill.submit(echo, [Item(n, dedup_key=k) for n, k in enumerate(keys)])
    record = await batch.get()
    assert (record.total, record.duplicates) == (2, 2)
    async with mill.running():
        results = await batch.results()
    assert results.values == [1, 1, 3]
    assert [each.state for each in results.duplicates] == ["scheduled", "completed"]
    assert violations(sql) == []


async def test_a_batch_of_only_duplicates_finishes_at_once(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await mill.enqueue(echo, 1, dedup_key="a", delay=60)
    batch = await mill.submit(echo, [Item(1, dedup_key="a")])
    record = await batch.wait(5)
    assert (record.state, record.total, record.duplicates) == ("completed", 0, 1)
    assert (await types(batch))[-1] == "batch_completed"
    assert violations(sql) == []


@pytest.mark.parametrize("count", [3, submission.CALL_JOBS, SEVERAL_CALLS])
async def test_repeating_a_submit_with_its_idempotency_key_returns_the_same_batch(
    mill: Mill, sql: psycopg.Connection, count: int
) -> None:
    echo = echo_on(mill)
    options: Any = {"idempotency_key": "k", "labels": {"a": "b"}, "tenant": "t"}
    first = await mill.submit(echo, range(count), **options)
    again = await mill.submit(echo, list(range(count)), **options)
    assert (again.id, first.is_existing, again.is_existing) == (first.id, False, True)
    assert one(sql, "select count(*) from batchmill.jobs") == (count,)
    for items, changed in [
        ([*range(count - 1), -1], {}),
        (range(count - 1), {}),
        (range(count + 1), {}),
        (range(count + submission.CALL_JOBS), {}),
        (range(count), {"labels": {"a": "c"}}),
        (range(count), {"priority": 1}),
    ]:
        with pytest.raises(IdempotencyConflict, match='"k" was used'):
            await mill.submit(echo, items, **options | changed)
    assert one(sql, "select count(*) from batchmill.jobs") == (count,)
    other = await mill.submit(echo, [1], idempotency_key="k", tenant="other")
    assert other.id != first.id


async def test_a_hundred_concurrent_submits_with_one_idempotency_key_are_one_batch(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await mill.register_tasks()
    batches = await asyncio.gather(
        *(mill.submit(echo, range(3), idempotency_key="k") for _ in range(100))
    )
    jobs = await asyncio.gather(*(mill.enqueue(echo, 1, idempotency_key="j") for _ in range(100)))
    assert len({batch.id for batch in batches}) == 1
    assert sum(not batch.is_existing for batch in batches) == 1
    assert len({job.id for job in jobs}) == 1
    assert one(sql, "select count(*) from batchmill.jobs") == (4,)


WAITING = """select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and wait_event_type = 'Lock'"""


async def test_waiting_for_an_idempotency_key_holds_no_connection(
    mill: Mill, sql: psycopg.Connection
) -> None:
    """More submits than there are connections wait for a submit of another mill."""
    echo = echo_on(mill)
    async with mill.on() as elsewhere:
        async with elsewhere.database.connection() as conn, conn.transaction():
            first = await elsewhere.submit(echo, range(3), idempotency_key="k", connection=conn)
            again = [
                asyncio.create_task(mill.submit(echo, range(3), idempotency_key="k"))
                for _ in range(30)
            ]
            for _ in range(20):
                async with asyncio.timeout(5):
                    assert await mill.batches() == []
                assert one(sql, WAITING) == (0,)
        batches = await asyncio.gather(*again)
    assert {(batch.id, batch.is_existing) for batch in batches} == {(first.id, True)}


async def test_concurrent_callers_register_a_task_once(mill: Mill, sql: psycopg.Connection) -> None:
    echo = echo_on(mill)
    await mill.open()
    with sql.transaction():
        sql.execute("lock table batchmill.tasks in access exclusive mode")
        jobs = [asyncio.create_task(mill.enqueue(echo, n)) for n in range(30)]
        for _ in range(20):
            assert await mill.batches() == []
        assert one(sql, WAITING) == (1,)
    assert len({job.id for job in await asyncio.gather(*jobs)}) == 30


async def test_a_submit_that_waits_too_long_for_its_idempotency_key_is_refused(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = echo_on(mill)
    async with mill.transaction(idempotency_key="k") as conn:
        await mill.submit(echo, [1], idempotency_key="k", connection=conn)
        async with mill.on() as elsewhere:
            with monkeypatch.context() as impatient:
                impatient.setattr(idempotency, "WAIT_SECONDS", 0.05)
                for waiting in (mill, elsewhere):
                    with pytest.raises(RequestInProgress, match='"k" is still in progress'):
                        await waiting.submit(echo, [1], idempotency_key="k")
        other = await mill.submit(echo, [1], idempotency_key="k", tenant="other")
    assert not other.is_existing


async def test_a_failed_submit_frees_its_idempotency_key(mill: Mill) -> None:
    echo = echo_on(mill)
    with pytest.raises(InvalidInput):
        await mill.submit(echo, [], idempotency_key="k")
    first = await mill.submit(echo, [1], idempotency_key="k")
    assert not first.is_existing


async def test_repeating_an_enqueue_with_its_idempotency_key_returns_the_same_job(
    mill: Mill,
) -> None:
    echo = echo_on(mill)
    first = await mill.enqueue(echo, 1, idempotency_key="k")
    assert (await mill.enqueue(echo, 1, idempotency_key="k")).id == first.id
    async with mill.running():
        await first.result()
    assert (await mill.enqueue(echo, 1, idempotency_key="k")).id == first.id
    with pytest.raises(IdempotencyConflict):
        await mill.enqueue(echo, 2, idempotency_key="k")
    with pytest.raises(IdempotencyConflict):
        await mill.submit(echo, [1], idempotency_key="k")


async def test_a_repeated_request_returns_the_job_that_it_duplicates(mill: Mill) -> None:
    echo = echo_on(mill)
    live = await mill.enqueue(echo, 1, dedup_key="d")
    for _ in range(2):
        repeated = await mill.enqueue(echo, 1, dedup_key="d", idempotency_key="k")
        assert (repeated.id, repeated.is_duplicate) == (live.id, True)


# Cached results


async def test_a_cached_result_completes_a_job_at_once(mill: Mill) -> None:
    calls: list[int] = []

    @mill.task
    async def square(n: int) -> int | None:
        calls.append(n)
        return n * n if n else None

    async with mill.running():
        for n in (3, 0):
            fresh = await mill.enqueue(square, n, cache_key=f"square {n}")
            expected = await fresh.result()
            cached = await mill.enqueue(square, n, cache_key=f"square {n}")
            assert (fresh.is_cached, cached.is_cached) == (False, True)
            assert (await cached.get()).cached
            assert await cached.result() == expected
        foreign = await mill.enqueue(square, 3, cache_key="square 3", tenant="other")
        assert not foreign.is_cached
        await foreign.result()
    assert calls == [3, 0, 3]


async def test_failures_are_not_cached(mill: Mill) -> None:
    @mill.task
    async def fail(n: int) -> None:
        raise Permanent("no")

    async with mill.running():
        await (await mill.submit(fail, [Item(1, cache_key="k")])).wait()
        assert not (await mill.enqueue(fail, 1, cache_key="k")).is_cached


async def test_cached_results_in_a_batch_have_events_and_are_counted(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    async with mill.running():
        await (await mill.submit(echo, [Item(n, cache_key=f"{n}") for n in range(2)])).wait()
    items = [Item(n, cache_key=f"{n % 3}") for n in range(4)]
    batch = await mill.submit(echo, items)
    record = await batch.get()
    assert (record.state, record.total, record.completed) == ("processing", 4, 3)
    assert violations(sql) == []
    async with mill.running():
        assert (await batch.results()).values == [0, 1, 2, 0]
        events = [e async for e in batch.events()]
    assert [e.data for e in events if e.type == "batch_started"] == [{"task": "echo", "total": 4}]
    cached = [e.position for e in events if e.type == "job_completed" and e.data.get("cached")]
    assert cached == [0, 1, 3]
    assert violations(sql) == []


async def test_a_batch_of_cached_results_finishes_at_once_and_runs_its_callback(mill: Mill) -> None:
    summaries: asyncio.Queue[BatchSummary] = asyncio.Queue()
    echo = echo_on(mill)

    @mill.task
    async def finished(batch: BatchSummary) -> None:
        summaries.put_nowait(batch)

    async with mill.running():
        await (await mill.submit(echo, [Item(1, cache_key="k")])).wait()
    count = submission.CALL_JOBS + 1
    batch = await mill.submit(
        echo, (Item(1, cache_key="k") for _ in range(count)), on_finish=finished, limit=2
    )
    record = await batch.get()
    assert (record.state, record.completed, record.total) == (BatchState.COMPLETED, count, count)
    assert record.is_finished and record.last_event == count + 2
    async with mill.running():
        assert (await summaries.get()).batch_id == batch.id
    assert (await batch.results()).values == [1] * count


# Tenant, labels, expiry


async def test_tenant_labels_and_expiry_are_stored(mill: Mill, sql: psycopg.Connection) -> None:
    labels = {"who": "Ädä 🦆", "why": "test"}
    seen: list[Any] = []

    @mill.task
    async def look(job: Job, n: int) -> None:
        seen.append((job.tenant, job.labels))

    batch = await mill.submit(look, [1], tenant="club 42", labels=labels, expires_in=86_400 * 3)
    job = await mill.enqueue(look, 1, tenant="club 42", labels=labels, expires_in=timedelta(days=2))
    record = await batch.get()
    assert (record.tenant, record.labels) == ("club 42", labels)
    assert record.expires_at - record.created_at == timedelta(days=3)
    days = rows(
        sql, "select expires_on - (created_at at time zone 'UTC')::date from batchmill.jobs"
    )
    assert days == [(3,), (2,)]
    async with mill.running():
        await batch.wait()
        await job.result()
    assert ("club 42", labels) in seen
    assert {tenant for tenant, _ in seen} == {"club 42"}
    assert (await job.get()).labels == labels


async def test_the_default_expiry_is_30_days_after_the_due_time(
    mill: Mill,
) -> None:
    echo = echo_on(mill)
    now = await (await mill.submit(echo, [1])).get()
    soon = await (await mill.submit(echo, [1], delay=timedelta(days=60))).get()
    assert now.expires_at - now.created_at == timedelta(days=30)
    assert soon.expires_at - soon.created_at == timedelta(days=90)


OPTIONS: list[Any] = [
    {"tenant": ""},
    {"tenant": "x" * 501},
    {"tenant": "nul \0"},
    {"tenant": 5},
    {"priority": 32_768},
    {"priority": -32_769},
    {"priority": "high"},
    {"priority": 1.5},
    {"priority": 1.0},
    {"priority": True},
    {"delay": -1},
    {"delay": float("nan")},
    {"delay": timedelta(days=4_000)},
    {"delay": "5"},
    {"run_at": datetime(2030, 1, 1)},
    {"run_at": "2030-01-01T00:00:00Z"},
    {"run_at": datetime(9999, 12, 31, tzinfo=UTC)},
    {"delay": 1, "run_at": datetime(2030, 1, 1, tzinfo=UTC)},
    {"expires_in": -1},
    {"labels": {"": "empty name"}},
    {"labels": {"number": 5}},
    {"labels": {"nul": "\0"}},
    {"labels": {"surrogate": "\ud800"}},
    {"labels": ["no", "pairs"]},
    {"idempotency_key": ""},
    {"idempotency_key": "\0"},
    {"tenent": "misspelt"},
]
ITEM_OPTIONS: list[Any] = [
    {"priority": 1 << 20},
    {"priority": 1.0},
    {"delay": -1},
    {"delay": "5"},
    {"run_at": datetime(2030, 1, 1)},
    {"delay": 1, "run_at": datetime(2030, 1, 1, tzinfo=UTC)},
    {"dedup_key": ""},
    {"cache_key": "\0"},
    {"cache_key": 7},
]


async def refusal(attempt: Coroutine[Any, Any, Any]) -> type | None:
    """The type of the error that the call raises, or None."""
    try:
        await attempt
    except Exception as error:
        return type(error)
    return None


async def test_invalid_options_are_refused(mill: Mill, sql: psycopg.Connection) -> None:
    echo = echo_on(mill)
    for options in OPTIONS:
        assert await refusal(mill.submit(echo, [1], **options)) is InvalidInput, options
        assert await refusal(mill.enqueue(echo, 1, **options)) is InvalidInput, options
    for options in ITEM_OPTIONS:
        assert await refusal(mill.submit(echo, [1, Item(2, **options)])) is InvalidInput, options
    assert nothing_is_left(sql)


async def test_a_batch_limit_must_be_an_integer_from_one_on(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    limits: list[Any] = [0, -1, 1.5, "3", True, 2**31]
    for limit in limits:
        assert await refusal(mill.submit(echo, [1], limit=limit)) is InvalidLimit, limit
    assert nothing_is_left(sql)


async def test_a_task_key_must_be_a_text_that_can_be_stored(
    mill: Mill, sql: psycopg.Connection
) -> None:
    keys: list[Any] = ["", "x" * 501, "nul \0", None, 5]

    @mill.task(key=lambda n: keys[n])
    async def keyed(n: int) -> None: ...

    for n, key in enumerate(keys):
        assert await refusal(mill.submit(keyed, [n])) is InvalidInput, key
        assert await refusal(mill.enqueue(keyed, n)) is InvalidInput, key
    assert nothing_is_left(sql)


async def test_every_refusal_has_a_one_line_message_and_a_code(
    mill: Mill,
) -> None:
    echo = echo_on(mill)
    for attempt in (
        mill.submit(echo, []),
        mill.submit(echo, [1], tenant=""),
        mill.enqueue("unheard_of"),
        mill.enqueue(echo, "x" * 2_000_000),
        mill.enqueue(echo, 1, run_at=datetime(2030, 1, 1)),
    ):
        with pytest.raises(BatchmillError) as refused:
            await attempt
        assert str(refused.value).endswith(".") and "\n" not in str(refused.value)
        assert refused.value.code != "error"
