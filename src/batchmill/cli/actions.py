"""Cancelling and retrying. A number is the id of a job, a UUID the id of a batch."""

from typing import Annotated

import typer

from batchmill.cli.parsing import parse_target
from batchmill.cli.session import Session

Target = Annotated[
    str,
    typer.Argument(metavar="JOB|BATCH", help="The id of a job (a number) or of a batch (a UUID)."),
]


async def cancel(session: Session, target: Target) -> None:
    """Cancel a job or a batch: waiting jobs never start, running jobs are interrupted."""
    found = parse_target(target)
    async with session.mill as mill:
        handle = mill.job(found) if isinstance(found, int) else mill.batch(found)
        count = int(await handle.cancel())
    sentence = described(count, "cancelled", otherwise="Nothing to cancel: it has already ended.")
    session.show({"cancelled": count}, lambda _: sentence)


async def retry(session: Session, target: Target) -> None:
    """Retry a failed job, or all failed jobs of a batch."""
    found = parse_target(target)
    async with session.mill as mill:
        if isinstance(found, int):
            await mill.job(found).retry()
            count = 1
        else:
            count = await mill.batch(found).retry()
    session.show(
        {"retried": count},
        lambda _: described(
            count, "queued for retry", "Nothing to retry: the batch has no failed jobs."
        ),
    )


def described(count: int, done: str, otherwise: str) -> str:
    jobs = "1 job" if count == 1 else f"{count:,} jobs"
    return f"{jobs} {done}." if count else otherwise
