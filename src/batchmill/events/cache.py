"""A cache of recently used chunks of event logs."""

from collections import OrderedDict
from collections.abc import Hashable

from batchmill.events import chunk
from batchmill.events.chunk import Chunk
from batchmill.events.entry import Entry
from batchmill.events.log import Log, LogPage
from batchmill.events.sharing import Shared, patiently
from batchmill.store.shares import Share

Key = tuple[Hashable, int]

KEPT = 64
AT_ONCE = 2


class ChunkCache:
    """Reads each chunk once, even if many followers reconnect at the same time. These reads use few
    connections, so that live followers keep enough."""

    def __init__(self) -> None:
        self._chunks: OrderedDict[Key, Chunk] = OrderedDict()
        self._reads: Shared[Key, Chunk] = Shared()
        self._room = Share(AT_ONCE, AT_ONCE, is_patient=True)

    async def get(self, log: Log, place: int) -> Chunk:
        """Returns a chunk to which no events are added any more."""
        key = log.key, place
        if (kept := self._chunks.get(key)) is None:
            return await self._reads.get(key, lambda: self._read(log, place))
        self._chunks.move_to_end(key)
        return kept

    def keep(self, log: Log, full: Chunk) -> None:
        self._chunks[log.key, full.place] = full
        if len(self._chunks) > KEPT:
            self._chunks.popitem(last=False)

    def forget(self, log: Log) -> None:
        for key in [key for key in self._chunks if key[0] == log.key]:
            del self._chunks[key]

    async def close(self) -> None:
        await self._reads.close()

    async def _read(self, log: Log, place: int) -> Chunk:
        async def read() -> LogPage:
            async with self._room.taken(log.tenant):
                return await log.read(begin, chunk.SIZE)

        begin = place * chunk.SIZE
        found = laid_out((await patiently(read)).entries, begin + chunk.SIZE + 1)
        if found.is_full:
            self.keep(log, found)
        return found


def laid_out(entries: list[Entry], end: int) -> Chunk:
    """Builds a chunk from the entries after the last gap, up to the end of the chunk."""
    found = Chunk(end)
    for entry in entries:
        if entry.number != found.next_number:
            found = Chunk(entry.number)
        found.entries.append(entry)
    return found
