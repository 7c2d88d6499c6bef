"""Lets go of what has expired and makes room for what will."""

import logging
from contextlib import suppress

from batchmill.errors import NotFound
from batchmill.store import batches
from batchmill.store.database import Database

log = logging.getLogger("batchmill.upkeep")

SNAPSHOT_SECONDS = 300.0


async def tidy(database: Database) -> None:
    await database.value_unless_locked("make_partitions")
    await database.value("add_statistics")
    await database.value("tidy")
    await database.value("tidy_limits")
    await finish_cancels(database)
    await expire(database)
    await warn_of_held_snapshots(database)


async def expire(database: Database) -> None:
    for late in await database.rows("late_batches"):
        # Another worker that took the lead may have cancelled and removed it meanwhile.
        with suppress(NotFound):
            await batches.cancel(database, late["id"])
    await database.value_unless_locked("expire")


async def finish_cancels(database: Database) -> None:
    """Of those who died before they had ended all jobs."""
    for batch in await database.rows("half_cancelled"):
        ended = await batches.end_waiting(database, batch["id"])
        log.info("Ended %d jobs of batch %s, which was cancelled before.", ended, batch["id"])


async def warn_of_held_snapshots(database: Database) -> None:
    for held in await database.rows("held_snapshots", seconds=SNAPSHOT_SECONDS):
        log.warning(
            "A transaction of %s (%s, pid %d) has been open for %d s: it keeps dead rows alive, "
            "which slows everything down. End it if nobody needs it.",
            held["user"],
            held["application"] or "no application name",
            held["pid"],
            held["seconds"],
        )
