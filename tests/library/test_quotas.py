"""Quotas apply to what an application submits, retries and stores for a tenant."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import (
    Artifact,
    Client,
    Item,
    Job,
    JobFailed,
    Mill,
    NotAnEntryPoint,
    Permanent,
    Quota,
    QuotaExceeded,
    StorageExceeded,
    SyncJob,
)
from tests.library.tools import later, one


@pytest.fixture
async def mill(dsn: str, tmp_path: Path) -> AsyncIterator[Mill]:
    async with Mill(dsn, artifacts=tmp_path) as mill:
        yield mill


@pytest.fixture
async def ada(mill: Mill) -> Client:
    """A tenant that may submit two jobs a day and store 1,000 bytes."""

    @mill.task(entry=True)
    async def work(value: Any) -> Any:
        if value == "fail":
            raise Permanent("Refused.")
        return value

    await mill.keys.set_quota(Quota(tenant="ada", operations_per_day=2, storage_bytes=1_000))
    return mill.as_tenant("ada")


def used(sql: psycopg.Connection[Any]) -> int:
    return one(sql, "select operations from batchmill.usage where tenant = 'ada'")[0]


async def test_a_submit_on_a_connection_of_the_application_belongs_to_the_tenant_and_counts(
    mill: Mill, ada: Client, dsn: str, sql: psycopg.Connection[Any]
) -> None:
    """The application writes its own rows in the same transaction, with its own rights."""
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        batch = await ada.submit("work", [1], connection=conn)
        job = await ada.enqueue("work", 2, connection=conn)
    assert [(await mill.batch(batch.id).get()).tenant, (await job.get()).tenant] == ["ada"] * 2
    assert used(sql) == 2
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        for refused in (
            ada.submit("work", [3], connection=conn),
            ada.enqueue("work", 3, connection=conn),
        ):
            async with conn.transaction(force_rollback=True):
                with pytest.raises(QuotaExceeded):
                    await refused
    assert len(await ada.batches()) == 1


async def test_a_submit_on_a_connection_of_the_application_needs_an_entry_point(
    mill: Mill, ada: Client, dsn: str
) -> None:
    @mill.task
    async def internal() -> None:
        pass

    await mill.register_tasks()
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        with pytest.raises(NotAnEntryPoint):
            await mill.on(dsn).as_tenant("ada").enqueue("internal", connection=conn)


async def test_work_of_the_operator_does_not_count(
    mill: Mill, ada: Client, sql: psycopg.Connection[Any]
) -> None:
    await mill.submit("work", [1, 2, 3], tenant="ada")
    await ada.submit("work", [1])
    assert used(sql) == 1


async def test_retries_of_a_tenant_count(
    mill: Mill, ada: Client, sql: psycopg.Connection[Any]
) -> None:
    batch = await ada.submit("work", ["fail"])
    single = await ada.enqueue("work", "fail")
    async with mill.running():
        await batch.wait()
        with pytest.raises(JobFailed):
            await single.result()
    assert used(sql) == 2
    for refused in (ada.batch(batch.id).retry, ada.job(single.id).retry):
        with pytest.raises(QuotaExceeded):
            await refused()
    assert await mill.batch(batch.id).retry() == 1


async def test_duplicates_and_cached_results_do_not_count(
    mill: Mill, ada: Client, sql: psycopg.Connection[Any]
) -> None:
    batch = await ada.submit("work", [Item(1, cache_key="one")])
    async with mill.running():
        await batch.wait()
    assert (await ada.enqueue("work", 1, cache_key="one")).is_cached
    await ada.submit("work", [Item(1, cache_key="one")] * 3)
    await ada.enqueue("work", 2, dedup_key="two", delay=60)
    assert (await ada.enqueue("work", 2, dedup_key="two")).is_duplicate
    await ada.submit("work", [Item(2, dedup_key="two")] * 3)
    assert used(sql) == 2


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_job_that_writes_too_much_fails_at_once_with_storage_exceeded(
    mill: Mill, ada: Client, kind: str, sql: psycopg.Connection[Any]
) -> None:
    mill.task(entry=True, name="async")(write)
    mill.task(entry=True, name="thread")(write_plain)
    with pytest.raises(StorageExceeded):
        await ada.artifacts.save("a", b"x" * 1_001)
    batch = await ada.submit(kind, [600, 600])
    async with mill.running():
        await batch.wait()
    done = [(job.state, job.error and job.error.code, job.attempt) async for job in batch.jobs()]
    assert sorted(done, key=str) == [("completed", None, 1), ("failed", "storage_exceeded", 1)]
    stored = "select stored_bytes from batchmill.usage where tenant = 'ada'"
    assert one(sql, stored) == (600,)


async def write(job: Job, size: int) -> Artifact:
    return await job.artifacts.save("out", b"x" * size)


def write_plain(job: SyncJob, size: int) -> Artifact:
    return job.artifacts.save("out", b"x" * size)


# How much is used


async def test_a_tenant_sees_how_much_of_its_quota_it_uses(mill: Mill, ada: Client) -> None:
    before = await ada.quota()
    assert (before.stored_bytes, before.operations) == (0, 0)
    assert (before.storage_bytes, before.operations_per_day) == (1_000, 2)
    await ada.submit("work", [1])
    file = await ada.artifacts.save("a", bytes(300))
    used = await ada.quota()
    assert (used.stored_bytes, used.operations) == (300, 1)
    assert used == await mill.quota(tenant="ada")
    await ada.artifacts.delete(file)
    assert (await ada.quota()).stored_bytes == 0
    # A tenant cannot ask for another one.
    assert (await mill.as_tenant("bob").quota(tenant="ada")).operations == 0


async def test_operations_start_at_0_again_on_the_next_day(
    mill: Mill, ada: Client, dsn: str
) -> None:
    await ada.submit("work", [1])
    assert (await ada.quota()).operations == 1
    async with Mill(later(dsn, "1d")) as tomorrow:
        found = await tomorrow.quota(tenant="ada")
    assert found.operations == 0
    assert (found.resets_at - (await ada.quota()).resets_at).days == 1


async def test_without_a_quota_there_are_no_limits(mill: Mill) -> None:
    await mill.artifacts.save("a", bytes(300))
    found = await mill.quota()
    assert (found.stored_bytes, found.storage_bytes, found.operations_per_day) == (300, None, None)


async def test_the_storage_of_a_group_counts_if_it_has_less_room(mill: Mill) -> None:
    await mill.keys.set_quota(Quota(tenant="*", storage_bytes=500))
    await mill.keys.set_quota(Quota(tenant="club", storage_bytes=1_000))
    await mill.artifacts.save("a", bytes(450), tenant="club/ann")
    found = await mill.as_tenant("club/bob").quota()
    assert (found.stored_bytes, found.storage_bytes) == (0, 500)
    await mill.artifacts.save("b", bytes(300), tenant="club/cid")
    found = await mill.as_tenant("club/bob").quota()
    assert (found.stored_bytes, found.storage_bytes) == (750, 1_000)
