"""The files of one attempt: what it reads, and what it makes."""

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
    """What an attempt saves is kept if it completes or goes on to its next stage, and only then.
    It reads what is its tenant's, and what it has saved itself."""

    def __init__(self, artifacts: ArtifactStore, storage: Storage, claim: Claim):
        self._artifacts = artifacts
        self._storage = storage
        self._claim = claim
        self._folder: Path | None = None
        self._copies: dict[UUID, Path] = {}

    async def save(self, name: str, source: Source, *, media_type: str | None = None) -> Artifact:
        """Stores a file from bytes, a path or async chunks. Return what this gives, or put it into
        the payload of the next stage."""
        name = safe_name(name)
        kind = checked_type(media_type, name)
        async with chunks_of(source) as chunks:
            upload = Upload(self._artifacts, self._storage)
            return (await upload.output(chunks, self._claim, name, kind)).reference

    async def get(self, which: Artifact | UUID | str) -> ArtifactRecord:
        """What the store knows of a file. A payload may say anything of its size and checksum."""
        claim = self._claim
        return await self._artifacts.get(artifact_id(which), tenant=claim.tenant, fence=claim.fence)

    async def read(self, which: Artifact | UUID | str) -> bytes:
        """All of it at once, for files that fit into memory."""
        return b"".join([chunk async for chunk in self.chunks(which)])

    async def chunks(self, which: Artifact | UUID | str) -> AsyncGenerator[bytes]:
        record = await self.get(which)
        async with aclosing(await self._read(record)) as blocks:
            async for block in blocks:
                yield block

    async def path(self, which: Artifact | UUID | str) -> Path:
        """A copy on this machine's disk, for libraries that want a file. It goes when the attempt
        ends."""
        record = await self.get(which)
        if record.id not in self._copies:
            self._copies[record.id] = await self._copy(record)
        return self._copies[record.id]

    async def folder(self) -> Path:
        """A directory of the attempt's own, which goes when it ends."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="batchmill-"))
        return self._folder

    def close(self) -> None:
        if self._folder is not None:
            start_in_thread(shutil.rmtree, self._folder, True)

    async def _read(self, record: ArtifactRecord) -> AsyncGenerator[bytes]:
        return await self._storage.read(record.storage_key, 0, record.size)

    async def _copy(self, record: ArtifactRecord) -> Path:
        """Each in a place of its own: two files may have one name."""
        path = Path(tempfile.mkdtemp(dir=await self.folder())) / record.name
        with path.open("wb") as file:
            async with aclosing(await self._read(record)) as blocks:
                async for block in blocks:
                    await in_thread(file.write, block)
        return path
