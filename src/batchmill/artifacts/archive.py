"""A batch as one ZIP file, created while the client reads it. It stops when the client stops."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from tempfile import SpooledTemporaryFile
from typing import IO
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from pydantic_core import to_json

from batchmill.artifacts.storage import BLOCK, Storage
from batchmill.domain.artifact import ArtifactRecord
from batchmill.domain.batch import BatchRecord
from batchmill.domain.duplicate import DuplicateRecord
from batchmill.domain.job import JobRecord, JobState
from batchmill.domain.manifest import MANIFEST, Names, describe_batch, describe_item, is_loose
from batchmill.errors import NotFound, StorageError
from batchmill.store.jobs import value_of
from batchmill.store.listing import in_order
from batchmill.store.store import Store
from batchmill.threads import in_thread

JOBS = 100
MANIFEST_IN_MEMORY = 4 * BLOCK
# zipfile must know in advance that an entry may exceed 4 GB. Compression can enlarge an entry.
LARGE = 2**31

# An item of the batch, and its files.
Described = tuple[JobRecord | DuplicateRecord, list[ArtifactRecord]]


class Sink:
    """An output stream without seek, as zipfile accepts it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = 0

    def write(self, data: bytes) -> int:
        self._pieces.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        taken = b"".join(self._pieces)
        self._pieces, self.size = [], 0
        return taken


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    made_at: datetime
    is_loose: bool
    size: int
    blocks: AsyncGenerator[bytes]

    @property
    def info(self) -> ZipInfo:
        info = ZipInfo(self.name, self.made_at.astimezone(UTC).timetuple()[:6])
        info.compress_type = ZIP_DEFLATED if self.is_loose else ZIP_STORED
        info.external_attr = 0o644 << 16
        return info


class Archive:
    """The files of completed jobs, and a manifest that lists every job and duplicate. Memory use
    does not grow with the size of the files."""

    def __init__(self, store: Store, storage: Storage, batch: BatchRecord):
        self._store = store
        self._storage = storage
        self._batch = batch
        self._names = Names(MANIFEST)
        # The names of files, for duplicates of jobs that are in the archive already.
        self._written: dict[UUID, str] = {}

    async def chunks(self) -> AsyncGenerator[bytes]:
        sink = Sink()
        async with aclosing(self._entries()) as entries:
            with ZipFile(sink, "w") as archive:  # pyright: ignore
                async for entry in entries:
                    async with aclosing(entry.blocks) as blocks:
                        with archive.open(entry.info, "w", force_zip64=entry.size > LARGE) as file:
                            async for block in blocks:
                                await in_thread(file.write, block)
                                if sink.size >= BLOCK:
                                    yield sink.take()
        yield sink.take()

    async def _entries(self) -> AsyncGenerator[Entry]:
        with SpooledTemporaryFile(MANIFEST_IN_MEMORY) as manifest:
            separator, complete_duplicates = b"\n", 0
            async for item, files in self._items():
                names, missing = [], []
                is_duplicate = isinstance(item, DuplicateRecord)
                complete_duplicates += is_duplicate and item.state == JobState.COMPLETED
                for record in files:
                    if is_duplicate and record.id in self._written:
                        names.append(self._written[record.id])
                    elif entry := await self._entry(record):
                        names.append(entry.name)
                        yield entry
                    else:
                        missing.append(record.name)
                line = to_json(describe_item(item, names, missing))
                await in_thread(manifest.write, separator + line)
                separator = b",\n"
            manifest.write(b"\n]}\n")
            size = manifest.tell()
            manifest.seek(0)
            batch = to_json(describe_batch(self._batch, complete_duplicates))[:-1] + b',"jobs":['
            blocks = _blocks(batch, manifest)
            yield Entry(MANIFEST, datetime.now(UTC), True, len(batch) + size, blocks)

    def _items(self) -> AsyncIterator[Described]:
        """Jobs and duplicates in the order of submission, with the files of each."""
        return in_order(self._jobs(), self._duplicates(), lambda found: found[0].position)

    async def _jobs(self) -> AsyncIterator[Described]:
        async for page in self._store.jobs.pages_of_batch(self._batch.id, JOBS):
            found = await self._store.artifacts.of_results(
                self._batch.id, [job.position for job in page]
            )
            for job in page:
                yield job, found.get(job.position, [])

    async def _duplicates(self) -> AsyncIterator[Described]:
        batch = self._batch
        async for page in self._store.duplicates.pages_of_batch(batch.id, batch.duplicates, JOBS):
            found = await self._store.artifacts.of_duplicates(
                batch.id, [item.position for item in page]
            )
            for item in page:
                yield replace(item, result=value_of(item.result)), found.get(item.position, [])

    async def _entry(self, record: ArtifactRecord) -> Entry | None:
        """Returns None for a file that was deleted meanwhile. Any other error ends the archive."""
        try:
            blocks = await self._storage.read(record.storage_key, 0, record.size)
        except StorageError:
            if await self._is_there(record):
                raise
            return None
        name, loose = self._names.take(record.name), is_loose(record.media_type)
        if self._batch.duplicates:
            self._written[record.id] = name
        return Entry(name, record.created_at, loose, record.size, blocks)

    async def _is_there(self, record: ArtifactRecord) -> bool:
        try:
            await self._store.artifacts.get(record.id)
        except NotFound:
            return False
        return True


async def _blocks(first: bytes, file: IO[bytes]) -> AsyncGenerator[bytes]:
    yield first
    while block := await in_thread(file.read, BLOCK):
        yield block
