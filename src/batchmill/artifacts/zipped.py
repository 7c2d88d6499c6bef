"""A ZIP file that is created while the client reads it. It stops when the client stops."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from pydantic_core import to_json

from batchmill.artifacts.storage import BLOCK, Storage
from batchmill.domain.artifact import ArtifactRecord
from batchmill.domain.manifest import MANIFEST, Names, is_loose
from batchmill.errors import NotFound, StorageError
from batchmill.store.artifacts import ArtifactStore
from batchmill.threads import in_thread

# zipfile must know in advance that an entry may exceed 4 GB. Compression can enlarge an entry.
LARGE = 2**31

# Gets the name of each file in the ZIP, or None for a file that was deleted meanwhile. Returns the
# content of the manifest.
Manifest = Callable[[list[str | None]], Any]


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


async def zipped(entries: AsyncGenerator[Entry]) -> AsyncGenerator[bytes]:
    """The ZIP in chunks. Memory use does not grow with the size of the entries."""
    sink = Sink()
    async with aclosing(entries):
        with ZipFile(sink, "w") as archive:  # pyright: ignore
            async for entry in entries:
                async with aclosing(entry.blocks) as blocks:
                    with archive.open(entry.info, "w", force_zip64=entry.size > LARGE) as file:
                        async for block in blocks:
                            await in_thread(file.write, block)
                            if sink.size >= BLOCK:
                                yield sink.take()
    yield sink.take()


class EntryMaker:
    """Opens stored files as entries with distinct names."""

    def __init__(self, artifacts: ArtifactStore, storage: Storage):
        self._artifacts = artifacts
        self._storage = storage
        self._names = Names(MANIFEST)

    async def entry(self, record: ArtifactRecord, name: str | None = None) -> Entry | None:
        """Returns None for a file that was deleted meanwhile. Any other error ends the archive."""
        try:
            blocks = await self._storage.read(record.storage_key, 0, record.size)
        except StorageError:
            if await self._is_there(record):
                raise
            return None
        taken, loose = self._names.take(name or record.name), is_loose(record.media_type)
        return Entry(taken, record.created_at, loose, record.size, blocks)

    async def _is_there(self, record: ArtifactRecord) -> bool:
        try:
            await self._artifacts.get(record.id)
        except NotFound:
            return False
        return True


async def chosen_files(
    artifacts: ArtifactStore,
    storage: Storage,
    files: Sequence[tuple[UUID, str]],
    manifest: Manifest,
) -> AsyncGenerator[Entry]:
    """The entries for files of any batches, each under the given name, and the manifest."""
    maker, names = EntryMaker(artifacts, storage), list[str | None]()
    for id, name in files:
        try:
            entry = await maker.entry(await artifacts.get(id), name)
        except NotFound:
            entry = None
        names.append(entry.name if entry else None)
        if entry is not None:
            yield entry
    text = to_json(manifest(names), indent=2)
    yield Entry(MANIFEST, datetime.now(UTC), True, len(text), _once(text))


async def _once(block: bytes) -> AsyncGenerator[bytes]:
    yield block
