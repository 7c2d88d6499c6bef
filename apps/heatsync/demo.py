"""Demo: reads sample sheets of an invented meet, and shows the schedule in the terminal."""

import asyncio
from typing import Any

from apps.heatsync.models import SubmittedSheet
from apps.heatsync.samples import make_meet, samples
from apps.heatsync.schedule import merged
from apps.heatsync.tasks import mill, receive
from batchmill import Batch, WorkerOptions
from batchmill.cli import follow_batch, note, out, table

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
    note(f"Searching sample heat sheets for {swimmer}, with an embedded PostgreSQL server.")
    async with mill.running(WorkerOptions(name="demo", grace=5)):
        batch = await mill.submit(receive, await sheets(swimmer))
        await follow_batch(batch)
        show(batch, merged([job async for job in batch.jobs()]))


async def sheets(swimmer: str) -> list[SubmittedSheet]:
    """Sheets in several layouts. One cannot be read, and one is submitted twice."""
    pdfs = samples(SEED)
    pdfs["the-same-again.pdf"] = pdfs["two-columns.pdf"]
    saved = [await mill.artifacts.save(name, pdf) for name, pdf in pdfs.items()]
    return [
        SubmittedSheet(swimmer=swimmer, filename=each.name, file=each.reference) for each in saved
    ]


def show(batch: Batch, results: dict[str, Any]) -> None:
    rows = ((cell(swim[name]) for name in COLUMNS.values()) for swim in results["events"])
    out().print()
    out().print(table(*COLUMNS, rows=rows, title=f"{results['swimmerName']}'s schedule"))
    for failed in results["failedSources"]:
        out().print(f"\n{failed['filename']} could not be read: {failed['errorMessage']}")
    out().print(f"\nTo see the schedule in a browser, run `make serve` and open {PAGE}{batch.id}")


def cell(value: Any) -> str:
    return "–" if value is None else str(value)


if __name__ == "__main__":
    asyncio.run(main())
