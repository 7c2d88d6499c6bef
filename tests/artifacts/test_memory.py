"""Large files are saved, read and archived with bounded memory."""

import subprocess
import sys
from pathlib import Path

import pytest

# In megabytes: buffers, threads and the interpreter. A file in memory would take much more.
MAX_GROWTH = 50

PROGRAM = """
import asyncio, hashlib, os, resource, sys
from batchmill import Artifact, Job, Mill

MEGABYTE = os.urandom(1024 * 1024)
mill = Mill(sys.argv[1], artifacts=sys.argv[2])

async def chunks(count):
    for _ in range(count):
        yield MEGABYTE

@mill.task
async def copy(job: Job, given: Artifact) -> Artifact:
    return await job.artifacts.save("copy.bin", job.artifacts.chunks(given))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

async def all_of(count):
    given = await mill.artifacts.save("in.bin", chunks(count))
    batch = await mill.submit(copy, [given.reference])
    (made,) = (await batch.results()).values
    assert made.size == count * len(MEGABYTE)
    digest = hashlib.sha256()
    async for chunk in await mill.artifacts.open(made):
        digest.update(chunk)
    assert digest.hexdigest() == made.sha256 == given.sha256
    packed = 0
    async for chunk in await mill.artifacts.archive(batch.id):
        packed += len(chunk)
    assert packed > made.size

async def main():
    async with mill.running():
        await all_of(40)
        before = peak()
        await all_of(int(sys.argv[3]))
        print(peak() - before)

asyncio.run(main())
"""


@pytest.mark.parametrize("server", ["pg18"], indirect=True)
@pytest.mark.parametrize(("where", "megabytes"), [("local", 300), ("objects", 100)])
def test_memory_does_not_grow_with_the_size_of_files(
    where: str, megabytes: int, dsn: str, files: Path, request: pytest.FixtureRequest
) -> None:
    store = str(files) if where == "local" else request.getfixturevalue("objects")
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, dsn, store, str(megabytes)],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < MAX_GROWTH
