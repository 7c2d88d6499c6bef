"""A batch as one ZIP file."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from tempfile import SpooledTemporaryFile
from typing import IO
from uuid import UUID

from pydantic_core import to_json

from batchmill.artifacts.storage import BLOCK, Storage
from batchmill.artifacts.zipped import Entry, EntryMaker, zipped
from batchmill.domain.artifact import ArtifactRecord
from batchmill.domain.batch import BatchRecord
from batchmill.domain.duplicate import DuplicateRecord
from batchmill.domain.job import JobRecord, JobState
from batchmill.domain.manifest import MANIFEST, describe_batch, describe_item
from batchmill.store.jobs import value_of
from batchmill.store.listing import in_order
from batchmill.store.store import Store
from batchmill.threads import in_thread

JOBS = 100
MANIFEST_IN_MEMORY = 4 * BLOCK

# An item of the batch, and its files.
Described = tuple[JobRecord | DuplicateRecord, list[ArtifactRecord]]


class Archive:
    """The files of completed jobs, and a manifest that lists every job and duplicate."""

    def __init__(self, store: Store, storage: Storage, batch: BatchRecord):
        self._store = store
        self._batch = batch
        self._maker = EntryMaker(store.artifacts, storage)
        # The names of files, for duplicates of jobs that are in the archive already.
        self._written: dict[UUID, str] = {}

    def chunks(self) -> AsyncGenerator[bytes]:
        return zipped(self._entries())

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
        entry = await self._maker.entry(record)
        if entry is not None and self._batch.duplicates:
            self._written[record.id] = entry.name
        return entry


async def _blocks(first: bytes, file: IO[bytes]) -> AsyncGenerator[bytes]:
    yield first
    while block := await in_thread(file.read, BLOCK):
        yield block
