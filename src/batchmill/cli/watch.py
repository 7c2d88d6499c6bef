from typing import Annotated

import typer

from batchmill.cli.exits import ExitCode
from batchmill.cli.follow import exit_code_for, follow_batch
from batchmill.cli.output import note
from batchmill.cli.session import Session
from batchmill.domain.batch import BatchRecord
from batchmill.errors import InvalidInput


async def watch(
    session: Session,
    batch: Annotated[str, typer.Argument(metavar="BATCH", help="The id of the batch.")],
    after: Annotated[
        int, typer.Option(min=0, help="With --json: skip events up to this number.")
    ] = 0,
) -> ExitCode:
    """Follow a batch until it ends: as bars in a terminal, otherwise as lines or JSON events."""
    if after and not session.json:
        raise InvalidInput("--after needs --json: the progress bars are computed from all events.")
    async with session.mill as mill:
        ended = await follow_batch(mill.batch(batch), json=session.json, after=after)
    suggest_retry(ended)
    return exit_code_for(ended)


def suggest_retry(batch: BatchRecord) -> None:
    if batch.failed:
        note(f"To see the failures: batchmill jobs --batch {batch.id} --state failed")
        note(f"To retry them: batchmill retry {batch.id}")
