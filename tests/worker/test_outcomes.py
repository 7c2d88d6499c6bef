"""What handlers return, raise and write, and the outcome of each."""

import asyncio

import psycopg
import pytest

from batchmill import (
    Advance,
    BatchState,
    BatchSummary,
    Job,
    JobCancelled,
    JobFailed,
    JobState,
    Mill,
    Permanent,
    Retry,
    Rule,
    Snooze,
    SyncJob,
    Transient,
    WorkerOptions,
)
from batchmill.domain import outcome
from batchmill.domain.job import Claim
from tests.library.tools import one, until_event
from tests.store.engine import Engine

QUICK = Retry(attempts=3, base=0, jitter=0)


async def test_results_are_merged_in_the_order_of_submission(mill: Mill) -> None:
    @mill.task
    async def square(n: int) -> int:
        return n * n

    async with mill.running():
        batch = await mill.submit(square, range(20))
        results = await batch.results()
    assert results.values == [n * n for n in range(20)]
    assert results.batch.state is BatchState.COMPLETED


async def test_changing_labels_in_a_handler_does_not_affect_other_jobs(mill: Mill) -> None:
    @mill.task
    async def mark(job: Job, n: int) -> int:
        job.labels[f"seen {n}"] = "yes"
        return len(job.labels)

    async with mill.running():
        batch = await mill.submit(mark, range(5), labels={"of": "all"})
        assert (await batch.results()).values == [2] * 5


async def test_results_list_failed_jobs_with_their_errors(mill: Mill) -> None:
    @mill.task
    async def odd(n: int) -> int:
        if n % 2 == 0:
            raise Permanent(f"{n} is even.", code="even")
        return n

    async with mill.running():
        results = await (await mill.submit(odd, range(5))).results()
    assert results.values == [1, 3]
    assert [(job.position, job.error.code) for job in results.failed if job.error] == [
        (0, "even"),
        (2, "even"),
        (4, "even"),
    ]
    assert results.batch.state is BatchState.PARTIAL


async def test_a_transient_error_is_retried_and_every_attempt_is_recorded(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def shaky(job: Job) -> int:
        if job.attempt < 3:
            raise Transient(f"Attempt {job.attempt} failed.", code="shaky")
        return job.attempt

    async with mill.running():
        job = await mill.enqueue(shaky)
        assert await job.result() == 3
    record = await job.get()
    assert [(a["attempt"], a["code"], a["message"]) for a in record.attempts] == [
        (1, "shaky", "Attempt 1 failed."),
        (2, "shaky", "Attempt 2 failed."),
    ]
    assert all(a["worker"] and a["started_at"] < a["ended_at"] for a in record.attempts)


async def test_a_job_fails_after_its_last_attempt(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def hopeless() -> None:
        raise ConnectionError("secret host name")

    async with mill.running():
        job = await mill.enqueue(hopeless)
        with pytest.raises(JobFailed) as failure:
            await job.result()
    record = await job.get()
    assert failure.value.error_code == "network"
    assert record.attempt == 3
    assert "secret" not in str(failure.value)
    assert record.error and "secret host name" in record.error.detail


async def test_a_permanent_error_is_not_retried(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def absent() -> None:
        raise FileNotFoundError("x")

    async with mill.running():
        job = await mill.enqueue(absent)
        with pytest.raises(JobFailed):
            await job.result()
    assert (await job.get()).attempt == 1


async def test_rules_map_exceptions_to_error_codes(mill: Mill) -> None:
    class Melted(Exception):
        pass

    @mill.task(retry=QUICK, rules=[Rule(Melted, code="melted", transient=False)])
    async def melt() -> None:
        raise Melted

    async with mill.running():
        job = await mill.enqueue(melt)
        with pytest.raises(JobFailed) as failure:
            await job.result()
    assert failure.value.error_code == "melted"


async def test_retry_after_sets_the_delay_of_a_retry(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def limited() -> None:
        raise Transient("Slow down.", code="rate_limited", retry_after=900)

    async with mill.running():
        batch = await mill.submit(limited, [None])
        delays = batch.events()
        async for event in delays:
            if event.type == "job_retrying":
                assert event.data["delay"] == 900
                await batch.cancel()
        assert (await batch.wait()).state == "cancelled"


async def test_each_stage_has_its_own_attempts(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def first(job: Job, n: int) -> Advance:
        if job.attempt == 1:
            raise Transient("once")
        return Advance(second, f"number {n}")

    @mill.task(retry=QUICK)
    def second(job: SyncJob, text: str) -> str:
        assert job.attempt == 1
        return text.upper()

    async with mill.running():
        batch = await mill.submit(first, [1, 2])
        assert (await batch.results()).values == ["NUMBER 1", "NUMBER 2"]
        stages = [event async for event in batch.events() if event.type == "job_stage"]
    assert [event.data for event in stages] == [{"from": "first", "task": "second"}] * 2


async def test_a_job_advances_to_a_stage_of_another_mill(mill: Mill, dsn: str) -> None:
    @mill.task
    async def first(n: int) -> Advance:
        return Advance("second", {"n": n})

    async with Mill(dsn) as other:

        @other.task
        async def second(n: int, factor: int = 2) -> int:
            return n * factor

        async with other.running(), mill.running():
            assert (await (await mill.submit(first, [1, 2])).results()).values == [2, 4]


@pytest.mark.parametrize("next_stage", ["unheard_of", "keyed", "small"])
async def test_a_job_fails_if_the_next_stage_of_another_mill_cannot_accept_it(
    mill: Mill, dsn: str, next_stage: str
) -> None:
    @mill.task
    async def first(n: int) -> Advance:
        return Advance(next_stage, "far too much")

    async with Mill(dsn) as other:

        @other.task(key=lambda text: text)
        async def keyed(text: str) -> None: ...

        @other.task(payload_limit=5)
        async def small(text: str) -> None: ...

        await other.register_tasks()
    async with mill.running():
        (job,) = (await (await mill.submit(first, [1])).results()).failed
    assert job.error and job.error.code == "cannot_advance"
    assert f'"{next_stage}"' in job.error.detail or "the limit is 5" in job.error.detail


async def test_a_snooze_uses_no_attempt_and_is_limited_by_max_snoozes(mill: Mill) -> None:
    @mill.task(max_snoozes=5)
    async def poll(job: Job, ready_after: int) -> int | Snooze:
        return job.attempt if job.snoozes >= ready_after else Snooze(0)

    async with mill.running():
        patient = await mill.enqueue(poll, 5)
        endless = await mill.enqueue(poll, 6)
        assert await patient.result() == 1
        with pytest.raises(JobFailed) as failure:
            await endless.result()
    assert failure.value.error_code == "snoozed_too_often"


async def test_a_snoozed_job_does_not_occupy_a_slot(mill: Mill) -> None:
    """The worker has one slot, so a handler that slept would block the next job."""

    @mill.task
    async def poll() -> Snooze:
        return Snooze(3600)

    @mill.task
    def poll_in_thread() -> Snooze:
        return Snooze(3600)

    async with mill.running(WorkerOptions(concurrency=1, grace=0)), asyncio.timeout(30):
        for task in (poll, poll_in_thread):
            batch = await mill.submit(task, [None])
            await until_event(batch, "job_snoozed")
            (job,) = [job async for job in batch.jobs()]
            assert job.state is JobState.SCHEDULED


async def test_a_finish_callback_runs_once_even_if_all_jobs_failed(mill: Mill) -> None:
    summaries: asyncio.Queue[BatchSummary] = asyncio.Queue()

    @mill.task
    async def fail(n: int) -> None:
        raise Permanent("no", code="no")

    @mill.task
    async def finished(batch: BatchSummary) -> None:
        summaries.put_nowait(batch)

    async with mill.running():
        batch = await mill.submit(fail, range(3), on_finish=finished)
        summary = await summaries.get()
        assert (summary.batch_id, summary.state, summary.failed) == (batch.id, "failed", 3)
        await mill.enqueue(finished, summary)
        await summaries.get()
    assert summaries.empty()


async def test_a_checkpoint_is_computed_once_across_retries(mill: Mill) -> None:
    bought: list[str] = []

    @mill.task(retry=QUICK)
    async def buy(job: Job) -> str:
        async def pay() -> str:
            bought.append("answer")
            return "answer"

        answer = await job.once("answer", pay)
        if job.attempt < 3:
            raise Transient("crash after paying")
        return answer

    @mill.task(retry=QUICK)
    def buy_in_thread(job: SyncJob) -> int:
        number = job.once("number", lambda: len(bought))
        if job.attempt < 3:
            raise Transient("crash after paying")
        return number

    async with mill.running():
        assert await (await mill.enqueue(buy)).result() == "answer"
        assert await (await mill.enqueue(buy_in_thread)).result() == 1
    assert bought == ["answer"]


async def test_a_transaction_commits_writes_and_completion_together(mill: Mill, sql) -> None:
    sql.execute("create table receipt (n integer)")

    @mill.task
    async def pay(job: Job, n: int) -> dict[str, int]:  # type: ignore[return]
        async with job.transaction() as conn:
            await conn.execute("insert into receipt values (%s)", [n])
            job.complete({"paid": n})

    @mill.task(retry=QUICK)
    async def half(job: Job) -> None:
        async with job.transaction() as conn:
            await conn.execute("insert into receipt values (-1)")
            raise Transient("after the write")

    async with mill.running():
        assert await (await mill.enqueue(pay, 5)).result() == {"paid": 5}
        with pytest.raises(JobFailed):
            await (await mill.enqueue(half)).result()
    assert sql.execute("select n from receipt").fetchall() == [(5,)]


async def test_a_transaction_of_a_lost_attempt_writes_nothing(
    mill: Mill, sql: psycopg.Connection
) -> None:
    sql.execute("create table receipt (attempt integer)")
    has_written, goes_on = asyncio.Event(), asyncio.Event()

    @mill.task(retry=QUICK)
    async def pay(job: Job) -> int:  # type: ignore[return]
        async with job.transaction() as conn:
            await conn.execute("insert into receipt values (%s)", [job.attempt])
            job.complete(job.attempt)
            if job.attempt == 1:
                has_written.set()
                await goes_on.wait()

    async with mill.running():
        job = await mill.enqueue(pay)
        await has_written.wait()
        held = Claim(*one(sql, "select id, fence, lane_id from batchmill.jobs"))
        assert Engine(sql).finish(outcome.lost(held, QUICK, 0.5)) == []
        assert await job.result() == 2
        goes_on.set()
    assert sql.execute("select attempt from receipt").fetchall() == [(2,)]


async def test_a_result_that_does_not_fit_its_annotation_fails_the_job(mill: Mill) -> None:
    @mill.task
    async def lie() -> int:
        return "no number"  # type: ignore[return-value]

    async with mill.running():
        job = await mill.enqueue(lie)
        with pytest.raises(JobFailed) as failure:
            await job.result()
    assert failure.value.error_code == "bad_result"


async def test_a_value_that_postgres_cannot_store_fails_only_its_job(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def poison(n: int) -> str:
        if n == 0:
            return "nul \0 byte"
        if n == 1:
            raise ValueError("lone \ud800 surrogate and \0 " + "x" * 1_000_000)
        return "fine"

    async with mill.running():
        results = await (await mill.submit(poison, range(4))).results()
    assert results.values == ["fine", "fine"]
    assert [job.state for job in results.failed] == [JobState.FAILED] * 2


async def test_a_payload_that_no_longer_matches_the_annotation_fails_the_job(
    mill: Mill, sql
) -> None:
    @mill.task
    async def count(n: int) -> int:
        return n

    job = await mill.enqueue(count, 1, delay=3600)
    sql.execute("update batchmill.jobs set payload = '\"text\"', run_at = clock_timestamp()")
    async with mill.running():
        with pytest.raises(JobFailed) as failure:
            await job.result()
    assert failure.value.error_code == "invalid_input"


async def test_a_transaction_of_a_cancelled_job_writes_nothing(mill: Mill, sql: psycopg.Connection):
    sql.execute("create table receipt (n integer)")

    @mill.task
    async def pay(job: Job) -> None:
        async with job.transaction() as conn:
            await conn.execute("insert into receipt values (1)")
            sql.execute("select batchmill.cancel_job(%s)", [job.id])

    async with mill.running():
        job = await mill.enqueue(pay)
        with pytest.raises(JobCancelled):
            await job.result()
    assert sql.execute("select n from receipt").fetchall() == []


async def test_progress_reported_in_a_transaction_is_stored(mill: Mill):
    @mill.task
    async def pay(job: Job) -> None:
        async with job.transaction():
            await job.progress("paid", percent=100)

    async with mill.running():
        job = await mill.enqueue(pay)
        await job.result()
    progress = (await job.get()).progress
    assert progress is not None and progress.stage == "paid"
