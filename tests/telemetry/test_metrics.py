"""The metrics of a scrape: those that the process counts, and those from the database."""

import asyncio
import re
from typing import Any

import psycopg
import pytest

from batchmill import (
    Advance,
    Job,
    Limits,
    Mill,
    Permanent,
    Rate,
    Retry,
    Snooze,
    Transient,
    WorkerOptions,
)
from batchmill.maintenance.upkeep import Upkeep
from batchmill.store import overview
from batchmill.store.overview import OverviewStore
from batchmill.telemetry import families
from batchmill.telemetry import metrics as module
from tests.library.tools import echo_on, later, until, until_event
from tests.postgres import packaged_server
from tests.store.engine import Engine
from tests.telemetry.scrape import scrape

QUICK = Retry(attempts=2, base=0, jitter=0)
pytestmark = pytest.mark.usefixtures("always_fresh")


# Counted by the process


async def test_attempts_are_counted_by_outcome(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def work(job: Job, n: int) -> Any:
        if n == 1:
            raise Permanent("No.")
        if n == 2 and job.attempt == 1:
            raise Transient("Not yet.")
        if n == 3 and not job.snoozes:
            return Snooze(0)
        if n == 4:
            return Advance(rest, n)
        return n

    @mill.task
    async def rest(n: int) -> int:
        return n

    assert mill.metrics.meter is mill.engine.meter
    async with mill.running():
        await (await mill.submit(work, range(5))).results()
        result = await scrape(mill)
    ended = {"completed": 3, "failed": 1, "retried": 1, "snoozed": 1, "advanced": 1}
    assert result.by("attempts_total", "outcome", task="work") == ended
    assert result.by("attempts_total", "outcome", task="rest") == {"completed": 1}
    assert result.value("job_run_seconds_count", task="work") == 7
    assert result.value("job_run_seconds_bucket", task="rest", le="+Inf") == 1
    assert result.value("exchange_failures_total") == 0
    assert (result.value("exchange_seconds_count") or 0) > 0


async def test_a_completion_in_a_transaction_is_counted_once(mill: Mill) -> None:
    @mill.task
    async def work(job: Job) -> None:
        async with job.transaction():
            job.complete(None)

    assert mill.metrics
    async with mill.running():
        await (await mill.enqueue(work)).result()
        await until(lambda: mill.metrics.meter.tasks["work"].outcomes)
        result = await scrape(mill)
    assert result.by("attempts_total", "outcome") == {"completed": 1}


async def test_stopped_attempts_count_as_cancelled_or_released(mill: Mill) -> None:
    @mill.task
    async def work(n: int) -> None:
        await asyncio.Event().wait()

    assert mill.metrics
    async with mill.running(WorkerOptions(grace=0, upkeep=False)):
        batch = await mill.submit(work, [1])
        other = await mill.submit(work, [2])
        await until_event(batch, "job_started")
        await until_event(other, "job_started")
        await batch.cancel()
        await batch.wait()
    result = await scrape(mill)
    assert result.by("attempts_total", "outcome") == {"cancelled": 1, "released": 1}


async def test_attempts_of_a_worker_that_lost_its_lease_count_as_lost(
    mill: Mill, sql: psycopg.Connection
) -> None:
    begun = asyncio.Event()

    @mill.task
    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    assert mill.metrics
    async with mill.running(WorkerOptions(lease=0.3, grace=0, upkeep=False)):
        await mill.enqueue(work)
        await begun.wait()
        sql.execute("update batchmill.workers set state = 'lost' where state = 'live'")
        await until(lambda: mill.metrics.meter.tasks["work"].outcomes)
    assert mill.metrics.meter.tasks["work"].outcomes["lost"] == 1


async def test_the_leader_counts_the_attempts_that_it_rescues(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await mill.submit(echo, range(3))
    engine = Engine(sql)
    engine.claim(engine.worker("echo"), "echo", want=2)
    async with Mill(later(dsn, "31s")) as leader:
        assert leader.metrics
        upkeep = Upkeep(leader.engine, 0)
        await upkeep.look()
        await upkeep._leading.close()
        result = await scrape(leader)
    assert result.by("lease_expiries_total", "task") == {"echo": 2}


async def test_the_wait_time_is_measured_by_the_clock_of_the_database(mill: Mill, dsn: str) -> None:
    batch = await mill.submit(echo_on(mill), range(3), delay=1_000)
    async with Mill(later(dsn, "3000s")) as late:
        echo_on(late)
        assert late.metrics
        async with late.running(WorkerOptions(upkeep=False)):
            await late.batch(batch.id).wait()
        result = await scrape(late)
    buckets = result.by("job_wait_seconds_bucket", "le", task="echo")
    assert (buckets["1800.0"], buckets["3600.0"]) == (0, 3)


async def test_nothing_is_counted_before_the_first_scrape(mill: Mill) -> None:
    echo = echo_on(mill)
    async with mill.running():
        await (await mill.enqueue(echo, 1)).result()
        assert mill.engine.meter is None
        before = await scrape(mill)
        await (await mill.enqueue(echo, 2)).result()
        after = await scrape(mill)
    assert before.by("attempts_total", "outcome") == {}
    assert after.by("attempts_total", "outcome") == {"completed": 1}


async def test_usage_is_counted_by_task_and_name(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def work(job: Job, n: int) -> int:
        job.use("tokens", n)
        if n == 5 and job.attempt == 1:
            raise Transient("Not yet.")
        if n == 7:
            async with job.transaction():
                job.complete(n)
        return n

    assert mill.metrics
    async with mill.running():
        await (await mill.submit(work, [5, 7])).results()
    result = await scrape(mill)
    assert result.by("usage_total", "name", task="work") == {"tokens": 17}


# From the database


async def test_jobs_are_reported_by_task_and_state(mill: Mill, sql: psycopg.Connection) -> None:
    echo = echo_on(mill)
    await mill.submit(echo, range(5))
    await mill.submit(echo, range(2), delay=60)
    await mill.enqueue(echo, 1)
    engine = Engine(sql)
    engine.claim(engine.worker("echo"), "echo", want=2)
    result = await scrape(mill)
    assert result.value("up") == 1
    assert result.by("jobs", "state", task="echo") == {"ready": 4, "scheduled": 2, "running": 2}
    assert result.value("workers") == 1
    assert result.by("task_workers", "task") == {"echo": 1}
    assert result.value("open_batches") == 2


async def test_the_age_of_the_oldest_ready_job_is_reported(mill: Mill, dsn: str) -> None:
    echo = echo_on(mill)

    @mill.task
    async def idle() -> None: ...

    await mill.submit(echo, [1])
    async with Mill(later(dsn, "100s")) as late:
        result = (await scrape(late)).by("oldest_ready_seconds", "task")
    assert 100 <= result["echo"] < 200
    assert result["idle"] == 0


async def test_counts_stop_at_a_documented_cap(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "CAP", 3)
    await mill.submit(echo_on(mill), range(10))
    result = await scrape(mill)
    assert result.by("jobs", "state", task="echo")["ready"] == 3
    for name in ("jobs", "open_batches"):
        assert f"up to {families.CAP}" in result.families[f"batchmill_{name}"].documentation


async def test_finished_batches_are_not_counted_as_open(mill: Mill) -> None:
    echo = echo_on(mill)
    async with mill.running():
        await (await mill.submit(echo, range(3))).wait()
        assert (await scrape(mill)).value("open_batches") == 0


async def test_only_limits_of_tasks_providers_and_the_system_are_reported(mill: Mill) -> None:
    """There is no limit on tenants, batches and keys, and their names may be personal data."""

    @mill.task(limits=Limits(total=4, per_batch=2, per_tenant=3, per_key=1), key=str)
    async def work(n: int) -> None:
        await asyncio.Event().wait()

    await mill.limits.set("system", slots=9)
    await mill.limits.set("tenant:ada@example.com", slots=2)
    await mill.limits.set("key:1", rate=Rate(5))
    await mill.limits.set("provider:api", slots=3)
    async with mill.running(WorkerOptions(grace=0, upkeep=False)):
        batch = await mill.submit(work, range(3), tenant="ada@example.com", limit=7)
        await until_event(batch, "job_started", 2)
        await mill.limits.pause("task:work")
        result = await scrape(mill)
    assert result.by("limit_slots", "name") == {"system": 9, "task:work": 4, "provider:api": 3}
    assert result.by("limit_running", "name") == {"system": 2, "task:work": 2, "provider:api": 0}
    assert result.by("limit_paused", "name") == {"system": 0, "task:work": 1, "provider:api": 0}
    text = (await mill.metrics.render()).decode()
    assert "ada" not in text and str(batch.id) not in text


async def test_only_labels_with_few_values_are_used(mill: Mill) -> None:
    echo = echo_on(mill)
    assert mill.metrics
    async with mill.running():
        await (await mill.submit(echo, range(3), tenant="t", labels={"a": "b"})).wait()
        result = await scrape(mill)
    labels = {name for _, labels in result.samples for name, _ in labels}
    assert labels == {"task", "state", "outcome", "le"}


async def test_metric_names_follow_the_prometheus_conventions(mill: Mill) -> None:
    result = await scrape(mill)
    assert result.families
    for family in result.families.values():
        assert re.fullmatch(r"batchmill_[a-z_]+", family.name)
        assert family.documentation.endswith(".")
        is_counter = family.type == "counter"
        assert not is_counter or all(s.name.endswith("_total") for s in family.samples)


# Scrapes


class QueryCounter:
    """Counts the queries for gauges."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.count = 0
        read = OverviewStore.gauges

        async def counted(store: OverviewStore) -> Any:
            self.count += 1
            return await read(store)

        monkeypatch.setattr(OverviewStore, "gauges", counted)


async def test_concurrent_scrapes_share_one_query(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 3_600.0)
    queries = QueryCounter(monkeypatch)
    texts = await asyncio.gather(*(mill.metrics.render() for _ in range(10)))
    assert len(set(texts)) == 1
    await mill.metrics.render()
    assert queries.count == 1
    monkeypatch.setattr(module, "FRESH_SECONDS", -1.0)
    await mill.metrics.render()
    assert queries.count == 2


async def test_a_scrape_without_the_database_has_the_process_metrics() -> None:
    with packaged_server() as server:
        async with Mill(server.dsn, migrate=True) as mill:
            echo = echo_on(mill)
            assert (await scrape(mill)).value("up") == 1
            async with mill.running(WorkerOptions(upkeep=False)):
                await (await mill.enqueue(echo, 1)).result()
            await asyncio.to_thread(server.stop)
            result = await scrape(mill)
            assert result.value("up") == 0
            assert result.by("attempts_total", "outcome") == {"completed": 1}
            assert "batchmill_jobs" not in result.families
            await asyncio.to_thread(server.start)
            await until_up(mill)


async def until_up(mill: Mill) -> None:
    while (await scrape(mill)).value("up") != 1:
        await asyncio.sleep(0.01)


async def test_a_scrape_does_not_wait_for_a_slow_database(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, real = asyncio.Event(), OverviewStore.gauges

    async def slow(*args: Any) -> Any:
        await gate.wait()
        return await real(*args)

    monkeypatch.setattr(OverviewStore, "gauges", slow)
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    assert (await scrape(mill)).value("up") == 0
    monkeypatch.setattr(module, "PATIENCE", 60.0)
    gate.set()
    assert (await scrape(mill)).value("up") == 1


async def test_a_scrape_opens_the_mill(dsn: str) -> None:
    mill = Mill(dsn)
    try:
        assert (await scrape(mill)).value("up") == 1
    finally:
        await mill.close()
