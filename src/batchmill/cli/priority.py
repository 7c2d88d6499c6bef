"""Which task goes first when slots are scarce."""

from typing import Annotated

import typer

from batchmill.cli.completion import complete_task
from batchmill.cli.session import Session


async def priority(
    session: Session,
    task: Annotated[
        str, typer.Argument(metavar="TASK", autocompletion=complete_task, help="The task's name.")
    ],
    value: Annotated[
        int | None,
        typer.Argument(metavar="N", help="Without N, the one that the code declares is restored."),
    ] = None,
) -> None:
    """Set the priority of a task. If slots are scarce, the task with the higher one goes first."""
    async with session.mill as mill:
        changed = await mill.set_priority(task, value)
    session.show(
        {"task": task, "priority": changed}, lambda _: f"{task} has the priority {changed}."
    )
