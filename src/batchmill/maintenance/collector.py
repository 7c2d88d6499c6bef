"""Removes files that nobody needs: of deleted and expired batches, of attempts that did not end
well, of writers that died."""

import logging
import time
from typing import TYPE_CHECKING

from batchmill.artifacts.upload import remove
from batchmill.errors import ConfigurationError, StorageError
from batchmill.store import artifacts
from batchmill.store.artifacts import Place

if TYPE_CHECKING:
    from batchmill.mill import Mill

log = logging.getLogger("batchmill.upkeep")

PIECE = 500
# Files are not all there is to look after.
LONGEST = 1.0
AFTER_TROUBLE = 60.0


class Collector:
    """`has_more` tells that there was no time for all of them."""

    def __init__(self, mill: "Mill"):
        self._mill = mill
        self._not_before = 0.0
        self.has_more = False

    async def collect(self) -> None:
        until = time.monotonic() + LONGEST
        self.has_more = time.monotonic() >= self._not_before
        while self.has_more:
            litter = await artifacts.litter(self._mill.database, PIECE)
            removed = not litter or await self._remove(litter)
            self.has_more = removed and len(litter) == PIECE
            if time.monotonic() > until:
                return

    async def _remove(self, litter: list[Place]) -> bool:
        try:
            await remove(self._mill.database, self._mill.storage, litter)
        except (StorageError, ConfigurationError) as error:
            self._not_before = time.monotonic() + AFTER_TROUBLE
            ids = [place.id for place in litter]
            await artifacts.put_off(self._mill.database, ids, AFTER_TROUBLE)
            cause = error.__cause__ or error
            log.warning("%d files cannot be removed yet: %s", len(litter), cause)
            return False
        return True
