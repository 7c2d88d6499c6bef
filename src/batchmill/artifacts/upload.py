"""A file on its way into the store."""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from dataclasses import dataclass

from batchmill.artifacts.storage import BLOCK, Storage
from batchmill.domain.artifact import ArtifactRecord
from batchmill.domain.download import stored_headers
from batchmill.errors import ArtifactTooLarge, InvalidInput, LeaseLost, StorageExceeded
from batchmill.store import artifacts
from batchmill.store.artifacts import Place
from batchmill.store.database import Database
from batchmill.threads import in_thread

log = logging.getLogger("batchmill.artifacts")

# Room is asked for so much ahead, so that Postgres is not asked for every block.
AHEAD = 16 * BLOCK
# A slow one has to be heard of within the hour.
QUIET = 60.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """`size` is what was announced, `at_most` what a file may have, `quota` what all files of its
    tenant may have together, if that is less than the tenant's own quota."""

    size: int | None = None
    at_most: int | None = None
    quota: int | None = None

    def __post_init__(self) -> None:
        for name in ("size", "at_most", "quota"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InvalidInput(f"{name} is a number of bytes, not {value!r}.")


class Upload:
    """Counts, checks and digests what passes through. If anything fails, nothing is left."""

    def __init__(self, database: Database, storage: Storage, place: Place, bounds: Bounds):
        self._database = database
        self._storage = storage
        self._place = place
        self._bounds = bounds
        self._digest = hashlib.sha256()
        self._size = 0
        self._room = 0
        self._heard_at = time.monotonic()

    async def run(self, chunks: AsyncIterable[bytes], name: str, media_type: str) -> ArtifactRecord:
        try:
            await self._require(self._bounds.size or 0)
            await self._write(chunks, stored_headers(name, media_type))
            sha256 = self._digest.hexdigest()
            record = await artifacts.end(self._database, self._place.id, self._size, sha256)
            if record is None:
                raise self._unwanted()
        except BaseException:
            await asyncio.shield(self._remove())
            raise
        return record

    async def _write(self, chunks: AsyncIterable[bytes], headers: dict[str, str]) -> None:
        async with (
            aclosing(self._gathered(chunks)) as blocks,
            aclosing(self._passed(blocks)) as passed,
        ):
            await self._storage.write(self._place.storage_key, passed, headers)

    async def _passed(self, blocks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        async for block in blocks:
            await self._require(self._size + len(block))
            await in_thread(self._digest.update, block)
            self._size += len(block)
            yield block
        announced = self._bounds.size
        if announced is not None and self._size != announced:
            raise InvalidInput(f"{announced:,} bytes were announced, {self._size:,} came.")

    async def _gathered(self, chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        """A network hands over little at a time, and each block costs a step or two."""
        waiting, size = [], 0
        async for chunk in chunks:
            waiting.append(chunk)
            size += len(chunk)
            if time.monotonic() - self._heard_at > QUIET:
                await self._grow(self._room, self._room)
            if size >= BLOCK:
                yield b"".join(waiting)
                waiting, size = [], 0
        if size:
            yield b"".join(waiting)

    async def _require(self, size: int) -> None:
        bounds = self._bounds
        if bounds.at_most is not None and size > bounds.at_most:
            raise ArtifactTooLarge(f"A file may have {bounds.at_most:,} bytes; this has more.")
        if bounds.size is not None and size > bounds.size:
            raise InvalidInput(f"{bounds.size:,} bytes were announced, and more came.")
        if size > self._room:
            await self._grow(size, bounds.size or size + AHEAD)

    async def _grow(self, at_least: int, at_most: int) -> None:
        room = await artifacts.grow(
            self._database,
            self._place.id,
            at_least=at_least,
            at_most=at_most,
            quota=self._bounds.quota,
        )
        if room is None:
            raise self._unwanted()
        if room.most is not None and room.granted < at_least:
            raise StorageExceeded(used=room.used, limit=room.most)
        self._room, self._heard_at = room.granted, time.monotonic()

    def _unwanted(self) -> LeaseLost:
        return LeaseLost(
            f"Nobody waits for artifact {self._place.id} any more: its attempt has ended, or no "
            "bytes came for an hour."
        )

    async def _remove(self) -> None:
        """Where this fails too, the upkeep finds what is left."""
        try:
            await artifacts.give_up(self._database, self._place.id)
            await remove(self._database, self._storage, [self._place])
        except Exception as error:
            log.warning("What is left of an upload is removed later: %s", error)


async def remove(database: Database, storage: Storage, places: list[Place]) -> None:
    """Files first: without their rows nobody would find them."""
    await storage.delete([place.storage_key for place in places])
    await artifacts.forget(database, [place.id for place in places])
