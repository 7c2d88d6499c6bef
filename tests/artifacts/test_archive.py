"""A batch as a ZIP: its files, its manifest, and that it is created only while it is read."""

import io
import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import psycopg
import pytest

from batchmill import (
    Advance,
    Artifact,
    Batch,
    Client,
    Item,
    Job,
    Mill,
    NotFound,
    Permanent,
    StorageError,
)
from batchmill.artifacts import zipped as module
from batchmill.artifacts.storage import BLOCK, Storage
from batchmill.artifacts.zipped import Sink
from tests.library.tools import until_event


async def read_archive(mill: Client, batch: Batch) -> ZipFile:
    chunks = [chunk async for chunk in await mill.artifacts.archive(batch.id)]
    zipped = ZipFile(io.BytesIO(b"".join(chunks)))
    assert zipped.testzip() is None
    return zipped


def manifest(zipped: ZipFile) -> dict[str, Any]:
    return json.loads(zipped.read("manifest.json"))


@pytest.fixture
def make(mill: Mill) -> Any:
    @mill.task(entry=True)
    async def make(job: Job, name: str) -> Artifact:
        if name == "fails":
            raise Permanent("This one cannot be made.", code="impossible")
        return await job.artifacts.save(name, name.encode() * 100)

    return make


async def test_an_archive_has_the_files_of_all_jobs_in_order(mill: Mill, make: Any) -> None:
    names = ["report.pdf", "REPORT.pdf", "über/日本.txt", "manifest.json", "..", "a.txt"]
    async with mill.running():
        batch = await mill.submit(make, names)
        await batch.wait()
    zipped = await read_archive(mill, batch)
    expected = ["report.pdf", "REPORT (2).pdf", "日本.txt", "manifest (2).json", "file", "a.txt"]
    assert zipped.namelist() == [*expected, "manifest.json"]
    for given, name in zip(names, expected, strict=True):
        assert zipped.read(name) == given.encode() * 100
    content = manifest(zipped)
    assert [job["files"] for job in content["jobs"]] == [[name] for name in expected]
    assert [job["position"] for job in content["jobs"]] == list(range(6))
    assert content["is_complete"] and content["note"] == "The batch is complete."


async def test_the_manifest_of_a_partial_batch_has_the_errors_of_failed_jobs(
    mill: Mill, make: Any
) -> None:
    async with mill.running():
        batch = await mill.submit(make, ["a.txt", "fails", "b.txt"])
        await batch.wait()
    zipped = await read_archive(mill, batch)
    content = manifest(zipped)
    assert zipped.namelist() == ["a.txt", "b.txt", "manifest.json"]
    assert (content["state"], content["is_finished"], content["is_complete"]) == (
        "partial",
        True,
        False,
    )
    assert content["note"] == "The batch is partial: 1 of 3 jobs did not complete."
    assert content["jobs"][1]["state"] == "failed"
    assert content["jobs"][1]["error"] == {
        "code": "impossible",
        "message": "This one cannot be made.",
    }
    assert "Traceback" not in zipped.read("manifest.json").decode()


async def test_the_manifest_says_that_a_batch_is_not_finished(mill: Mill, make: Any) -> None:
    async with mill.running():
        batch = await mill.submit(make, ["a.txt", Item("b.txt", delay=3600)])
        await until_event(batch, "job_completed")
        content = manifest(await read_archive(mill, batch))
    assert (content["is_finished"], content["is_complete"]) == (False, False)
    assert content["note"] == "The batch is not finished: 1 of 2 jobs have not ended yet."
    assert [job["state"] for job in content["jobs"]] == ["completed", "scheduled"]


async def test_the_archive_of_a_batch_without_files_has_only_the_manifest(mill: Mill) -> None:
    @mill.task
    async def double(n: int) -> int:
        return 2 * n

    async with mill.running():
        batch = await mill.submit(double, range(250))
        await batch.wait()
    zipped = await read_archive(mill, batch)
    assert zipped.namelist() == ["manifest.json"]
    assert [job["result"] for job in manifest(zipped)["jobs"]] == [2 * n for n in range(250)]


async def test_an_archive_leaves_out_inputs_and_intermediate_files(mill: Mill) -> None:
    @mill.task
    async def last(job: Job, given: Artifact) -> list[Artifact]:
        await job.artifacts.save("unnamed.txt", b"by the last stage")
        return [given, await job.artifacts.save("made.txt", b"made")]

    @mill.task
    async def first(job: Job, given: Artifact) -> Advance:
        await job.artifacts.save("scratch.txt", b"by the first stage")
        return Advance(last, await job.artifacts.save("named.txt", await job.artifacts.read(given)))

    given = await mill.artifacts.save("in.txt", b"given")
    async with mill.running():
        batch = await mill.submit(first, [given.reference])
        await batch.wait()
    zipped = await read_archive(mill, batch)
    assert set(zipped.namelist()) == {"named.txt", "made.txt", "unnamed.txt", "manifest.json"}


async def test_an_archive_has_the_files_of_cached_results(mill: Mill, make: Any) -> None:
    async with mill.running():
        await (await mill.submit(make, [Item("a.txt", cache_key="a")])).wait()
        batch = await mill.submit(make, [Item("a.txt", cache_key="a")])
        await batch.wait()
    assert (await read_archive(mill, batch)).read("a.txt") == b"a.txt" * 100


async def test_a_file_of_another_tenant_is_not_packed_even_if_a_result_names_it(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    foreign = await mill.artifacts.save("secret.txt", b"secret", tenant="bob")
    sql.execute("update batchmill.artifacts set kind = 'output', fence = -1")

    @mill.task
    async def name() -> Artifact:
        return foreign.reference

    async with mill.running():
        batch = await mill.submit(name, [None], tenant="ada")
        await batch.wait()
    assert (await read_archive(mill, batch)).namelist() == ["manifest.json"]


async def test_a_tenant_can_archive_only_its_own_batches(mill: Mill, make: Any) -> None:
    async with mill.running():
        ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
        batch = await ada.submit(make, ["a.txt"])
        await batch.wait()
        assert (await read_archive(ada, batch)).namelist() == ["a.txt", "manifest.json"]
        for id in (batch.id, UUID(int=7), "nonsense"):
            with pytest.raises(NotFound):
                await bob.artifacts.archive(id)


async def test_only_compressible_types_are_compressed(mill: Mill, make: Any) -> None:
    async with mill.running():
        batch = await mill.submit(make, ["a.txt", "b.json", "c.png", "d.zip", "e.unknown"])
        await batch.wait()
    zipped = await read_archive(mill, batch)
    kinds = [info.compress_type for info in zipped.infolist()]
    assert kinds == [ZIP_DEFLATED, ZIP_DEFLATED, ZIP_STORED, ZIP_STORED, ZIP_STORED, ZIP_DEFLATED]


async def test_an_archive_can_be_made_from_every_storage(dsn: str, storage: Storage) -> None:
    content = os.urandom(3 * BLOCK + 5)
    async with Mill(dsn, artifacts=storage) as mill:

        @mill.task
        async def make(job: Job, name: str) -> Artifact:
            return await job.artifacts.save(name, content)

        async with mill.running():
            batch = await mill.submit(make, ["a.bin", "a.bin"])
            await batch.wait()
        zipped = await read_archive(mill, batch)
    assert zipped.read("a.bin") == zipped.read("a (2).bin") == content


async def test_unzip_can_read_an_archive(mill: Mill, make: Any, tmp_path: Path) -> None:
    if not (unzip := shutil.which("unzip")):
        pytest.skip("unzip is not installed.")
    async with mill.running():
        batch = await mill.submit(make, ["a.txt", "b.png"])
        await batch.wait()
    path = tmp_path / "batch.zip"
    with path.open("wb") as file:
        async for chunk in await mill.artifacts.archive(batch.id):
            file.write(chunk)
    assert subprocess.run([unzip, "-t", path], capture_output=True).returncode == 0


async def test_large_files_use_zip64(
    mill: Mill, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGE", 100)
    async with mill.running():
        batch = await mill.submit(make, ["large.png"])
        await batch.wait()
    zipped = await read_archive(mill, batch)
    (info, _) = zipped.infolist()
    assert info.extract_version >= 45 and zipped.read("large.png") == b"large.png" * 100


async def test_a_file_deleted_during_the_download_is_listed_as_missing(
    mill: Mill, make: Any
) -> None:
    async with mill.running():
        batch = await mill.submit(make, ["a.txt", "b.txt"])
        results = await batch.results()
    chunks = await mill.artifacts.archive(batch.id)
    real = mill.engine.storage.read

    async def read(key: str, start: int, end: int) -> Any:
        if str(results.values[1].artifact) in key:
            await mill.artifacts.delete(results.values[1])
        return await real(key, start, end)

    mill.engine.storage.read = read  # pyright: ignore
    zipped = ZipFile(io.BytesIO(b"".join([chunk async for chunk in chunks])))
    assert zipped.namelist() == ["a.txt", "manifest.json"]
    assert manifest(zipped)["jobs"][1]["missing"] == ["b.txt"]


async def test_a_storage_error_aborts_the_archive(mill: Mill, make: Any, files: Path) -> None:
    """The reader must notice: a partial archive must not look complete."""
    async with mill.running():
        batch = await mill.submit(make, ["a.txt", "b.txt"])
        results = await batch.results()
    record = await mill.artifacts.get(results.values[1])
    (files / record.storage_key).unlink()
    with pytest.raises(StorageError):
        await read_archive(mill, batch)


async def test_an_archive_stops_when_its_reader_disconnects(mill: Mill, files: Path) -> None:
    @mill.task
    async def make(job: Job, n: int) -> Artifact:
        return await job.artifacts.save("a.bin", os.urandom(4 * BLOCK))

    async with mill.running():
        batch = await mill.submit(make, range(5))
        await batch.wait()
    opened: list[str] = []
    real = mill.engine.storage.read

    async def read(key: str, start: int, end: int) -> Any:
        opened.append(key)
        return await real(key, start, end)

    mill.engine.storage.read = read  # pyright: ignore
    async with aclosing(await mill.artifacts.archive(batch.id)) as chunks:
        assert len(await anext(chunks)) >= BLOCK
    assert len(opened) == 1
    assert not [path for path in open_files() if path.startswith(str(files))]


def open_files() -> list[str]:
    return [str(link.resolve()) for link in Path("/proc/self/fd").iterdir()]


def test_the_sink_is_not_seekable() -> None:
    sink = Sink()
    assert not hasattr(sink, "seek") and not hasattr(sink, "tell")
    sink.write(b"ab")
    sink.write(b"c")
    assert (sink.size, sink.take(), sink.size) == (3, b"abc", 0)


async def test_an_archive_has_the_files_of_jobs_that_its_duplicates_name(
    mill: Mill, make: Any
) -> None:
    """A file that is in the archive already is not added again."""
    first = await mill.submit(make, [Item("a.txt", dedup_key="a")])
    keys = {"a": "a", "b.txt": "b", "b": "b", "fails": "f", "f": "f"}
    items = [Item(name, dedup_key=key) for name, key in keys.items()]
    second = await mill.submit(make, items)
    async with mill.running():
        await first.wait()
        await second.wait()
    zipped = await read_archive(mill, second)
    assert zipped.namelist() == ["a.txt", "b.txt", "manifest.json"]
    content = manifest(zipped)
    a, b, same_b, fails, same_f = content["jobs"]
    (made,) = [job async for job in first.jobs()]
    assert a["duplicate_of"] == {"job": made.id, "batch": str(first.id)} and "job" not in a
    assert (a["files"], b["files"], same_b["files"]) == (["a.txt"], ["b.txt"], ["b.txt"])
    assert same_b["duplicate_of"] == {"job": b["job"], "batch": str(second.id)}
    assert (same_f["state"], same_f["error"]["code"]) == ("failed", fails["error"]["code"])
    assert (content["total"], content["duplicates"], content["is_complete"]) == (2, 3, False)
    assert content["note"].endswith(" Duplicates of jobs that have not completed: 1.")


async def test_an_archive_with_complete_duplicates_is_complete(mill: Mill, make: Any) -> None:
    first = await mill.submit(make, [Item("a.txt", dedup_key="a")])
    second = await mill.submit(make, [Item("a.txt", dedup_key="a")])
    assert not manifest(await read_archive(mill, second))["is_complete"]
    async with mill.running():
        await first.wait()
    zipped = await read_archive(mill, second)
    assert manifest(zipped)["is_complete"] and zipped.read("a.txt") == b"a.txt" * 100
    await first.delete()
    (gone,) = manifest(await read_archive(mill, second))["jobs"]
    assert (gone["state"], gone["files"]) == ("gone", [])


# Chosen files


async def read_zip(chunks: AsyncGenerator[bytes]) -> ZipFile:
    zipped = ZipFile(io.BytesIO(b"".join([chunk async for chunk in chunks])))
    assert zipped.testzip() is None
    return zipped


async def test_a_zip_has_files_of_several_batches_under_safe_and_distinct_names(
    mill: Mill, make: Any
) -> None:
    async with mill.running():
        batches = [await mill.submit(make, [name]) for name in ("a.txt", "b.txt")]
        made = [(await batch.results()).values[0] for batch in batches]
    given = await mill.artifacts.save("c.txt", b"given")
    files = [(made[0], "../../x.txt"), (made[1], "X.txt"), (given, "manifest.json"), (given.id, "")]
    zipped = await read_zip(await mill.artifacts.zip(files, lambda names: {"names": names}))
    names = ["x.txt", "X (2).txt", "manifest (2).json", "c.txt"]
    assert zipped.namelist() == [*names, "manifest.json"]
    assert manifest(zipped) == {"names": names}
    assert zipped.read("X (2).txt") == b"b.txt" * 100
    assert zipped.read("c.txt") == b"given"


async def test_a_zip_leaves_out_files_that_do_not_exist_and_says_so(mill: Mill) -> None:
    kept = await mill.artifacts.save("kept.txt", b"kept", tenant="ada")
    gone = await mill.artifacts.save("gone.txt", b"gone", tenant="ada")
    other = await mill.artifacts.save("other.txt", b"other", tenant="bob")
    await mill.artifacts.delete(gone)
    files = [(file, file.name) for file in (gone, kept, other)]
    zipped = await read_zip(await mill.as_tenant("ada").artifacts.zip(files, list))
    assert zipped.namelist() == ["kept.txt", "manifest.json"]
    assert manifest(zipped) == [None, "kept.txt", None]


async def test_a_zip_of_nothing_has_the_manifest(mill: Mill) -> None:
    zipped = await read_zip(await mill.artifacts.zip([], lambda names: {"files": names}))
    assert manifest(zipped) == {"files": []}
