"""A cache of recently used chunks of event logs."""

import asyncio
from collections import OrderedDict
from uuid import UUID

from batchmill.domain.event import Event
from batchmill.events import chunk
from batchmill.events.chunk import Chunk
from batchmill.events.entry import Entry
from batchmill.events.sharing import Shared, patiently
from batchmill.store.batches import BatchStore, EventPage

Key = tuple[UUID, int]

KEPT = 64
AT_ONCE = 2


class ChunkCache:
    """Reads each chunk once, even if many followers reconnect at the same time. These reads use few
    connections, so that live followers keep enough."""

    def __init__(self, batches: BatchStore):
        self._batches = batches
        self._chunks: OrderedDict[Key, Chunk] = OrderedDict()
        self._reads: Shared[Key, Chunk] = Shared()
        self._room = asyncio.Semaphore(AT_ONCE)

    async def get(self, batch_id: UUID, place: int) -> Chunk:
        """Returns a chunk to which no events are added any more."""
        key = batch_id, place
        if (kept := self._chunks.get(key)) is None:
            return await self._reads.get(key, lambda: self._read(key))
        self._chunks.move_to_end(key)
        return kept

    def keep(self, batch_id: UUID, full: Chunk) -> None:
        self._chunks[batch_id, full.place] = full
        if len(self._chunks) > KEPT:
            self._chunks.popitem(last=False)

    def forget(self, batch_id: UUID) -> None:
        for key in [key for key in self._chunks if key[0] == batch_id]:
            del self._chunks[key]

    async def close(self) -> None:
        await self._reads.close()

    async def _read(self, key: Key) -> Chunk:
        batch_id, place = key

        async def read() -> EventPage:
            async with self._room:
                return await self._batches.events(batch_id, begin, chunk.SIZE)

        begin = place * chunk.SIZE
        found = laid_out((await patiently(read)).events, begin + chunk.SIZE + 1)
        if found.is_full:
            self.keep(batch_id, found)
        return found


def laid_out(events: list[Event], end: int) -> Chunk:
    """Builds a chunk from the events after the last gap, up to the end of the chunk."""
    found = Chunk(end)
    for event in events:
        if event.number != found.next_number:
            found = Chunk(event.number)
        found.entries.append(Entry(event))
    return found
