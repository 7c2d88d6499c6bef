"""A stage releases files that no later stage needs, although its batch still runs."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import (
    Advance,
    Artifact,
    ArtifactRecord,
    Job,
    Mill,
    NotFound,
    Permanent,
    Retry,
    Snooze,
    SyncJob,
    Transient,
    WorkerOptions,
)
from tests.artifacts import heavy
from tests.artifacts.tools import all_violations, collect, states, stored_bytes
from tests.invariants import files_in
from tests.library.tools import one, until

QUICK = Retry(attempts=3, base=0, jitter=0)
BRIEF = WorkerOptions(patience=0.2, lease=3, processes=2)
QUEUED = "select count(*) from batchmill.artifact_releases"


@pytest.fixture(autouse=True)
def check_invariants(sql: psycopg.Connection[Any], files: Path) -> Any:
    yield
    assert all_violations(sql, files) == []


@pytest.fixture
async def given(mill: Mill) -> ArtifactRecord:
    return await mill.artifacts.save("in.txt", b"content")


async def releases_applied(sql: psycopg.Connection[Any]) -> None:
    """An outcome queues its releases, and the upkeep applies them."""
    await until(lambda: one(sql, QUEUED) == (0,))


class Gate:
    """Jobs of the second stage wait here, so that their batch still runs."""

    def __init__(self, mill: Mill) -> None:
        self.is_open = asyncio.Event()
        self.arrived = 0

        @mill.task(name="wait")
        async def wait(value: Any) -> None:
            self.arrived += 1
            await self.is_open.wait()

        self.task = wait

    async def until_arrived(self, count: int) -> None:
        await until(lambda: self.arrived >= count)


@pytest.fixture
def gate(mill: Mill) -> Gate:
    return Gate(mill)


def converting(mill: Mill, gate: Gate, where: str) -> Any:
    @mill.task(name="convert_on_loop")
    async def on_loop(job: Job, file: Artifact) -> Advance:
        assert await job.artifacts.read(file) == b"content"
        job.artifacts.release(file)
        return Advance(gate.task, 1)

    @mill.task(name="convert_in_thread")
    def in_thread(job: SyncJob, file: Artifact) -> Advance:
        return heavy.releases.function(job, file)

    mill.tasks.update(heavy.mill.tasks)
    return {"loop": on_loop, "thread": in_thread, "process": heavy.releases}[where]


@pytest.mark.parametrize("where", ["loop", "thread", "process"])
async def test_a_file_is_removed_while_its_batch_runs(
    mill: Mill,
    dsn: str,
    sql: psycopg.Connection[Any],
    files: Path,
    given: ArtifactRecord,
    gate: Gate,
    where: str,
) -> None:
    task = converting(mill, gate, where)
    async with mill.running(BRIEF):
        batch = await mill.submit(task, [given.reference])
        await gate.until_arrived(1)
        async with asyncio.timeout(5):
            await until(lambda: not list(files_in(files)))
        with pytest.raises(NotFound):
            await mill.artifacts.get(given)
        assert (await batch.get()).finished_at is None
        await until(lambda: stored_bytes(sql) == 0)
        gate.is_open.set()
        assert (await batch.wait()).completed == 1


async def test_a_file_of_several_items_is_kept_until_all_have_released_it(
    mill: Mill, sql: psycopg.Connection[Any], given: ArtifactRecord, gate: Gate
) -> None:
    """The last item fails, so its retry needs the file."""
    is_fixed = False

    @mill.task
    async def convert(job: Job, item: tuple[int, Artifact]) -> Advance:
        number, file = item
        assert await job.artifacts.read(file) == b"content"
        job.artifacts.release(file)
        if number == 2 and not is_fixed:
            raise Permanent("Not today.")
        return Advance(gate.task, number)

    async with mill.running(BRIEF):
        batch = await mill.submit(convert, [(n, given.reference) for n in range(3)])
        await gate.until_arrived(2)
        gate.is_open.set()
        assert (await batch.wait()).failed == 1
        await releases_applied(sql)
        assert await mill.artifacts.read(given) == b"content"
        is_fixed = True
        await batch.retry()
        assert (await batch.wait()).completed == 3
        await releases_applied(sql)
        with pytest.raises(NotFound):
            await mill.artifacts.get(given)


@pytest.mark.parametrize("ending", ["raise", "snooze", "retry"])
async def test_an_attempt_that_ends_otherwise_releases_nothing(
    mill: Mill, sql: psycopg.Connection[Any], given: ArtifactRecord, ending: str
) -> None:
    @mill.task(retry=QUICK)
    async def convert(job: Job, file: Artifact) -> str:
        job.artifacts.release(file)
        if job.attempt + job.snoozes == 1:
            match ending:
                case "raise":
                    raise Permanent("No.")
                case "retry":
                    raise Transient("Later.")
                case _:
                    return Snooze(0)  # pyright: ignore[reportReturnType]
        return (await job.artifacts.read(file)).decode()

    async with mill.running(BRIEF):
        batch = await mill.submit(convert, [given.reference])
        results = await batch.results()
        await releases_applied(sql)
        if ending == "raise":
            assert await mill.artifacts.read(given) == b"content"
        else:
            assert results.values == ["content"]
            with pytest.raises(NotFound):
                await mill.artifacts.get(given)


async def test_a_retry_from_the_failed_stage_finds_its_inputs(
    mill: Mill, sql: psycopg.Connection[Any], given: ArtifactRecord
) -> None:
    """The first stage releases the upload and hands over what it made of it."""
    is_fixed = False

    @mill.task
    async def analyse(job: Job, file: Artifact) -> bytes:
        job.artifacts.release(file)
        if not is_fixed:
            raise Permanent("Not today.")
        return await job.artifacts.read(file)

    @mill.task
    async def convert(job: Job, file: Artifact) -> Advance:
        job.artifacts.release(file)
        return Advance(analyse, await job.artifacts.save("out.txt", b"converted"))

    async with mill.running(BRIEF):
        batch = await mill.submit(convert, [given.reference])
        assert (await batch.wait()).failed == 1
        await releases_applied(sql)
        (made,) = [file async for file in mill.artifacts.of_batch(batch.id)]
        assert (made.kind, await mill.artifacts.read(made)) == ("output", b"converted")
        is_fixed = True
        await batch.retry()
        assert (await batch.results()).values == [b"converted"]
        await releases_applied(sql)
        with pytest.raises(NotFound):
            await mill.artifacts.get(made)


async def test_what_the_result_or_the_next_payload_names_is_kept(
    mill: Mill, sql: psycopg.Connection[Any], given: ArtifactRecord
) -> None:
    @mill.task
    async def last(job: Job, file: Artifact) -> Artifact:
        job.artifacts.release(file)
        return file

    @mill.task
    async def first(job: Job, file: Artifact) -> Advance:
        job.artifacts.release(file)
        return Advance(last, file)

    async with mill.running(BRIEF):
        batch = await mill.submit(first, [given.reference])
        (kept,) = (await batch.results()).values
        await releases_applied(sql)
    assert await mill.artifacts.read(kept) == b"content"


@pytest.mark.parametrize("user", ["batch", "job"])
async def test_a_file_that_other_work_uses_is_kept(
    mill: Mill, sql: psycopg.Connection[Any], given: ArtifactRecord, gate: Gate, user: str
) -> None:
    @mill.task
    async def convert(job: Job, file: Artifact) -> None:
        job.artifacts.release(file)

    if user == "batch":
        await mill.submit(gate.task, [given.reference], delay=3_600)
    else:
        await mill.enqueue(gate.task, given.reference, delay=3_600)
    async with mill.running(BRIEF):
        batch = await mill.submit(convert, [given.reference])
        await batch.wait()
        await releases_applied(sql)
    assert await mill.artifacts.read(given) == b"content"


async def test_a_job_cannot_release_the_file_of_another_item_of_its_batch(
    mill: Mill, sql: psycopg.Connection[Any], given: ArtifactRecord
) -> None:
    """The job whose item names the file reads it after the other one has tried to release it."""
    other = await mill.artifacts.save("b.txt", b"other")

    @mill.task
    async def convert(job: Job, file: Artifact) -> str:
        job.artifacts.release(given.reference)
        if file.artifact == given.id:
            await until(lambda: one(sql, "select completed from batchmill.batches") == (1,))
        return (await job.artifacts.read(file)).decode()

    async with mill.running(BRIEF):
        batch = await mill.submit(convert, [other.reference, given.reference])
        assert (await batch.results()).values == ["other", "content"]
        await releases_applied(sql)
        with pytest.raises(NotFound):
            await mill.artifacts.get(given)


async def test_a_job_cannot_release_files_of_others(
    mill: Mill, sql: psycopg.Connection[Any], given: ArtifactRecord
) -> None:
    foreign = await mill.artifacts.save("b.txt", b"hers", tenant="ada")
    loose = await mill.artifacts.save("c.txt", b"loose")

    @mill.task
    async def convert(job: Job, ids: list[str]) -> None:
        for id in ids:
            job.artifacts.release(id)

    async with mill.running(BRIEF):
        ids = [str(record.id) for record in (given, foreign, loose)]
        await (await mill.submit(convert, [ids])).wait()
        await releases_applied(sql)
    assert states(sql) == {"kept": 3}


async def test_a_single_job_releases_its_file_and_what_it_made(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path, given: ArtifactRecord
) -> None:
    @mill.task
    async def last(job: Job, file: Artifact) -> str:
        job.artifacts.release(file)
        return (await job.artifacts.read(file)).decode()

    @mill.task
    async def first(job: Job, file: Artifact) -> Advance:
        job.artifacts.release(file)
        return Advance(last, await job.artifacts.save("made.txt", b"made"))

    async with mill.running(BRIEF):
        assert await (await mill.enqueue(first, given.reference)).result() == "made"
    await collect(dsn, files)
    assert states(sql) == {}


async def test_a_transaction_of_the_handler_releases_its_files(
    mill: Mill, sql: psycopg.Connection[Any], given: ArtifactRecord
) -> None:
    @mill.task
    async def convert(job: Job, file: Artifact) -> int:
        job.artifacts.release(file)
        async with job.transaction():
            job.complete(7)
        return 0

    async with mill.running(BRIEF):
        assert await (await mill.enqueue(convert, given.reference)).result() == 7
        await releases_applied(sql)
        with pytest.raises(NotFound):
            await mill.artifacts.get(given)


async def test_workers_continue_while_an_open_transaction_names_a_released_file(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], given: ArtifactRecord, gate: Gate
) -> None:
    @mill.task
    async def convert(job: Job, file: Artifact) -> None:
        job.artifacts.release(file)

    @mill.task
    async def plain(n: int) -> int:
        return n

    await mill.limits.set("system", slots=20)
    async with (
        mill.running(BRIEF),
        await psycopg.AsyncConnection.connect(dsn) as caller,
        asyncio.timeout(20),
    ):
        batch = await mill.submit(convert, [given.reference], delay=0.5)
        await mill.submit(gate.task, [given.reference], connection=caller)
        await batch.wait()
        assert (await (await mill.submit(plain, range(100))).results()).values == [*range(100)]
        assert await mill.artifacts.read(given) == b"content"
        await caller.rollback()
        await releases_applied(sql)
        with pytest.raises(NotFound):
            await mill.artifacts.get(given)
