"""The event log of a batch: its events, and readers, who get every event once and in order."""

import asyncio
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from batchmill import (
    Advance,
    Batch,
    Event,
    Job,
    Limits,
    Mill,
    NotFound,
    Permanent,
    Retry,
    Snooze,
    SyncJob,
    Transient,
    WorkerOptions,
)
from batchmill.events import chunk, hub
from batchmill.store.batches import BatchStore, EventPage
from tests.invariants import violations
from tests.library.tools import echo_on, types, until, until_event

QUICK = Retry(attempts=2, base=0, jitter=0)
ONE_AT_A_TIME = WorkerOptions(concurrency=1)


async def log_of(batch: Batch, after: int = 0) -> list[Event]:
    return [event async for event in batch.events(after)]


def types_and_data(events: list[Event]) -> list[tuple[str, Any]]:
    return [(event.type, event.data) for event in events]


# Events


async def test_every_step_of_a_job_has_an_event(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def fetch(job: Job, n: int) -> Advance | Snooze:
        if job.attempt == 1:
            raise Transient("The other side hung up.", code="network")
        if job.snoozes == 0:
            return Snooze(0)
        return Advance(read, n)

    @mill.task
    async def read(job: Job, n: int) -> int:
        await job.progress("reading", "Page 1", 50)
        return n

    async with mill.running():
        batch = await mill.submit(fetch, [7])
        log = await log_of(batch)
    message = "The other side hung up."
    assert types_and_data(log) == [
        ("batch_started", {"task": "fetch", "total": 1}),
        ("job_started", {"task": "fetch", "attempt": 1}),
        (
            "job_retrying",
            {"task": "fetch", "attempt": 1, "code": "network", "message": message, "delay": 0},
        ),
        ("job_started", {"task": "fetch", "attempt": 2}),
        ("job_snoozed", {"task": "fetch", "delay": 0}),
        ("job_started", {"task": "fetch", "attempt": 2}),
        ("job_stage", {"from": "fetch", "task": "read"}),
        ("job_started", {"task": "read", "attempt": 1}),
        ("job_progress", {"stage": "reading", "message": "Page 1", "percent": 50.0}),
        ("job_completed", {"task": "read", "attempt": 1}),
        ("batch_completed", summary(batch, "completed", completed=1)),
    ]
    assert [event.number for event in log] == list(range(1, 12))
    assert {event.batch_id for event in log} == {batch.id}
    jobs = {(event.job_id, event.position) for event in log if event.type.startswith("job")}
    assert jobs == {((await anext(batch.jobs())).id, 0)}
    assert log == sorted(log, key=lambda event: event.at)


def summary(batch: Batch, state: str, **counts: int) -> dict[str, Any]:
    none = {"completed": 0, "failed": 0, "cancelled": 0, "duplicates": 0, "generation": 1}
    rest = {"batch_id": str(batch.id), "tenant": "default", "state": state, "total": 1}
    return rest | none | counts


async def test_failure_events_have_a_code_and_a_message_but_no_detail(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def fail(n: int) -> None:
        raise ConnectionError("secret-host:5432")

    async with mill.running():
        batch = await mill.submit(fail, [1])
        log = await log_of(batch)
        assert await batch.retry() == 1
        more = await log_of(batch, log[-1].number)
    failed = log[-2]
    assert failed.type == "job_failed"
    assert (failed.data["code"], failed.data["attempt"]) == ("network", 2)
    assert log[-1].data == summary(batch, "failed", failed=1)
    assert types_and_data(more)[:2] == [
        ("batch_retried", {"jobs": 1}),
        ("job_retrying", {"task": "fail", "manual": True}),
    ]
    assert more[-1].data == summary(batch, "failed", failed=1, generation=2)
    assert "secret" not in str([*log, *more])


async def test_cancelling_a_batch_writes_an_event_for_each_job(mill: Mill) -> None:
    batch = await mill.submit(echo_on(mill), [1], delay=60)
    await batch.cancel()
    assert types_and_data(await log_of(batch)) == [
        ("job_cancelled", {"task": "echo", "attempt": 0}),
        ("batch_cancelled", summary(batch, "cancelled", cancelled=1)),
    ]


async def test_a_job_that_a_worker_releases_has_an_event(mill: Mill) -> None:
    @mill.task
    async def wait(n: int) -> None:
        await asyncio.Event().wait()

    batch = await mill.submit(wait, [1])
    async with mill.running(WorkerOptions(grace=0)):
        await until_event(batch, "job_started")
    await mill.open()
    await batch.cancel()
    assert (await types(batch))[1:3] == ["job_started", "job_released"]


async def test_a_job_cancelled_before_its_batch_starts_leaves_no_gap_in_the_log(
    mill: Mill, sql: psycopg.Connection
) -> None:
    batch = await mill.submit(echo_on(mill), range(3))
    first = await anext(batch.jobs())
    assert await mill.job(first.id).cancel()
    async with mill.running():
        log = await log_of(batch)
    assert [event.number for event in log] == list(range(1, len(log) + 1))
    assert {event.type for event in log} == {
        *("batch_started", "job_started", "job_completed", "job_cancelled", "batch_completed")
    }
    assert violations(sql) == []


# Readers


class Slow:
    """A task whose jobs wait for `go`; each release lets one continue."""

    def __init__(self, mill: Mill):
        self.go = asyncio.Semaphore(0)

        @mill.task(limits=Limits(total=3))
        async def slow(job: Job, n: int) -> int:
            await self.go.acquire()
            await job.progress("done", percent=100)
            return n

        self.task = slow


async def test_the_log_can_be_resumed_from_every_number(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def shaky(job: Job, n: int) -> None:
        if job.attempt == 1 and n % 2:
            raise Transient("again")

    async with mill.running():
        batch = await mill.submit(shaky, range(10))
        log = await log_of(batch)
        for number in range(len(log) + 1):
            assert await log_of(batch, number) == log[number:]


async def test_every_reader_gets_the_same_events_whenever_it_joins(mill: Mill, dsn: str) -> None:
    """There is no gap between stored and new events, on this mill or another."""
    slow = Slow(mill)
    async with mill.running(), Mill(dsn) as other:
        batch = await mill.submit(slow.task, range(30))
        readers = []
        for turn in range(30):
            where = (mill, other)[turn % 2]
            readers.append(asyncio.create_task(log_of(where.batch(batch.id))))
            slow.go.release()
            await until_event(batch, "job_completed", count=1 + turn // 2)
        logs = await asyncio.gather(*readers)
    assert all(log == logs[0] for log in logs)
    assert [event.number for event in logs[0]] == list(range(1, len(logs[0]) + 1))
    assert [event.type for event in logs[0]].count("job_completed") == 30


async def test_a_reader_that_reconnects_repeatedly_sees_each_event_once(
    mill: Mill, dsn: str
) -> None:
    slow = Slow(mill)
    seen: list[int] = []
    async with mill.running(), Mill(dsn) as other:
        batch = await mill.submit(slow.task, range(20))
        reader = other.batch(batch.id)
        is_over = False
        while not is_over:
            slow.go.release()
            async for event in reader.events(after=len(seen)):
                seen.append(event.number)
                is_over = event.is_last
                if event.number % 3 == 0:
                    break
    assert seen == list(range(1, len(seen) + 1))


async def test_a_reader_ends_with_the_batch_and_continues_after_a_retry(mill: Mill) -> None:
    broken = True

    @mill.task(retry=Retry(attempts=1))
    async def work(n: int) -> int:
        if broken:
            raise Permanent("broken")
        return n

    async with mill.running():
        batch = await mill.submit(work, range(3))
        first = await log_of(batch)
        assert first[-1].type == "batch_completed" and first[-1].is_last
        assert await log_of(batch, first[-1].number) == []
        broken = False
        await batch.retry()
        second = await log_of(batch, first[-1].number)
        assert await log_of(batch) == first + second
    assert second[0].type == "batch_retried"
    assert second[0].number == first[-1].number + 1
    assert [event.number for event in second] == [
        *range(second[0].number, second[0].number + len(second))
    ]


@pytest.mark.parametrize("jobs", [chunk.SIZE // 2 - 2, chunk.SIZE // 2 - 1, chunk.SIZE // 2])
async def test_reading_ends_also_if_the_log_fills_its_last_chunk(mill: Mill, jobs: int) -> None:
    batch = await mill.submit(echo_on(mill), range(jobs))
    async with mill.running():
        await batch.wait()
        log = await asyncio.wait_for(log_of(batch), 30)
    assert len(log) == 2 * jobs + 2


async def test_a_log_of_a_batch_that_finished_several_times_is_read_to_the_end(
    mill: Mill, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @mill.task(retry=Retry(attempts=1))
    async def fail(n: int) -> None:
        raise Permanent("no")

    async with mill.running():
        batch = await mill.submit(fail, [1])
        for _ in range(5):
            await batch.wait()
            await batch.retry()
        await batch.wait()
        last = (await batch.get()).last_event
        for size in range(1, 8):
            monkeypatch.setattr(chunk, "SIZE", size)
            async with Mill(dsn) as reader:
                log = await asyncio.wait_for(log_of(reader.batch(batch.id)), 30)
            assert [event.number for event in log] == list(range(1, last + 1))


async def test_the_log_of_an_unknown_batch_is_not_found(mill: Mill) -> None:
    with pytest.raises(NotFound):
        await log_of(mill.batch(uuid4()))
    for text in ("nonsense", "", "0" * 31):
        with pytest.raises(NotFound):
            mill.batch(text)


async def test_a_reader_of_a_batch_that_is_deleted_gets_not_found(mill: Mill, sql: Any) -> None:
    batch = await mill.submit(echo_on(mill), [1], delay=3600)
    reading = asyncio.create_task(log_of(batch))
    watched = "select watched_until is not null from batchmill.batches"
    await until(lambda: sql.execute(watched).fetchone() == (True,))
    sql.execute("delete from batchmill.batches")
    with pytest.raises(NotFound):
        await reading


async def test_an_event_written_right_after_a_read_wakes_the_reader(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that reads before it subscribes would miss the events in between."""
    batch = await mill.submit(echo_on(mill), [1], delay=3600)
    read = BatchStore.events

    async def read_and_cancel(*args: Any) -> EventPage:
        page = await read(*args)
        if not page.events and not page.is_finished:
            with mill.engine.listener.subscribe(f"batch:{batch.id}") as wake_up:
                await batch.cancel()
                assert await wake_up.wait(30), "the batch is not watched"
        return page

    monkeypatch.setattr(BatchStore, "events", read_and_cancel)
    monkeypatch.setattr(hub, "POLL", 3600)
    with mill.engine.listener.subscribe("any"):
        await until(lambda: mill.engine.listener.is_listening)
        log = await asyncio.wait_for(log_of(batch), 60)
    assert [event.type for event in log] == ["job_cancelled", "batch_cancelled"]


async def test_readers_work_without_notifications(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHMILL_POOLER", "transaction")
    polling_worker, polling_reader = Mill(dsn), Mill(dsn)
    slow = Slow(polling_worker)
    async with polling_worker.running(), polling_reader:
        batch = await polling_worker.submit(slow.task, range(3))
        reading = asyncio.create_task(log_of(polling_reader.batch(batch.id)))
        for _ in range(3):
            slow.go.release()
        log = await reading
        assert (
            not polling_worker.engine.listener.is_listening
            and not polling_reader.engine.listener.is_listening
        )
    assert [event.number for event in log] == list(range(1, len(log) + 1))
    assert log[-1].is_last


# Progress


@pytest.mark.parametrize("ending", ["completed", "failed"])
async def test_frequent_progress_reports_are_merged_and_the_last_one_is_kept(
    mill: Mill, ending: str
) -> None:
    @mill.task(retry=Retry(attempts=1))
    async def reports_often(job: Job, n: int) -> None:
        for number in range(10_000):
            await job.progress("counting", f"{number}")
            await asyncio.sleep(0)
        if ending == "failed":
            raise Permanent("no")

    async with mill.running():
        batch = await mill.submit(reports_often, range(2))
        log = await log_of(batch)
    assert_last_report_is_kept(log, ending)


async def test_frequent_progress_reports_of_a_thread_are_merged(mill: Mill) -> None:
    @mill.task
    def reports_often(job: SyncJob, n: int) -> None:
        for number in range(10_000):
            job.progress("counting", f"{number}")

    async with mill.running():
        batch = await mill.submit(reports_often, range(2))
        log = await log_of(batch)
    assert_last_report_is_kept(log, "completed")


def assert_last_report_is_kept(log: list[Event], ending: str) -> None:
    for position in (0, 1):
        own = [event for event in log if event.position == position]
        assert own[-1].type == f"job_{ending}"
        assert own[-2].type == "job_progress"
        assert own[-2].data["message"] == "9999"
        assert len(own) < 50
    assert [event.number for event in log] == list(range(1, len(log) + 1))


async def test_progress_is_visible_while_the_job_runs(mill: Mill) -> None:
    go = asyncio.Event()

    @mill.task
    async def work(job: Job, n: int) -> None:
        await job.progress("half", "Halfway", 50)
        await go.wait()

    async with mill.running():
        batch = await mill.submit(work, [1])
        await until_event(batch, "job_progress")
        record = await anext(batch.jobs())
        assert record.progress is not None
        assert (record.progress.stage, record.progress.percent) == ("half", 50)
        go.set()
        assert (await types(batch)).count("job_progress") == 1


async def test_long_progress_texts_are_shortened(mill: Mill) -> None:
    @mill.task
    async def report(job: Job, n: int) -> None:
        await job.progress("s" * 50_000_000, f"begin {'m' * 50_000_000} end")

    async with mill.running():
        batch = await mill.submit(report, [1])
        log = await log_of(batch)
    (progress,) = [event.data for event in log if event.type == "job_progress"]
    assert len(progress["stage"]) <= 1_000 and len(progress["message"]) <= 1_000
    assert progress["message"].startswith("begin m") and progress["message"].endswith("m end")
