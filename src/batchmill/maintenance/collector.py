"""Removes orphaned files: those of deleted and expired batches, failed attempts and crashed
writers, and those that jobs have released."""

import logging
import time
from collections.abc import Callable

from batchmill.artifacts.storage import Storage
from batchmill.artifacts.upload import remove
from batchmill.errors import ConfigurationError, StorageError
from batchmill.store.artifacts import ArtifactStore, Place

log = logging.getLogger("batchmill.upkeep")

PIECE = 500
# Limits the time of one run in seconds, so that other upkeep is not delayed.
LONGEST = 1.0
AFTER_TROUBLE = 60.0


class Collector:
    """`has_more` is True if there was not enough time for all files."""

    def __init__(self, artifacts: ArtifactStore, storage: Callable[[], Storage]):
        self._artifacts = artifacts
        self._storage = storage
        self._not_before = 0.0
        self.has_more = False

    async def collect(self) -> None:
        until = time.monotonic() + LONGEST
        self.has_more = True
        while await self._artifacts.apply_releases(PIECE) == PIECE:
            if time.monotonic() > until:
                return
        self.has_more = time.monotonic() >= self._not_before
        while self.has_more:
            orphans = await self._artifacts.orphans(PIECE)
            removed = not orphans or await self._remove(orphans)
            self.has_more = removed and len(orphans) == PIECE
            if time.monotonic() > until:
                return

    async def _remove(self, orphans: list[Place]) -> bool:
        try:
            await remove(self._artifacts, self._storage(), orphans)
        except (StorageError, ConfigurationError) as error:
            self._not_before = time.monotonic() + AFTER_TROUBLE
            await self._artifacts.put_off([place.id for place in orphans], AFTER_TROUBLE)
            cause = error.__cause__ or error
            log.warning("Cannot remove %d files; retrying later: %s", len(orphans), cause)
            return False
        return True
