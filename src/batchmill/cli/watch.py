from typing import Annotated

import typer

from batchmill.cli.exits import ExitCode
from batchmill.cli.follow import exit_code_for, follow
from batchmill.cli.output import note
from batchmill.cli.session import Session
from batchmill.domain.batch import BatchRecord
from batchmill.errors import InvalidInput


async def watch(
    session: Session,
    batch: Annotated[str, typer.Argument(metavar="BATCH", help="The id of the batch.")],
    after: Annotated[
        int, typer.Option(min=0, help="With --json: the last event that is known already.")
    ] = 0,
) -> ExitCode:
    """Follow a batch until it ends: bars in a terminal, else lines; with --json its events."""
    if after and not session.json:
        raise InvalidInput("--after is for --json: bars are drawn from all events.")
    async with session.mill as mill:
        ended = await follow(mill.batch(batch), json=session.json, after=after)
    suggest_retry(ended)
    return exit_code_for(ended)


def suggest_retry(batch: BatchRecord) -> None:
    if batch.failed:
        note(f"See why: batchmill jobs --batch {batch.id} --state failed")
        note(f"Try those again: batchmill retry {batch.id}")
