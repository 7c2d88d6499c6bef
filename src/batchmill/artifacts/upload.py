"""Uploads a file into the store."""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable
from contextlib import aclosing
from dataclasses import dataclass
from uuid import uuid4

from batchmill.artifacts.headers import stored_headers
from batchmill.artifacts.storage import BLOCK, Storage
from batchmill.domain.artifact import ArtifactRecord
from batchmill.domain.job import Claim
from batchmill.errors import ArtifactTooLarge, InvalidInput, LeaseLost, StorageExceeded
from batchmill.store.artifacts import ArtifactStore, Place, Room
from batchmill.threads import start_in_thread

log = logging.getLogger("batchmill.artifacts")

# Reserve this many bytes in advance, to avoid a query to Postgres for every block.
AHEAD = 64 * BLOCK
# The seconds between reports of a slow upload. Without reports, Postgres gives it up in an hour.
QUIET = 60.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits in bytes. `size` is the announced size. `at_most` limits one file. `quota` limits all
    files of the tenant together, if it is less than the tenant's own quota."""

    size: int | None = None
    at_most: int | None = None
    quota: int | None = None

    def __post_init__(self) -> None:
        for name in ("size", "at_most", "quota"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InvalidInput(f"{name} must be a number of bytes, not {value!r}.")

    def check(self, size: int) -> None:
        if self.at_most is not None and size > self.at_most:
            raise ArtifactTooLarge(f"The file is larger than the limit of {self.at_most:,} bytes.")
        if self.size is not None and size > self.size:
            raise InvalidInput(
                f"The file is larger than its announced size of {self.size:,} bytes."
            )


class Upload:
    """Counts, checks and hashes the bytes of a file. If anything fails, it removes the file."""

    def __init__(self, artifacts: ArtifactStore, storage: Storage, bounds: Bounds | None = None):
        self._artifacts = artifacts
        self._storage = storage
        self._bounds = bounds or Bounds()
        self._id = uuid4()
        self._digest = hashlib.sha256()
        self._size = 0
        self._room = 0
        self._heard_at = time.monotonic()

    async def input(
        self, chunks: AsyncIterable[bytes], tenant: str, name: str, media_type: str
    ) -> ArtifactRecord:
        """Uploads an input file. Reserves room for the announced size first."""
        self._bounds.check(self._bounds.size or 0)
        begun = self._begin_input(tenant, name, media_type)
        return await self._run(begun, chunks, stored_headers(name, media_type))

    async def output(
        self, chunks: AsyncIterable[bytes], claim: Claim, name: str, media_type: str
    ) -> ArtifactRecord:
        """Uploads a file that an attempt creates."""
        begun = self._artifacts.begin_output(self._id, claim, name, media_type)
        return await self._run(begun, chunks, stored_headers(name, media_type))

    async def _begin_input(self, tenant: str, name: str, media_type: str) -> Place:
        announced = self._bounds.size
        place, room = await self._artifacts.begin_input(
            *(self._id, tenant, name, media_type),
            at_least=announced or 0,
            at_most=AHEAD if announced is None else announced,
            quota=self._bounds.quota,
        )
        self._take(room, announced or 0)
        return place

    async def _run(
        self, begun: Awaitable[Place], chunks: AsyncIterable[bytes], headers: dict[str, str]
    ) -> ArtifactRecord:
        try:
            await self._write((await begun).storage_key, chunks, headers)
            sha256 = self._digest.hexdigest()
            record = await self._artifacts.end(self._id, self._size, sha256)
            if record is None:
                raise self._unwanted()
        except BaseException:
            await asyncio.shield(self._remove())
            raise
        return record

    async def _write(self, key: str, chunks: AsyncIterable[bytes], headers: dict[str, str]) -> None:
        async with (
            aclosing(self._gathered(chunks)) as blocks,
            aclosing(self._passed(blocks)) as passed,
        ):
            await self._storage.write(key, passed, headers)

    async def _passed(self, blocks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        async for block in blocks:
            await self._require(self._size + len(block))
            digesting = start_in_thread(self._digest.update, block)
            self._size += len(block)
            try:
                yield block
            finally:
                await digesting
        announced = self._bounds.size
        if announced is not None and self._size != announced:
            raise InvalidInput(
                f"The file ends after {self._size:,} of {announced:,} announced bytes."
            )

    async def _gathered(self, chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
        """Joins small network chunks into blocks, because each block has a fixed cost."""
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
        self._bounds.check(size)
        if size > self._room:
            await self._grow(size, self._bounds.size or size + AHEAD)

    async def _grow(self, at_least: int, at_most: int) -> None:
        room = await self._artifacts.grow(
            self._id, at_least=at_least, at_most=at_most, quota=self._bounds.quota
        )
        if room is None:
            raise self._unwanted()
        self._take(room, at_least)

    def _take(self, room: Room, at_least: int) -> None:
        if room.most is not None and room.granted < at_least:
            raise StorageExceeded(used=room.used, limit=room.most)
        self._room, self._heard_at = room.granted, time.monotonic()

    def _unwanted(self) -> LeaseLost:
        return LeaseLost(
            f"The upload of artifact {self._id} was abandoned: its attempt has ended, or no "
            "bytes arrived for an hour."
        )

    async def _remove(self) -> None:
        """Removes the file. If this fails too, the upkeep removes it later."""
        try:
            if (place := await self._artifacts.give_up(self._id)) is not None:
                await remove(self._artifacts, self._storage, [place])
        except Exception as error:
            log.warning("Cannot remove a failed upload now; the upkeep removes it later: %s", error)


async def remove(artifacts: ArtifactStore, storage: Storage, places: list[Place]) -> None:
    """Deletes files before their rows, because without a row a file can no longer be located."""
    await storage.delete([place.storage_key for place in places])
    await artifacts.forget([place.id for place in places])
