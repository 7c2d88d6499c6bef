"""The files of a mill: storing, reading and deleting them."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from uuid import UUID

from batchmill.artifacts.archive import Archive
from batchmill.artifacts.sources import Source, chunks_of
from batchmill.artifacts.upload import Bounds, Upload, remove
from batchmill.artifacts.zipped import Manifest, chosen_files, zipped
from batchmill.domain.artifact import (
    Artifact,
    ArtifactKind,
    ArtifactRecord,
    artifact_id,
    checked_type,
    safe_name,
)
from batchmill.domain.batch import parse_batch_id
from batchmill.engine import Engine
from batchmill.errors import InvalidInput, StorageError
from batchmill.store.store import Store

log = logging.getLogger("batchmill.artifacts")

HOUR = 3_600.0

Which = Artifact | ArtifactRecord | UUID | str


class ArtifactControls:
    """An uploaded file is kept for a day, or as long as a batch whose payloads name it."""

    def __init__(self, engine: Engine, store: Store, tenant: str | None):
        self._engine = engine
        self._store = store
        self._tenant = tenant

    async def save(
        self,
        name: str,
        source: Source,
        *,
        media_type: str | None = None,
        tenant: str | None = None,
        size: int | None = None,
        at_most: int | None = None,
        quota: int | None = None,
    ) -> ArtifactRecord:
        """Stores a file from bytes, a path or async chunks. The file is durable when this returns.

        All sizes are in bytes: `size` is the announced size, `at_most` the limit for this file, and
        `quota` the limit for all files of the tenant together. The tenant's own quota always
        applies too.
        """
        bounds = Bounds(size, at_most, quota)
        name = safe_name(name)
        kind = checked_type(media_type, name)
        async with chunks_of(source) as chunks:
            await self._engine.open()
            owner = tenant or self._tenant or "default"
            upload = Upload(self._store.artifacts, self._engine.storage, bounds)
            return await upload.input(chunks, owner, name, kind)

    async def get(self, which: Which) -> ArtifactRecord:
        id = artifact_id(which)
        await self._engine.open()
        return await self._store.artifacts.get(id)

    async def open(
        self, which: Which, start: int | None = None, end: int | None = None
    ) -> AsyncGenerator[bytes]:
        """The bytes from `start` up to `end`: `async for chunk in await artifacts.open(id)`."""
        return await self.open_record(await self.get(which), start, end)

    async def open_record(
        self, record: ArtifactRecord, start: int | None = None, end: int | None = None
    ) -> AsyncGenerator[bytes]:
        """Like `open`, for a caller that has just read the record: it checks nothing again."""
        part = range(record.size)[start:end]
        return await self._engine.storage.read(record.storage_key, part.start, part.stop)

    async def read(self, which: Which) -> bytes:
        """The whole file at once, for files that fit into memory."""
        return b"".join([chunk async for chunk in await self.open(which)])

    async def delete(self, which: Which) -> None:
        """Refused while an unfinished batch needs the file."""
        id = artifact_id(which)
        await self._engine.open()
        place = await self._store.artifacts.delete(id)
        try:
            await remove(self._store.artifacts, self._engine.storage, [place])
        except StorageError as error:
            log.warning(
                "Artifact %s is deleted, but its file is not; the upkeep removes it later: %s",
                id,
                error,
            )

    async def of_batch(
        self, batch_id: UUID | str, *, kind: ArtifactKind | str | None = None
    ) -> AsyncIterator[ArtifactRecord]:
        """The input files of the batch and the files that its jobs made, or only one `kind`."""
        if kind is not None and kind not in list(ArtifactKind):
            raise InvalidInput(f'kind must be {" or ".join(ArtifactKind)}, not "{kind}".')
        id = parse_batch_id(batch_id)
        await self._engine.open()
        async for record in self._store.artifacts.of_batch(id, kind):
            yield record

    async def of_job(self, job_id: int) -> list[ArtifactRecord]:
        """The files that a job made and kept, in all its stages."""
        await self._engine.open()
        return await self._store.artifacts.of_job(job_id)

    async def archive(self, batch_id: UUID | str) -> AsyncGenerator[bytes]:
        """A ZIP of the files of all completed jobs, in chunks, with a manifest inside."""
        id = parse_batch_id(batch_id)
        await self._engine.open()
        batch = await self._store.batches.get(id)
        return Archive(self._store, self._engine.storage, batch).chunks()

    async def zip(
        self, files: Iterable[tuple[Which, str]], manifest: Manifest
    ) -> AsyncGenerator[bytes]:
        """A ZIP of these files in chunks, each under the given name. Names are made safe and
        distinct. When all files are read, `manifest` gets their names in the ZIP, or None for a
        file that was deleted meanwhile. What it returns is stored as JSON, in `manifest.json`."""
        chosen = [(artifact_id(which), name) for which, name in files]
        await self._engine.open()
        return zipped(chosen_files(self._store.artifacts, self._engine.storage, chosen, manifest))

    async def url(self, which: Which, expires_in: float = HOUR) -> str | None:
        """A URL at the object store that lets anyone read the file for `expires_in` seconds. None
        on a local disk, which clients can reach only through a server."""
        return await self.url_of_record(await self.get(which), expires_in)

    async def url_of_record(self, record: ArtifactRecord, expires_in: float = HOUR) -> str | None:
        return await self._engine.storage.signed_url(record.storage_key, expires_in)

    async def count_download(self, which: Which) -> None:
        await self._engine.open()
        await self._store.artifacts.count_download(artifact_id(which))
