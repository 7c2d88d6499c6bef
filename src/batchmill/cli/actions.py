"""Cancelling and retrying. A number is the id of a job, a UUID the id of a batch."""

from typing import Annotated

import typer

from batchmill.cli.parsing import parse_target
from batchmill.cli.session import Session

Target = Annotated[str, typer.Argument(metavar="JOB|BATCH", help="A number, or a batch's id.")]


async def cancel(session: Session, target: Target) -> None:
    """Cancel a job or a batch: what waits never starts, what runs is interrupted."""
    found = parse_target(target)
    async with session.mill as mill:
        handle = mill.job(found) if isinstance(found, int) else mill.batch(found)
        count = int(await handle.cancel())
    sentence = told(count, "cancelled", otherwise="It had ended already.")
    session.show({"cancelled": count}, lambda _: sentence)


async def retry(session: Session, target: Target) -> None:
    """Put a failed job, or all failed jobs of a batch, back to work."""
    found = parse_target(target)
    async with session.mill as mill:
        if isinstance(found, int):
            await mill.job(found).retry()
            count = 1
        else:
            count = await mill.batch(found).retry()
    session.show(
        {"retried": count}, lambda _: told(count, "put back to work", "No job of it has failed.")
    )


def told(count: int, done: str, otherwise: str) -> str:
    jobs = "1 job" if count == 1 else f"{count:,} jobs"
    return f"{jobs} {done}." if count else otherwise
