from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from batchmill.cli.output import fitting_table, moment, number, state
from batchmill.cli.session import Session
from batchmill.domain.pool import Pool, Processor, ProcessorState


async def pools(session: Session) -> None:
    """Show what each slot of each worker runs: idle, busy or broken."""
    async with session.mill as mill:
        found = await mill.pools()
    session.show(found, draw)


def draw(found: list[Pool]) -> RenderableType | str:
    if not found:
        return "No worker is running."
    return fitting_table(
        "processor",
        "state",
        number("job"),
        number("since"),
        "worker",
        "task",
        "tenant",
        "batch",
        rows=(cells for pool in found for cells in rows(pool)),
        at_least=5,
    )


def rows(pool: Pool) -> Iterator[tuple[Any, ...]]:
    """Busy and broken processors have a row each; all idle ones of a pool share a row."""
    for processor in pool.processors:
        if processor.state is not ProcessorState.IDLE:
            yield cells(pool, processor)
    shown = f"{pool.task or 'shared'}: {pool.idle:,} of {pool.size:,}"
    ahead = f", {pool.prefetched:,} prefetched" if pool.prefetched else ""
    yield (f"{shown}{ahead}", state("idle"), "", "", pool.worker, "", "", "")


def cells(pool: Pool, processor: Processor) -> tuple[Any, ...]:
    shown = state(processor.state)
    if processor.problem:
        shown = Text.assemble(shown, f" ({processor.problem})")
    return (
        processor.name,
        shown,
        processor.job_id or "",
        moment(processor.since),
        pool.worker,
        processor.task or "",
        processor.tenant or "",
        processor.batch_id or "",
    )
