"""The checks of the doctor: each returns one finding with the action to take."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from batchmill.cli.output import span
from batchmill.store import migrate
from batchmill.store.store import EngineStore

LONG_SNAPSHOT = 60.0
CLOCK_TOLERANCE = 2.0
FEW_CONNECTIONS = 10
NOTIFY_QUEUE_FULL = 0.5
MANY_DEAD_ROWS = 50_000
DEAD_PER_LIVE_ROW = 5
PARTITION_DAYS = 7
LOST_LATELY = 3_600.0

CONNECTION_ADVICE = (
    "Check --dsn or DATABASE_URL. Check that the server is running and reachable from this machine."
)


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Finding:
    check: str
    state: Level
    message: str
    advice: str | None = None


Check = Callable[[EngineStore], Awaitable[Finding]]


def fine(check: str, message: str) -> Finding:
    return Finding(check, Level.OK, message)


def warning(check: str, message: str, advice: str) -> Finding:
    return Finding(check, Level.WARNING, message, advice)


def broken(check: str, message: str, advice: str) -> Finding:
    return Finding(check, Level.BROKEN, message, advice)


async def check_server(store: EngineStore) -> Finding:
    server = await store.overview.server()
    about = f"PostgreSQL {server['version']}, database {server['database']}, as {server['user']}."
    if server["is_standby"]:
        return broken("server", f"{about} It is a read-only standby.", "Connect to the primary.")
    return fine("server", about)


async def check_pooler(store: EngineStore) -> Finding:
    if not store.database.behind_pooler:
        return fine("pooler", "No pooler: LISTEN/NOTIFY wakes up workers.")
    return fine(
        "pooler",
        "A pooler is in use. Transaction mode is assumed: workers poll, and do not prepare "
        "statements. If the pooler is in session mode, set BATCHMILL_POOLER=none so that jobs "
        "start faster.",
    )


async def check_clock(store: EngineStore) -> Finding:
    before = time.time()
    server = await store.overview.server()
    after = time.time()
    ahead = server["now"].timestamp() - (before + after) / 2
    off = max(0.0, abs(ahead) - (after - before) / 2)
    if off <= CLOCK_TOLERANCE:
        return fine(
            "clock",
            f"The clocks of this machine and of the database agree within {max(off, 0.1):.1f} s.",
        )
    return warning(
        "clock",
        f"The clock of the database is {span(off)} {'ahead of' if ahead > 0 else 'behind'} the "
        "clock of this machine.",
        "The database's clock decides when jobs run, so a run_at computed on this machine is "
        "off by this difference. Synchronise both clocks with NTP.",
    )


async def check_connections(store: EngineStore) -> Finding:
    server = await store.overview.server()
    free = server["connections"] - server["connected"]
    message = f"{server['connected']} of {server['connections']} connections are in use."
    if free >= FEW_CONNECTIONS:
        return fine("connections", message)
    return warning(
        "connections",
        message,
        "Raise max_connections, close unused connections, or use PgBouncer. A worker uses up "
        "to 12 connections.",
    )


async def check_notify(store: EngineStore) -> Finding:
    usage = (await store.overview.server())["notify_queue"]
    message = f"The NOTIFY queue is {usage:.0%} full."
    if usage < NOTIFY_QUEUE_FULL:
        return fine("notify", message)
    return broken(
        "notify",
        message,
        "A listening session has had a transaction open for a long time. When the queue is "
        "full, every commit that sends a notification fails. End that session: the snapshots "
        "check lists it.",
    )


async def check_snapshots(store: EngineStore) -> Finding:
    held = [
        f"{row['user']} ({row['application'] or 'no application name'}, pid {row['pid']}, "
        f"{row['state']}) for {span(row['seconds'])}"
        for row in await store.upkeep.held_snapshots(LONG_SNAPSHOT)
    ]
    held += await store.overview.held_horizons()
    if not held:
        return fine("snapshots", f"No snapshot is older than {span(LONG_SNAPSHOT)}.")
    return warning(
        "snapshots",
        f"Old snapshots are held by {'; '.join(held)}.",
        "Vacuum cannot remove dead rows while a snapshot is held, so queries become slower. "
        "If it is not needed, end it: select pg_terminate_backend(PID), rollback prepared, or "
        "select pg_drop_replication_slot(NAME).",
    )


async def check_schema(store: EngineStore, *, is_embedded: bool) -> Finding:
    installed = await store.overview.schema_version()
    newest = migrate.newest()
    if installed == newest:
        return fine("schema", f"Version {installed}, up to date.")
    if installed > newest:
        return broken(
            "schema",
            f"Version {installed}, but this batchmill supports only up to version {newest}.",
            "Upgrade batchmill on this machine.",
        )
    message = (
        f"Version {installed}, but this batchmill needs version {newest}."
        if installed
        else "The database has no batchmill schema."
    )
    if is_embedded:
        return warning(
            "schema", message, "The next command that uses the embedded server upgrades it."
        )
    return broken("schema", message, "Run `batchmill migrate up`.")


async def check_workers(store: EngineStore) -> Finding:
    found = await store.overview.workers(LOST_LATELY, count=1_000)
    live = [worker for worker in found if worker["state"] == "live"]
    lost = [worker["name"] for worker in found if worker["state"] == "lost"]
    if not live:
        advice = "Start one: batchmill worker --app module:mill."
        return warning("workers", "No worker is running, so no jobs run.", advice)
    if lost:
        return warning(
            "workers",
            f"{len(live)} running. Lost in the last hour: {', '.join(lost)}.",
            "Other workers take over their jobs. Check the logs of the lost workers: were "
            "they killed, out of memory, or disconnected from the database?",
        )
    return fine("workers", f"{len(live)} running.")


async def check_abandoned(store: EngineStore) -> Finding:
    abandoned = await store.overview.abandoned_jobs()
    if not abandoned:
        return fine("running jobs", "Every running job has a live worker.")
    count = sum(row["jobs"] for row in abandoned)
    some = ", ".join(str(job) for row in abandoned for job in row["some"])
    message = f"{count} on workers that are no longer live, for example {some}."
    if await store.overview.has_leader():
        return warning(
            "running jobs",
            message,
            "The upkeep makes them available to other workers within seconds.",
        )
    return broken("running jobs", message, "No worker does the upkeep. Start a worker.")


async def check_partitions(store: EngineStore) -> Finding:
    missing = await store.overview.missing_partitions(PARTITION_DAYS)
    if not missing:
        return fine("partitions", f"All partitions for the next {PARTITION_DAYS} days exist.")
    message = f"Missing for the next {PARTITION_DAYS} days: {missing}."
    if await store.overview.has_leader():
        return warning(
            "partitions",
            message,
            "The upkeep creates them. If this lasts, check the log of the worker that does "
            "the upkeep.",
        )
    return warning("partitions", message, "Start a worker: its upkeep creates them.")


async def check_vacuum(store: EngineStore) -> Finding:
    tables = await store.overview.busy_tables()
    left_out = [table["name"] for table in tables if table["is_left_out"]]
    bloated = [table["name"] for table in tables if _is_bloated(table)]
    if not (await store.overview.server())["autovacuum"]:
        return broken("vacuum", "Autovacuum is off.", "Set autovacuum = on and reload the server.")
    if left_out:
        advice = f"Run `alter table batchmill.{left_out[0]} reset (autovacuum_enabled)`."
        return broken("vacuum", f"Autovacuum is disabled for {', '.join(left_out)}.", advice)
    if bloated:
        advice = f"Run `vacuum batchmill.{bloated[0]}` when no old snapshot is held."
        return warning("vacuum", f"Most rows are dead in {', '.join(bloated)}.", advice)
    return fine("vacuum", "Autovacuum keeps up.")


OF_THE_SERVER: tuple[Check, ...] = (
    check_server,
    check_pooler,
    check_clock,
    check_connections,
    check_notify,
    check_snapshots,
)
OF_THE_ENGINE: tuple[Check, ...] = (
    check_workers,
    check_abandoned,
    check_partitions,
    check_vacuum,
)


def _is_bloated(table: dict[str, Any]) -> bool:
    return table["dead"] > max(MANY_DEAD_ROWS, DEAD_PER_LIVE_ROW * table["live"])
