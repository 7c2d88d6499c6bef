"""Tasks in child processes that read and save files. The child processes import this module."""

from pathlib import Path

from batchmill import Advance, Artifact, LeaseLost, Mill, NotFound, Retry, SyncJob

mill = Mill("postgresql://nowhere")
ONCE = Retry(attempts=1)


@mill.task(process=True, retry=ONCE)
def copies(job: SyncJob, given: Artifact) -> list[Artifact]:
    text = job.artifacts.read(given)
    assert b"".join(job.artifacts.chunks(given)) == text
    made = job.artifacts.folder() / "made.txt"
    made.write_bytes(text)
    return [
        job.artifacts.save("bytes.txt", text),
        job.artifacts.save("path.txt", made),
        job.artifacts.save("chunks.txt", (text[at : at + 1] for at in range(len(text)))),
    ]


@mill.task(process=True)
def folder_of(job: SyncJob, given: Artifact) -> str:
    path = job.artifacts.path(given)
    assert path.name == given.name and path.is_relative_to(job.artifacts.folder())
    return str(job.artifacts.folder())


@mill.task(process=True, retry=ONCE)
def reads(job: SyncJob, id: str) -> bytes:
    return job.artifacts.read(id)


@mill.task(process=True)
def fills(job: SyncJob, size: int) -> Artifact:
    return job.artifacts.save("full.bin", bytes(size))


@mill.task(process=True, retry=ONCE)
def saves_path(job: SyncJob, path: str) -> Artifact:
    return job.artifacts.save("out", Path(path))


@mill.task(process=True)
def catches_not_found(job: SyncJob, id: str) -> str:
    try:
        job.artifacts.read(id)
    except NotFound as error:
        return str(error)
    raise LeaseLost("unreachable")


@mill.task(process=True)
def releases(job: SyncJob, file: Artifact) -> Advance:
    assert job.artifacts.read(file) == b"content"
    job.artifacts.release(file)
    return Advance("wait", 1)
