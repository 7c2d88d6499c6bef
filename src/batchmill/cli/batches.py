from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from batchmill.cli.completion import complete_task
from batchmill.cli.output import fitting_table, moment, number, state, whole
from batchmill.cli.session import Session
from batchmill.domain.batch import BatchRecord, BatchState

Count = Annotated[
    int, typer.Option("--count", "-n", min=1, max=10_000, help="The maximum number of rows.")
]
Task = Annotated[
    str | None,
    typer.Option(metavar="TASK", autocompletion=complete_task, help="Show only this task."),
]
Tenant = Annotated[str | None, typer.Option(metavar="NAME", help="Show only this tenant.")]


async def batches(
    session: Session,
    state: Annotated[BatchState | None, typer.Option(help="Show only this state.")] = None,
    task: Task = None,
    tenant: Tenant = None,
    count: Count = 20,
) -> None:
    """List batches, the newest first."""
    async with session.mill as mill:
        found = await mill.batches(state=state, task=task, tenant=tenant, count=count)
    session.show(list(map(as_data, found)), lambda _: draw(found))


def as_data(batch: BatchRecord) -> dict[str, Any]:
    return asdict(batch) | {"waiting": batch.waiting}


def draw(found: list[BatchRecord]) -> RenderableType | str:
    if not found:
        return "No batches found."
    return fitting_table(
        whole("batch"),
        "state",
        number("ended"),
        number("failed"),
        "task",
        number("created"),
        number("running"),
        "tenant",
        rows=map(cells, found),
        at_least=5,
    )


def cells(batch: BatchRecord) -> tuple[Any, ...]:
    return (
        batch.id,
        state(batch.state),
        f"{batch.ended:,}/{batch.total:,}",
        Text(f"{batch.failed:,}", "red" if batch.failed else ""),
        batch.task,
        moment(batch.created_at),
        f"{batch.running:,}",
        batch.tenant,
    )
