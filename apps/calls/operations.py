"""The operations that calls have started at their providers.

They are in a table, because a cancelled call runs no more handlers: the callback of its batch reads
there what to cancel.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from apps.calls.mill import providers
from apps.calls.models import Recording
from apps.calls.providers import Provider
from apps.calls.tables import CALLS
from batchmill import BatchState, Client, ErasureInProgress, Job, NotFound, Permanent

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Operation:
    """`failure` is why it ended without a transcript, and `age` is the time since its start in
    seconds. `shown` is the progress of the call that users see."""

    number: int
    operation: str
    failure: str | None
    age: float
    shown: dict[str, Any] | None


class NotACall(Permanent):
    """Tenants can submit to the first stage through the API of the engine, which adds no row of a
    call. Without the row, the operations of the job would not be recorded."""

    def __init__(self) -> None:
        super().__init__(
            "This job is not a call, or its call was deleted. Upload the recording to /api/calls.",
            code="NOT_A_CALL",
        )


def call_of(job: Job) -> UUID:
    if job.batch_id is None:
        raise NotACall
    return job.batch_id


async def newest(job: Job) -> Operation | None:
    """The operation that the call has started last. Raises NotACall."""
    found = await CALLS.row(
        job.mill, "newest_operation", call=call_of(job), tenant=job.tenant, job=job.id
    )
    if found is None:
        raise NotACall
    return Operation(**found) if found["number"] else None


async def begin(
    job: Job, provider: Provider, recording: Recording, failed: Operation | None = None
) -> str:
    """Starts an operation and keeps its id. `failed` is the one before it."""
    await provider.check(job.mill, recording.language)
    return await to_its_end(start(job, provider, recording, failed))


async def start(
    job: Job, provider: Provider, recording: Recording, failed: Operation | None
) -> str:
    """Two attempts may start the same operation: one was paused, or died before it kept the id. A
    provider that honours the token starts it once. At any other provider, the operation whose id
    was not kept is cancelled, if its attempt still runs.
    """
    call, number = call_of(job), failed.number + 1 if failed else 1
    after = failed.operation if failed else None
    operation = await provider.start(job, recording, token=f"{call}-{number}", after=after)
    try:
        kept = await CALLS.value(
            job.mill,
            "keep_operation",
            call=call,
            tenant=job.tenant,
            number=number,
            provider=provider.name,
            operation=operation,
        )
    except ErasureInProgress:
        await provider.cancel(job.mill, operation)
        raise
    if kept != operation:
        await provider.cancel(job.mill, operation)
    if kept is None:
        raise NotACall
    # If the call was cancelled before this point, its callback may already have run. If it is
    # cancelled later, its callback runs after the id was kept.
    if await is_cancelled(job.mill, call):
        await abandon(job.mill, call, tenant=job.tenant)
    return kept


async def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Waits for the work, even if this attempt is interrupted: the request may have reached the
    provider, and only its answer names the operation."""
    running = asyncio.create_task(work)
    try:
        return await asyncio.shield(running)
    finally:
        if not running.done():
            await asyncio.wait({running})


async def is_cancelled(client: Client, call: UUID) -> bool:
    try:
        return (await client.batch(call).get()).state is BatchState.CANCELLED
    except NotFound:
        return True


async def end(client: Client, call: UUID, operation: str, failure: str | None = None) -> None:
    await CALLS.rows(client, "end_operation", call=call, operation=operation, failure=failure)


async def release(client: Client, call: UUID) -> None:
    """Deletes the copies of transcripts that the call's operations have left at the provider."""
    for each in await CALLS.rows(client, "operations_of", call=call, tenant=None):
        await providers[each["provider"]].release(client, each["operation"])


async def abandon(client: Client, call: UUID, *, tenant: str | None = None) -> None:
    """Cancels the operations of a call that may still run, and releases the copies of all of them.
    Can be repeated. With a `tenant`, only for a call of that tenant."""
    for each in await CALLS.rows(client, "operations_of", call=call, tenant=tenant):
        provider, operation = providers[each["provider"]], each["operation"]
        if each["is_open"]:
            await provider.cancel(client, operation)
            await end(client, call, operation, "The call was cancelled.")
        await provider.release(client, operation)
