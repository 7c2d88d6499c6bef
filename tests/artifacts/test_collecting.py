"""The upkeep removes unneeded files: in bounded steps, with retries, and completely."""

import logging
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import Artifact, ConfigurationError, Job, Mill
from batchmill.maintenance import collector
from batchmill.maintenance.collector import Collector
from batchmill.maintenance.upkeep import Upkeep
from tests.artifacts.tools import all_violations, collector_of, nothing_is_left, states
from tests.invariants import files_in
from tests.library.tools import later, one, until

GONE = "update batchmill.artifacts set state = 'gone', collect_at = batchmill.clock()"


@pytest.fixture(autouse=True)
def check_invariants(sql: psycopg.Connection[Any], files: Path) -> Any:
    yield
    assert all_violations(sql, files) == []


async def save_files(mill: Mill, count: int) -> None:
    for _ in range(count):
        await mill.artifacts.save("a", b"12345")


async def test_a_worker_removes_the_files_of_a_deleted_batch(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    @mill.task
    async def copy(job: Job, given: Artifact) -> Artifact:
        return await job.artifacts.save("b", await job.artifacts.read(given))

    given = await mill.artifacts.save("a", b"12345")
    async with mill.running():
        batch = await mill.submit(copy, [given.reference] * 5)
        await batch.wait()
        assert states(sql) == {"kept": 6}
        await batch.delete()
        assert states(sql) in ({"gone": 6}, {})
        await until(lambda: states(sql) == {})
    assert nothing_is_left(sql, files)


async def test_a_worker_removes_expired_files(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path
) -> None:
    await save_files(mill, 3)
    async with Mill(later(dsn, "2d"), artifacts=files) as days_later:

        @days_later.task
        async def idle() -> None: ...

        async with days_later.running():
            await until(lambda: states(sql) == {})
    assert nothing_is_left(sql, files)


async def test_many_files_are_removed_in_pieces(
    mill: Mill, sql: psycopg.Connection[Any], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "PIECE", 10)
    sizes: list[int] = []
    real = mill.engine.storage.delete

    async def delete(keys: Any) -> None:
        sizes.append(len(keys))
        await real(keys)

    monkeypatch.setattr(mill.engine.storage, "delete", delete)
    await save_files(mill, 35)
    sql.execute(GONE)
    await collector_of(mill).collect()
    assert sizes == [10, 10, 10, 5]
    assert nothing_is_left(sql, files)


async def test_collection_stops_after_its_time_limit_and_continues_later(
    mill: Mill, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expired leases and schedules are handled in between. The next look follows immediately."""
    monkeypatch.setattr(collector, "PIECE", 10)
    await save_files(mill, 25)
    sql.execute(GONE)
    monkeypatch.setattr(collector, "LONGEST", 1e-6)
    worker = one(sql, "select batchmill.register_worker('w', '1', '{}', 1, 60)")[0]
    upkeep = Upkeep(mill.engine, worker)
    pauses = [await upkeep.look() for _ in range(4)]
    assert [pause == 0 for pause in pauses] == [True, True, False, False]
    assert states(sql) == {}


async def test_many_releases_are_applied_in_pieces(
    mill: Mill, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another batch needs the files, so none of them is removed. The next look follows immediately
    if time runs out."""
    monkeypatch.setattr(collector, "PIECE", 10)
    files = [await mill.artifacts.save("a", b"12345") for _ in range(25)]

    @mill.task
    async def work(files: list[Artifact]) -> None: ...

    given = [file.reference for file in files]
    releasing, _ = [await mill.submit(work, [given], delay=3_600) for _ in range(2)]
    sql.execute(
        "insert into batchmill.artifact_releases (artifact_id, tenant, batch_id, job_id, position) "
        "select artifact_id, tenant, batch_id, 1, 0 from batchmill.artifact_uses where batch_id = %s",
        [releasing.id],
    )
    worker = one(sql, "select batchmill.register_worker('w', '1', '{}', 1, 60)")[0]
    upkeep = Upkeep(mill.engine, worker)
    with monkeypatch.context() as hurried:
        hurried.setattr(collector, "LONGEST", 1e-6)
        assert await upkeep.look() == 0
    queued = "select count(distinct artifact_id) from batchmill.artifact_releases"
    assert one(sql, queued) == (15,)
    assert await upkeep.look() > 0
    assert one(sql, queued) == (0,)
    assert states(sql) == {"kept": 25}


async def test_a_failed_removal_is_retried_later(
    mill: Mill,
    dsn: str,
    sql: psycopg.Connection[Any],
    files: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A directory in place of a file cannot be unlinked, not even by root."""
    await save_files(mill, 3)
    sql.execute(GONE)
    stuck = next(files_in(files))
    stuck.unlink()
    stuck.mkdir()
    broken = collector_of(mill)
    await broken.collect()
    assert states(sql) == {"gone": 3} and "Cannot remove" in caplog.text
    caplog.clear()
    await broken.collect()
    assert caplog.text == "", "it must not retry immediately"
    stuck.rmdir()
    async with Mill(later(dsn, "11m"), artifacts=files) as minutes_later:
        await collector_of(minutes_later).collect()
    assert nothing_is_left(sql, files)


async def test_a_file_that_cannot_be_removed_does_not_block_the_others(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path
) -> None:
    await save_files(mill, 10)
    sql.execute(GONE)
    stuck = next(files_in(files))
    stuck.unlink()
    stuck.mkdir()
    await collector_of(mill).collect()
    spread = "select count(distinct collect_at) from batchmill.artifacts"
    assert one(sql, spread) == (10,)
    # Retry times are random, so a file may be tried together with the stuck one several times.
    left = (10,)
    for minute in range(1, 120):
        async with Mill(later(dsn, f"{minute}m"), artifacts=files) as then:
            await collector_of(then).collect()
        left = one(sql, "select count(*) from batchmill.artifacts")
        if left == (1,):
            break
    assert left == (1,)
    stuck.rmdir()


async def test_a_collector_without_storage_logs_a_warning(
    mill: Mill, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    await save_files(mill, 2)
    sql.execute(GONE)

    def storage() -> Any:
        raise ConfigurationError("There is no obstore here.")

    async with mill:
        with caplog.at_level(logging.WARNING):
            await Collector(mill.engine.store.artifacts, storage).collect()
    assert "There is no obstore here" in caplog.text
    assert states(sql) == {"gone": 2}


async def test_files_of_an_unfinished_batch_are_removed_when_it_expires(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path
) -> None:
    @mill.task
    async def never(given: Artifact) -> None: ...

    given = await mill.artifacts.save("a", b"12345")
    await mill.submit(never, [given.reference], expires_in=3600)

    async def idle() -> None: ...

    async with Mill(later(dsn, "2h"), artifacts=files) as later_on:
        later_on.task(idle)
        async with later_on.running():
            await until(lambda: states(sql) == {} and not rows_left(sql))
    assert nothing_is_left(sql, files)


def rows_left(sql: psycopg.Connection[Any]) -> int:
    return one(sql, "select count(*) from batchmill.batches")[0]
