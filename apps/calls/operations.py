"""The operations that calls have started at their providers.

They are in a table, because a cancelled call runs no more handlers: the callback of its batch reads
there what to cancel.
"""

from dataclasses import dataclass
from uuid import UUID

from apps.calls.models import ProviderName, Recording
from apps.calls.providers import Provider
from apps.calls.tables import CALLS
from batchmill import Client, Job, Permanent


@dataclass(frozen=True, slots=True)
class Operation:
    """`failure` is why it ended without a transcript, and `age` is the time since its start in
    seconds."""

    number: int
    operation: str
    failure: str | None
    age: float


def call_of(job: Job) -> UUID:
    if job.batch_id is None:
        raise Permanent("A call is a batch of one. Submit a batch.", code="NOT_A_CALL")
    return job.batch_id


async def newest(job: Job) -> Operation | None:
    found = await CALLS.row(job.mill, "newest_operation", call=call_of(job))
    return Operation(**found) if found else None


async def begin(job: Job, provider: Provider, recording: Recording, number: int) -> str:
    """Starts an operation and keeps its id.

    Two attempts may start the same operation: one was paused, or died before it kept the id. A
    provider that honours the token starts it once. At any other provider, the operation whose id
    was not kept is cancelled, if its attempt still runs.
    """
    call = call_of(job)
    await provider.check(job.mill, recording.language)
    operation = await provider.start(job, recording, token=f"{call}-{number}")
    kept = await CALLS.value(
        job.mill,
        "keep_operation",
        call=call,
        number=number,
        provider=provider.name,
        operation=operation,
    )
    if kept != operation:
        await provider.cancel(job.mill, operation)
    return kept


async def end(mill: Client, call: UUID, operation: str, failure: str | None = None) -> None:
    await CALLS.rows(mill, "end_operation", call=call, operation=operation, failure=failure)


async def release(job: Job, provider: Provider) -> None:
    """Deletes the provider's copy of a transcript that is stored."""
    if (started := await newest(job)) is not None:
        await provider.release(job.mill, started.operation)


async def unfinished(job: Job, call: UUID) -> list[tuple[ProviderName, str]]:
    """The names of providers, and the ids of operations of the job's tenant that may run there."""
    found = await CALLS.rows(job.mill, "open_operations", call=call, tenant=job.tenant)
    return [(each["provider"], each["operation"]) for each in found]
