"""Input files of batches: a submit takes them, and they live as long as the batch."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from pydantic import BaseModel

from batchmill import (
    Artifact,
    ArtifactRecord,
    Batch,
    Client,
    Conflict,
    Item,
    Job,
    Mill,
    NotFound,
    Permanent,
    Retry,
)
from tests.artifacts.tools import ManualSource, all_violations, collect, nothing_is_left
from tests.library.tools import later, one, rows, until

DAY = 86_400
BLOCKED = """select pid from pg_stat_activity
    where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0"""


class Sheet(BaseModel):
    pdf: Artifact
    note: str = ""


@pytest.fixture(autouse=True)
def check_invariants(sql: psycopg.Connection[Any], files: Path) -> Any:
    yield
    assert all_violations(sql, files) == []


@pytest.fixture
def read(mill: Mill) -> Any:
    @mill.task(retry=Retry(attempts=1), entry=True)
    async def read(job: Job, sheet: Sheet) -> str:
        return (await job.artifacts.read(sheet.pdf)).decode()

    return read


@pytest.fixture
async def given(mill: Mill) -> ArtifactRecord:
    return await mill.artifacts.save("a.txt", b"content")


def sheet(record: ArtifactRecord) -> Sheet:
    return Sheet(pdf=record.reference)


async def inputs(mill: Client, batch: Batch) -> list[UUID]:
    return [record.id async for record in mill.artifacts.of_batch(batch.id, kind="input")]


async def test_a_batch_reads_and_keeps_the_files_in_its_payloads(
    mill: Mill, read: Any, given: ArtifactRecord
) -> None:
    batch = await mill.submit(read, [sheet(given)] * 3, expires_in=10 * DAY)
    record = await batch.get()
    taken = await mill.artifacts.get(given)
    assert (taken.batch_id, taken.expires_at) == (batch.id, record.expires_at)
    assert await inputs(mill, batch) == [given.id]
    async with mill.running():
        assert (await batch.results()).values == ["content"] * 3


async def test_files_of_a_short_batch_expire_with_it(
    mill: Mill, read: Any, given: ArtifactRecord
) -> None:
    batch = await mill.submit(read, [sheet(given)], expires_in=60)
    assert (await mill.artifacts.get(given)).expires_at == (await batch.get()).expires_at


@pytest.mark.parametrize("form", ["plain", "item", "deep", "many", "single"])
async def test_references_are_detected_anywhere_in_a_payload(
    mill: Mill, given: ArtifactRecord, form: str, sql: psycopg.Connection[Any]
) -> None:
    @mill.task
    async def anything(value: Any) -> None: ...

    name = {"artifact": str(given.id)}
    match form:
        case "plain":
            await mill.submit(anything, [name])
        case "item":
            await mill.submit(anything, [Item(name, priority=3)])
        case "deep":
            await mill.submit(anything, [{"a": [1, {"b": [name, name]}], "artifact": "no"}])
        case "many":
            await mill.submit(anything, [*range(5000), name])
        case "single":
            await mill.enqueue(anything, name)
    assert one(sql, "select count(*) from batchmill.artifact_uses") == (1,)
    assert (await mill.artifacts.get(given)).expires_at > given.expires_at


async def test_a_value_that_only_resembles_a_reference_is_ignored(
    mill: Mill, given: ArtifactRecord, sql: psycopg.Connection[Any]
) -> None:
    @mill.task
    async def anything(value: Any) -> None: ...

    text = f'{{"artifact": "{given.id}"}}'
    await mill.submit(anything, [text, {"artifact": 7}, {"artifact": "report"}, {text: 1}])
    assert one(sql, "select count(*) from batchmill.artifact_uses") == (0,)


async def test_a_reference_in_plain_sql_may_have_any_formatting(
    mill: Mill, read: Any, given: ArtifactRecord, sql: psycopg.Connection[Any]
) -> None:
    await mill.register_tasks()
    items = f'[{{"payload": {{"pdf": {{ "artifact" :\n "{str(given.id).upper()}" }}}}}}]'
    one(sql, "select batchmill.submit('read', %s::json)", items)
    assert (await mill.artifacts.get(given)).batch_id is not None


@pytest.mark.parametrize("reason", ["unknown", "foreign", "deleted", "expired", "writing"])
async def test_a_batch_with_an_unavailable_file_is_not_created(
    mill: Mill,
    dsn: str,
    sql: psycopg.Connection[Any],
    files: Path,
    read: Any,
    given: ArtifactRecord,
    reason: str,
) -> None:
    async with (
        Mill(later(dsn, "25h" if reason == "expired" else "0s"), artifacts=files) as other,
        unavailable_file(reason, mill, sql) as named,
    ):
        other.tasks.update(mill.tasks)
        with pytest.raises(NotFound, match=str(named or given.id)):
            await other.submit(read, [sheet(given), {"pdf": {"artifact": named or given.id}}])
        with pytest.raises(NotFound, match=str(named or given.id)):
            await other.enqueue(read, {"pdf": {"artifact": named or given.id}})
        assert await other.batches() == []


@asynccontextmanager
async def unavailable_file(
    reason: str, mill: Mill, sql: psycopg.Connection[Any]
) -> AsyncIterator[UUID | None]:
    """The id of a file that a batch cannot use for this reason. None means the file `given`."""
    match reason:
        case "unknown":
            yield UUID(int=7)
        case "foreign":
            yield (await mill.artifacts.save("b", b"", tenant="bob")).id
        case "deleted":
            record = await mill.artifacts.save("b", b"")
            await mill.artifacts.delete(record)
            yield record.id
        case "writing":
            source = ManualSource()
            saving = asyncio.create_task(mill.artifacts.save("b", source.chunks()))
            await source.drained()
            yield one(sql, "select id from batchmill.artifacts where state = 'writing'")[0]
            source.send(None)
            await saving
        case _:
            yield None


async def test_a_single_job_that_waits_for_its_file_does_not_hold_the_tenants_count(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], read: Any
) -> None:
    """Files come before counts in the order of locks. Otherwise two submits could deadlock."""
    sql.execute("insert into batchmill.quotas (tenant, operations_per_day) values ('ann', 5)")
    ann = mill.as_tenant("ann")
    first, second = [await mill.artifacts.save("a", b"1", tenant="ann") for _ in range(2)]
    await ann.enqueue(read, sheet(first))
    async with await psycopg.AsyncConnection.connect(dsn) as holder:
        await holder.execute(
            "select from batchmill.artifacts where id = %s for update", [second.id]
        )
        waiting = asyncio.create_task(ann.enqueue(read, sheet(second)))
        await until(lambda: rows(sql, BLOCKED))
        sql.execute("select from batchmill.usage where tenant = 'ann' for update nowait")
    assert (await (await waiting).get()).tenant == "ann"


async def test_a_submit_that_is_rolled_back_takes_no_files(
    mill: Mill, dsn: str, read: Any, given: ArtifactRecord
) -> None:
    await mill.register_tasks()
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        await mill.submit(read, [sheet(given)], connection=conn)
        await conn.rollback()
        assert await mill.artifacts.get(given) == given
        batch = await mill.submit(read, [sheet(given)], connection=conn)
    assert (await mill.artifacts.get(given)).batch_id == batch.id


async def test_a_tenant_can_use_only_its_own_files(mill: Mill, read: Any) -> None:
    ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
    hers = await ada.artifacts.save("a", b"hers")
    batch = await ada.submit(read, [sheet(hers)])
    with pytest.raises(NotFound):
        await bob.submit(read, [sheet(hers)])
    assert await inputs(ada, batch) == [hers.id]
    assert await inputs(bob, batch) == []
    async with mill.running():
        assert (await batch.results()).values == ["hers"]


async def test_inputs_of_failed_jobs_live_until_the_batch_expires(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path, given: ArtifactRecord
) -> None:
    """A retry of the failed jobs needs them, even days later."""
    is_fixed = False

    @mill.task
    async def fragile(job: Job, sheet: Sheet) -> bytes:
        if not is_fixed:
            raise Permanent("Not today.")
        return await job.artifacts.read(sheet.pdf)

    batch = await mill.submit(fragile, [sheet(given)], expires_in=10 * DAY)
    async with mill.running():
        assert (await batch.wait()).failed == 1
        await collect(dsn, files, "9d")
        is_fixed = True
        assert await batch.retry() == 1
        assert (await batch.results()).values == [b"content"]
    await collect(dsn, files, "11d")
    assert nothing_is_left(sql, files)


async def test_a_file_of_two_batches_is_deleted_with_the_last_one(
    mill: Mill,
    dsn: str,
    sql: psycopg.Connection[Any],
    files: Path,
    read: Any,
    given: ArtifactRecord,
) -> None:
    first = await mill.submit(read, [sheet(given)], expires_in=3 * DAY)
    second = await mill.submit(read, [sheet(given)], expires_in=2 * DAY)
    assert (await mill.artifacts.get(given)).expires_at == (await first.get()).expires_at
    async with mill.running():
        await first.wait()
        await second.wait()
    await first.delete()
    await collect(dsn, files)
    assert await mill.artifacts.read(given) == b"content"
    assert await inputs(mill, second) == [given.id]
    await second.delete()
    with pytest.raises(NotFound):
        await mill.artifacts.get(given)
    await collect(dsn, files)
    assert nothing_is_left(sql, files)


async def test_a_file_of_a_single_job_outlives_a_batch_that_shares_it(
    mill: Mill, dsn: str, files: Path, read: Any, given: ArtifactRecord
) -> None:
    batch = await mill.submit(read, [sheet(given)])
    job = await mill.enqueue(read, sheet(given), delay=3600)
    await batch.cancel()
    await batch.delete()
    await collect(dsn, files)
    assert await mill.artifacts.read(given) == b"content"
    with pytest.raises(Conflict):
        await mill.artifacts.delete(given)
    await job.cancel()
    await mill.artifacts.delete(given)


async def test_an_output_can_be_the_input_of_another_batch(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path, read: Any
) -> None:
    @mill.task
    async def make(job: Job, n: int) -> Artifact:
        return await job.artifacts.save("n.txt", str(n).encode())

    async with mill.running():
        made = await mill.submit(make, [1], expires_in=DAY)
        (output,) = (await made.results()).values
        used = await mill.submit(read, [{"pdf": output}], expires_in=5 * DAY)
        await used.wait()
    await made.delete()
    await collect(dsn, files, "4d")
    assert await mill.artifacts.read(output) == b"1"
    await used.delete()
    await collect(dsn, files)
    assert nothing_is_left(sql, files)


@pytest.mark.parametrize("maker", ["batch", "job"])
async def test_an_output_outlives_a_batch_that_used_it(
    mill: Mill, dsn: str, files: Path, read: Any, maker: str
) -> None:
    @mill.task
    async def make(job: Job, n: int) -> Artifact:
        return await job.artifacts.save("n.txt", str(n).encode())

    async with mill.running():
        if maker == "batch":
            (output,) = (await (await mill.submit(make, [1])).results()).values
        else:
            output = await (await mill.enqueue(make, 1)).result()
        used = await mill.submit(read, [{"pdf": output}])
        await used.wait()
    await used.delete()
    await collect(dsn, files)
    assert await mill.artifacts.read(output) == b"1"


async def test_a_file_in_use_cannot_be_deleted(
    mill: Mill, read: Any, given: ArtifactRecord
) -> None:
    batch = await mill.submit(read, [sheet(given)])
    with pytest.raises(Conflict):
        await mill.artifacts.delete(given)
    await batch.cancel()
    await mill.artifacts.delete(given)
    with pytest.raises(NotFound):
        await mill.artifacts.get(given)


async def test_a_cached_result_keeps_its_files(
    mill: Mill, dsn: str, files: Path, sql: psycopg.Connection[Any]
) -> None:
    calls = 0

    @mill.task
    async def make(job: Job, n: int) -> Artifact:
        nonlocal calls
        calls += 1
        return await job.artifacts.save("n.txt", str(n).encode())

    async with mill.running():
        first = await mill.submit(make, [Item(1, cache_key="one")], expires_in=DAY)
        (output,) = (await first.results()).values
        second = await mill.submit(make, [Item(1, cache_key="one")], expires_in=5 * DAY)
        assert (await second.results()).values == [output]
        job = await mill.enqueue(make, 1, cache_key="one", expires_in=8 * DAY)
        assert job.is_cached
    assert calls == 1
    await first.delete()
    await second.delete()
    await collect(dsn, files, "7d")
    assert await mill.artifacts.read(await job.result()) == b"1"


async def test_a_cached_result_with_a_deleted_file_is_recomputed(mill: Mill) -> None:
    @mill.task
    async def make(job: Job, n: int) -> Artifact:
        return await job.artifacts.save("n.txt", str(n).encode())

    async with mill.running():
        first = await mill.submit(make, [Item(1, cache_key="one")])
        (output,) = (await first.results()).values
        await mill.artifacts.delete(output)
        second = await mill.submit(make, [Item(1, cache_key="one")])
        (again,) = (await second.results()).values
        assert again.artifact != output.artifact
        third = await mill.enqueue(make, 1, cache_key="one")
        assert third.is_cached and await third.result() == again


async def test_files_of_a_batch_are_listed_in_pages(
    mill: Mill, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    @mill.task
    async def anything(value: Any) -> None: ...

    monkeypatch.setattr("batchmill.store.artifacts.PAGE", 2)
    given = [await mill.artifacts.save("a", b"") for _ in range(5)]
    batch = await mill.submit(anything, [record.reference for record in given])
    assert await inputs(mill, batch) == sorted(record.id for record in given)
    assert rows(sql, "select distinct batch_id from batchmill.artifacts") == [(batch.id,)]


async def test_a_job_is_not_claimed_before_its_file_is_on_the_disk(
    mill: Mill, sql: psycopg.Connection[Any], files: Path, read: Any
) -> None:
    """`save` returns only when the file is durable, so there is no id to submit before that."""

    async def slowly() -> AsyncIterator[bytes]:
        assert one(sql, "select count(*) from batchmill.jobs") == (0,)
        yield b"late"

    async with mill.running():
        record = await mill.artifacts.save("a", slowly())
        assert (files / record.storage_key).read_bytes() == b"late"
        assert (await (await mill.submit(read, [sheet(record)])).results()).values == ["late"]
