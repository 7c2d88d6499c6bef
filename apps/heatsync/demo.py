"""See HeatSync work: sample sheets of a meet that never was, read in the terminal."""

import asyncio
from typing import Any

from apps.heatsync.models import HandedIn
from apps.heatsync.samples import make_meet, samples
from apps.heatsync.schedule import merged
from apps.heatsync.tasks import mill, receive
from batchmill import Batch, WorkerOptions
from batchmill.cli.follow import follow
from batchmill.cli.output import note, out, table

SEED = 1
PAGE = "http://127.0.0.1:8300/batches/"
COLUMNS = {
    "day": "sessionDate",
    "time": "heatStartTime",
    "event": "eventNumber",
    "": "eventName",
    "heat": "heatNumber",
    "lane": "lane",
    "seed": "seedTime",
}


async def main() -> None:
    swimmer = make_meet(SEED).busiest
    note(f"Looking for {swimmer} in sample heat sheets, on a PostgreSQL of our own.")
    async with mill.running(WorkerOptions(name="demo", grace=5)):
        batch = await mill.submit(receive, await sheets(swimmer))
        await follow(batch, json=False)
        show(batch, merged([job async for job in batch.jobs()]))


async def sheets(swimmer: str) -> list[HandedIn]:
    """Of several layouts; one cannot be read, and one is there twice."""
    pdfs = samples(SEED)
    pdfs["the-same-again.pdf"] = pdfs["two-columns.pdf"]
    saved = [await mill.artifacts.save(name, pdf) for name, pdf in pdfs.items()]
    return [HandedIn(swimmer=swimmer, filename=each.name, file=each.reference) for each in saved]


def show(batch: Batch, found: dict[str, Any]) -> None:
    rows = ((told(swim[name]) for name in COLUMNS.values()) for swim in found["events"])
    out().print()
    out().print(table(*COLUMNS, rows=rows, title=f"{found['swimmerName']}'s schedule"))
    for failed in found["failedSources"]:
        out().print(f"\n{failed['filename']} was not read: {failed['errorMessage']}")
    out().print(f"\nTo see it on a page: make serve, then {PAGE}{batch.id}")


def told(value: Any) -> str:
    return "–" if value is None else str(value)


if __name__ == "__main__":
    asyncio.run(main())
