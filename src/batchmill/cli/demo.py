from collections.abc import Iterator

from rich.console import RenderableType

from batchmill.cli.follow import follow_batch
from batchmill.cli.output import note, out, span, stacked, table
from batchmill.cli.session import Session
from batchmill.config import Settings
from batchmill.embedded import default_home
from batchmill.handles import Batch, Results
from batchmill.worker.worker import WorkerOptions

KEPT_FOR = 86_400.0
SHOWN = 3


async def demo(session: Session) -> None:
    """Run a sample batch of 40 jobs, with a worker in this process. It takes ten seconds."""
    # The import creates a mill, and only this command needs it.
    from batchmill import demo_tasks as work

    mill = work.mill.on(session.dsn) if session.dsn else work.mill
    note(beginning(mill.settings))
    async with mill.running(WorkerOptions(name="demo", grace=5)):
        batch = await mill.submit(work.fetch, work.addresses(), expires_in=KEPT_FOR)
        await follow_batch(batch)
        results = await batch.results()
    out().print(stacked(draw(batch, results)))


def beginning(settings: Settings) -> str:
    if settings.dsn is not None:
        return "Starting a worker on the given database."
    return f"Starting PostgreSQL in {settings.home or default_home()}, and a worker."


def draw(batch: Batch, results: Results) -> Iterator[RenderableType]:
    ended = results.batch
    assert ended.finished_at and ended.started_at
    took = span((ended.finished_at - ended.started_at).total_seconds())
    yield f"\n{ended.completed} of {ended.total} completed, {ended.failed} failed, in {took}."
    yield table(
        "number",
        "words",
        "opening",
        title=f"The first {SHOWN} of {len(results.values)} results",
        rows=((each.number, each.words, each.opening) for each in results.values[:SHOWN]),
    )
    yield "\n".join(
        (
            "Try next:",
            f"  batchmill jobs --batch {batch.id} --state failed",
            f"  batchmill retry {batch.id}",
            "  batchmill worker --app batchmill.demo_tasks:mill",
            "  batchmill status",
        )
    )
