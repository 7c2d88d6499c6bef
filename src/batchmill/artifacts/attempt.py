"""The files that one attempt reads and saves."""

import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from uuid import UUID

from batchmill.artifacts.sources import Source, chunks_of
from batchmill.artifacts.storage import Storage
from batchmill.artifacts.upload import Upload
from batchmill.domain.artifact import (
    Artifact,
    ArtifactRecord,
    artifact_id,
    checked_type,
    safe_name,
)
from batchmill.domain.job import Claim
from batchmill.store.artifacts import ArtifactStore
from batchmill.threads import in_thread, start_in_thread


class JobArtifacts:
    """Files that an attempt saves are kept only if it completes or advances to its next stage. An
    attempt can read its tenant's files and the files it has saved itself."""

    def __init__(self, artifacts: ArtifactStore, storage: Storage, claim: Claim):
        self._artifacts = artifacts
        self._storage = storage
        self._claim = claim
        self._folder: Path | None = None
        self._copies: dict[UUID, Path] = {}
        self.released: set[UUID] = set()

    async def save(self, name: str, source: Source, *, media_type: str | None = None) -> Artifact:
        """Stores a file from bytes, a path or async chunks. Return the artifact from the handler,
        or put it into the payload of the next stage."""
        name = safe_name(name)
        kind = checked_type(media_type, name)
        async with chunks_of(source) as chunks:
            upload = Upload(self._artifacts, self._storage)
            return (await upload.output(chunks, self._claim, name, kind)).reference

    async def get(self, which: Artifact | UUID | str) -> ArtifactRecord:
        """Returns the stored record of a file. Size and checksum in a payload are not trusted."""
        claim = self._claim
        return await self._artifacts.get(artifact_id(which), tenant=claim.tenant, fence=claim.fence)

    async def read(self, which: Artifact | UUID | str) -> bytes:
        """Reads the whole file at once. Use it for files that fit into memory."""
        return b"".join([chunk async for chunk in self.chunks(which)])

    async def chunks(self, which: Artifact | UUID | str) -> AsyncGenerator[bytes]:
        record = await self.get(which)
        async with aclosing(await self._read(record)) as blocks:
            async for block in blocks:
                yield block

    async def path(self, which: Artifact | UUID | str) -> Path:
        """Returns the path of a local copy, for libraries that need a file. The copy is deleted
        when the attempt ends."""
        record = await self.get(which)
        if record.id not in self._copies:
            self._copies[record.id] = await self._copy(record)
        return self._copies[record.id]

    def release(self, which: Artifact | UUID | str) -> None:
        """Declares that this job no longer needs the file once this attempt completes or advances.
        The file is then deleted, unless other jobs need it."""
        self.released.add(artifact_id(which))

    async def folder(self) -> Path:
        """Returns a directory for this attempt. It is deleted when the attempt ends."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="batchmill-"))
        return self._folder

    def close(self) -> None:
        if self._folder is not None:
            start_in_thread(shutil.rmtree, self._folder, True)

    async def _read(self, record: ArtifactRecord) -> AsyncGenerator[bytes]:
        return await self._storage.read(record.storage_key, 0, record.size)

    async def _copy(self, record: ArtifactRecord) -> Path:
        """Copies each file into its own directory, because two files may have the same name."""
        path = Path(tempfile.mkdtemp(dir=await self.folder())) / record.name
        with path.open("wb") as file:
            async with aclosing(await self._read(record)) as blocks:
                async for block in blocks:
                    await in_thread(file.write, block)
        return path
