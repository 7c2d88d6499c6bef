"""Removes expired data and creates partitions in advance."""

import logging
from contextlib import suppress

from batchmill.errors import NotFound
from batchmill.store.store import EngineStore

log = logging.getLogger("batchmill.upkeep")

SNAPSHOT_SECONDS = 300.0


async def tidy(store: EngineStore) -> None:
    await store.upkeep.make_partitions()
    await store.upkeep.add_statistics()
    await store.upkeep.tidy()
    await finish_cancels(store)
    await expire(store)
    await warn_of_held_snapshots(store)


async def expire(store: EngineStore) -> None:
    for late in await store.upkeep.late_batches():
        # Another worker may have become leader and removed the batch meanwhile.
        with suppress(NotFound):
            await store.batches.cancel(late)
    await store.upkeep.expire()


async def finish_cancels(store: EngineStore) -> None:
    """Finishes cancellations whose process crashed before all jobs of the batch had ended."""
    for batch in await store.upkeep.half_cancelled_batches():
        ended = await store.batches.end_waiting(batch)
        log.info("Cancelled the remaining %d jobs of the cancelled batch %s.", ended, batch)


async def warn_of_held_snapshots(store: EngineStore) -> None:
    for held in await store.upkeep.held_snapshots(SNAPSHOT_SECONDS):
        log.warning(
            "A transaction of %s (%s, pid %d) has been open for %d s. Vacuum cannot remove "
            "dead rows meanwhile, so queries become slower. End it if it is not needed.",
            held["user"],
            held["application"] or "no application name",
            held["pid"],
            held["seconds"],
        )
