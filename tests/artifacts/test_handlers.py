"""Files in handlers: on the event loop, in threads and in child processes."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import (
    Advance,
    Artifact,
    ArtifactRecord,
    Job,
    JobCancelled,
    JobFailed,
    LeaseLost,
    Mill,
    NotFound,
    Permanent,
    Quota,
    Retry,
    Snooze,
    SyncJob,
    Transient,
    WorkerOptions,
)
from tests.artifacts import heavy
from tests.artifacts.tools import (
    ManualSource,
    all_violations,
    chunks,
    collect,
    has_content,
    nothing_is_left,
    states,
)
from tests.invariants import files_in
from tests.library.tools import one, until

ONCE = Retry(attempts=1)
QUICK = Retry(attempts=3, base=0, jitter=0)
BRIEF = WorkerOptions(patience=0.2, lease=3, processes=2)
TEXT = b"what was given"
WHERE = pytest.mark.parametrize("where", ["loop", "thread", "process"])


@pytest.fixture(autouse=True)
def check_invariants(sql: psycopg.Connection[Any], files: Path) -> Any:
    yield
    assert all_violations(sql, files) == []


@pytest.fixture
async def given(mill: Mill) -> ArtifactRecord:
    return await mill.artifacts.save("in.txt", TEXT)


def copies_on(mill: Mill, where: str) -> Any:
    """A task that saves its input three times: from bytes, from a path and from chunks."""

    @mill.task(name="copies_on_loop")
    async def on_loop(job: Job, given: Artifact) -> list[Artifact]:
        text = await job.artifacts.read(given)
        assert b"".join([chunk async for chunk in job.artifacts.chunks(given)]) == text
        made = await job.artifacts.folder() / "made.txt"
        made.write_bytes(text)
        return [
            await job.artifacts.save("bytes.txt", text),
            await job.artifacts.save("path.txt", made),
            await job.artifacts.save("chunks.txt", chunks(text[:3], text[3:])),
        ]

    @mill.task(name="copies_in_thread")
    def in_thread(job: SyncJob, given: Artifact) -> list[Artifact]:
        return heavy.copies.function(job, given)

    mill.tasks.update(heavy.mill.tasks)
    return {"loop": on_loop, "thread": in_thread, "process": heavy.copies}[where]


@WHERE
async def test_files_of_a_handler_count_against_the_quota_of_its_tenant(
    mill: Mill, where: str, sql: psycopg.Connection[Any]
) -> None:
    """The error is permanent, because a retry does not free storage."""

    @mill.task(name="fills_on_loop")
    async def on_loop(job: Job, size: int) -> Artifact:
        return await job.artifacts.save("full.bin", bytes(size))

    @mill.task(name="fills_in_thread")
    def in_thread(job: SyncJob, size: int) -> Artifact:
        return heavy.fills.function(job, size)

    mill.tasks.update(heavy.mill.tasks)
    task = {"loop": on_loop, "thread": in_thread, "process": heavy.fills}[where]
    await mill.keys.set_quota(Quota(tenant="ada", storage_bytes=10_000_000))
    async with mill.running(BRIEF):
        too_large = await mill.submit(task, [20_000_000], tenant="ada")
        (failed,) = (await too_large.results()).failed
        right = await mill.submit(task, [9_000_000], tenant="ada")
        (made,) = (await right.results()).values
    assert failed.error is not None
    assert (failed.error.code, failed.attempt) == ("storage_exceeded", 1)
    assert made.size == 9_000_000
    assert one(sql, "select stored_bytes from batchmill.usage") == (9_000_000,)


@WHERE
async def test_a_handler_reads_and_saves_files_wherever_it_runs(
    mill: Mill, given: ArtifactRecord, where: str
) -> None:
    task = copies_on(mill, where)
    async with mill.running(BRIEF):
        batch = await mill.submit(task, [given.reference] * 2)
        results = await batch.results()
    assert results.failed == []
    for made in results.values:
        assert [each.name for each in made] == ["bytes.txt", "path.txt", "chunks.txt"]
        for each in made:
            record = await mill.artifacts.get(each)
            assert has_content(record, TEXT) and record.reference == each
            assert (record.batch_id, record.kind) == (batch.id, "output")
            assert await mill.artifacts.read(each) == TEXT
    outputs = [record async for record in mill.artifacts.of_batch(batch.id, kind="output")]
    assert len(outputs) == 6
    job_id = outputs[0].job_id
    assert job_id is not None and len(await mill.artifacts.of_job(job_id)) == 3


@WHERE
async def test_the_folder_of_an_attempt_is_removed_after_it(
    mill: Mill, given: ArtifactRecord, where: str
) -> None:
    @mill.task(name="folder_of_on_loop")
    async def on_loop(job: Job, given: Artifact) -> str:
        path = await job.artifacts.path(given)
        assert path.read_bytes() == TEXT and await job.artifacts.path(given) == path
        assert path.name == given.name and path.is_relative_to(await job.artifacts.folder())
        return str(await job.artifacts.folder())

    @mill.task(name="folder_of_in_thread")
    def in_thread(job: SyncJob, given: Artifact) -> str:
        return heavy.folder_of.function(job, given)

    mill.tasks.update(heavy.mill.tasks)
    task = {"loop": on_loop, "thread": in_thread, "process": heavy.folder_of}[where]
    async with mill.running(BRIEF):
        folder = Path(await (await mill.enqueue(task, given.reference)).result())
        await until(lambda: not folder.exists())


async def code_of(job: Any) -> str:
    with pytest.raises(JobFailed) as failure:
        await job.result()
    return failure.value.error_code


@WHERE
async def test_a_handler_cannot_read_a_file_of_another_tenant(mill: Mill, where: str) -> None:
    @mill.task(name="reads_on_loop", retry=QUICK)
    async def on_loop(job: Job, id: str) -> bytes:
        return await job.artifacts.read(id)

    @mill.task(name="reads_in_thread", retry=QUICK)
    def in_thread(job: SyncJob, id: str) -> bytes:
        return job.artifacts.read(id)

    mill.tasks.update(heavy.mill.tasks)
    task = {"loop": on_loop, "thread": in_thread, "process": heavy.reads}[where]
    foreign = await mill.artifacts.save("b", b"secret", tenant="bob")
    async with mill.running(BRIEF):
        for id in (str(foreign.id), "no-such-file"):
            job = await mill.enqueue(task, id, tenant="ada")
            assert await code_of(job) == "not_found"
            assert (await job.get()).attempt == 1


async def test_a_child_process_continues_after_a_refusal(mill: Mill) -> None:
    mill.tasks.update(heavy.mill.tasks)
    async with mill.running(BRIEF):
        job = await mill.enqueue(heavy.catches_not_found, "no-such-file")
        assert await job.result() == 'There is no artifact "no-such-file".'
        assert (
            await code_of(await mill.enqueue(heavy.saves_path, "/no/such/path")) == "invalid_input"
        )


@pytest.mark.parametrize("how", ["fails", "retries", "snoozes"])
async def test_files_of_an_unsuccessful_attempt_are_collected(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path, how: str
) -> None:
    keys: list[str] = []

    @mill.task(retry=QUICK)
    async def make(job: Job) -> Artifact | Snooze:
        made = await job.artifacts.save("out.txt", b"try")
        keys.extend(path.name for path in files_in(files) if path.name not in keys)
        if how == "fails":
            raise Permanent("never")
        if job.attempt + job.snoozes == 1:
            if how == "retries":
                raise Transient("not yet")
            return Snooze(0)
        return made

    async with mill.running():
        job = await mill.enqueue(make)
        if how == "fails":
            assert await code_of(job) == "permanent"
        else:
            assert await mill.artifacts.read(await job.result()) == b"try"
            assert len(keys) == 2 and keys[0] != keys[1]
    await collect(dsn, files)
    left = states(sql)
    assert left == ({} if how == "fails" else {"kept": 1})
    assert len(list(files_in(files))) == len(left)


async def test_a_stage_reads_a_file_of_the_previous_stage(mill: Mill) -> None:
    @mill.task
    async def second(job: Job, given: Artifact) -> bytes:
        return await job.artifacts.read(given)

    @mill.task
    async def first(job: Job) -> Advance:
        return Advance(second, await job.artifacts.save("a", b"from the first"))

    async with mill.running():
        assert await (await mill.enqueue(first)).result() == b"from the first"


async def test_only_the_attempt_can_read_its_files_before_it_ends(mill: Mill) -> None:
    @mill.task(retry=ONCE)
    async def make(job: Job) -> bytes:
        made = await job.artifacts.save("a", b"mine")
        with pytest.raises(NotFound):
            await mill.artifacts.get(made)
        return await job.artifacts.read(made)

    async with mill.running():
        assert await (await mill.enqueue(make)).result() == b"mine"


@pytest.mark.parametrize("commits", [True, False])
async def test_a_transaction_keeps_files_only_if_it_commits(
    mill: Mill, sql: psycopg.Connection[Any], commits: bool
) -> None:
    sql.execute("create table receipt (artifact uuid)")

    @mill.task(retry=ONCE)
    async def make(job: Job) -> Artifact | None:
        made = await job.artifacts.save("a", b"x")
        async with job.transaction() as conn:
            await conn.execute("insert into receipt values (%s)", [made.artifact])
            job.complete(made)
            if not commits:
                raise Permanent("after all")

    async with mill.running():
        job = await mill.enqueue(make)
        if not commits:
            assert await code_of(job) == "permanent"
            assert states(sql) in ({"gone": 1}, {})
        else:
            made = await job.result()
            assert one(sql, "select artifact from receipt") == (made.artifact,)
            assert await mill.artifacts.read(made) == b"x"


async def test_a_checkpoint_keeps_its_file_for_the_next_attempt(mill: Mill) -> None:
    fetched = 0

    @mill.task(retry=QUICK)
    async def read(job: Job) -> bytes:
        async def fetch() -> Artifact:
            nonlocal fetched
            fetched += 1
            return await job.artifacts.save("a.pdf", b"paid for")

        pdf = await job.once("fetch", fetch, Artifact)
        if job.attempt < 3:
            raise Transient("not yet")
        return await job.artifacts.read(pdf)

    async with mill.running():
        assert await (await mill.enqueue(read)).result() == b"paid for"
    assert fetched == 1


class Writer:
    """A task whose file stays partly written until the test sends the rest."""

    def __init__(self, mill: Mill):
        self.source = ManualSource()
        self.attempts = 0

        @mill.task(retry=QUICK)
        async def write(job: Job) -> Artifact:
            self.attempts += 1
            first = job.attempt == 1
            return await job.artifacts.save(
                "a", self.source.chunks() if first else chunks(b"again")
            )

        self.task = write

    async def until_halfway(self) -> None:
        self.source.send(bytes(2_000_000))
        await until(lambda: self.attempts)
        await self.source.drained()


@pytest.mark.parametrize("how", ["cancelled", "released"])
async def test_an_attempt_that_is_interrupted_while_it_writes_leaves_nothing(
    mill: Mill, sql: psycopg.Connection[Any], files: Path, how: str
) -> None:
    writer = Writer(mill)
    async with mill.running(WorkerOptions(grace=0, patience=5)):
        job = await mill.enqueue(writer.task)
        await writer.until_halfway()
        assert states(sql) == {"writing": 1}
        if how == "cancelled":
            await job.cancel()
            with pytest.raises(JobCancelled):
                await job.result()
    assert nothing_is_left(sql, files)


async def test_an_attempt_that_loses_its_lease_while_it_writes_leaves_nothing(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path
) -> None:
    writer = Writer(mill)
    async with mill.running(BRIEF):
        job = await mill.enqueue(writer.task)
        await writer.until_halfway()
        sql.execute("update batchmill.workers set state = 'lost'")
        made = await job.result()
        assert await mill.artifacts.read(made) == b"again"
    assert writer.attempts == 2
    assert states(sql) == {"kept": 1} and len(list(files_in(files))) == 1


async def test_a_thread_that_lost_its_lease_cannot_save_files(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    resume, refused = threading.Event(), threading.Event()

    @mill.task(retry=QUICK)
    def make(job: SyncJob) -> Artifact:
        if job.attempt == 1:
            resume.wait()
            try:
                job.artifacts.save("late", b"late")
            except LeaseLost:
                refused.set()
                raise
        return job.artifacts.save("in time", b"in time")

    async with mill.running(BRIEF):
        job = await mill.enqueue(make)
        await until(
            lambda: one(sql, "select count(*) from batchmill.jobs where state = 'running'") == (1,)
        )
        sql.execute("update batchmill.workers set state = 'lost'")
        assert await mill.artifacts.read(await job.result()) == b"in time"
        resume.set()
        await asyncio.to_thread(refused.wait)
    assert states(sql) == {"kept": 1} and len(list(files_in(files))) == 1


async def test_a_file_that_the_handler_does_not_await_is_not_kept(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    source, saving = ManualSource(), []

    @mill.task
    async def careless(job: Job) -> str:
        saving.append(asyncio.create_task(job.artifacts.save("a", source.chunks())))
        await source.drained()
        return "done"

    async with mill.running():
        assert await (await mill.enqueue(careless)).result() == "done"
        source.send(b"too late", None)
        with pytest.raises(LeaseLost):
            await saving[0]
    assert nothing_is_left(sql, files)


async def test_all_files_of_a_large_batch_are_kept(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    @mill.task
    async def make(job: Job, n: int) -> Artifact | None:
        return await job.artifacts.save(f"{n}.txt", str(n).encode()) if n % 5 == 0 else None

    async with mill.running():
        batch = await mill.submit(make, range(1000))
        values = (await batch.results()).values
    assert states(sql) == {"kept": 200}
    for n in range(0, 1000, 95):
        assert await mill.artifacts.read(values[n]) == str(n).encode()
