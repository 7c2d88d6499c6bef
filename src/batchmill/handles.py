"""Handles of submitted work: a batch, a job."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from batchmill.domain.batch import BatchRecord
from batchmill.domain.duplicate import DuplicateRecord
from batchmill.domain.event import Event
from batchmill.domain.job import JobRecord, JobState
from batchmill.domain.notification import MOST_TARGETS, NotificationRecord, written_targets
from batchmill.engine import Engine
from batchmill.errors import JobCancelled, JobFailed, NotFound
from batchmill.events.sharing import patiently
from batchmill.store import topics
from batchmill.store.listing import in_order
from batchmill.store.store import Store

POLL = 1.0
POLL_WITHOUT_NOTIFY = 0.25


@dataclass(frozen=True, slots=True)
class Results:
    """The values of completed jobs in the order of submission, and the jobs that did not
    complete. A duplicate has the value of the job that it duplicates, if that has completed."""

    batch: BatchRecord
    values: list[Any]
    failed: list[JobRecord]
    cancelled: list[JobRecord]
    duplicates: list[DuplicateRecord]


class JobHandle:
    def __init__(
        self,
        engine: Engine,
        store: Store,
        id: int,
        *,
        duplicate: bool = False,
        cached: bool = False,
    ):
        self._engine = engine
        self._jobs = store.jobs
        self.id = check_job_id(id)
        self.is_duplicate = duplicate
        self.is_cached = cached

    def __repr__(self) -> str:
        return f"JobHandle({self.id})"

    async def get(self) -> JobRecord:
        await self._engine.open()
        return await self._jobs.get(self.id)

    async def result(self, timeout: float | None = None) -> Any:
        """Waits for the job; raises JobFailed or JobCancelled if it did not complete."""
        async with asyncio.timeout(timeout):
            record = await self._ended()
        if record.state is JobState.COMPLETED:
            return self._engine.registry.load_result(record)
        message = record.error.message if record.error else "The job was cancelled."
        kind = JobCancelled if record.state is JobState.CANCELLED else JobFailed
        code = record.error.code if record.error else "cancelled"
        raise kind(message, error_code=code, job_id=self.id)

    async def cancel(self) -> bool:
        """True if this call cancels the job, False if the job has already ended."""
        await self._engine.open()
        return await self._jobs.cancel(self.id)

    async def retry(self) -> None:
        """Makes a failed job ready again, in the stage that failed."""
        await self._engine.open()
        await self._jobs.retry(self.id)

    async def _ended(self) -> JobRecord:
        await self._engine.open()
        listener = self._engine.listener
        with listener.subscribe(topics.job_end(self.id)) as wake_up:
            await patiently(lambda: self._jobs.watch(self.id))
            while True:
                record = await patiently(lambda: self._jobs.get(self.id))
                if record.state.is_final:
                    return record
                await wake_up.wait(POLL if listener.is_listening else POLL_WITHOUT_NOTIFY)


class Batch:
    def __init__(self, engine: Engine, store: Store, id: UUID, *, is_existing: bool = False):
        self._engine = engine
        self._store = store
        self.id = id
        self.is_existing = is_existing

    def __repr__(self) -> str:
        return f"Batch({self.id})"

    async def get(self) -> BatchRecord:
        await self._engine.open()
        return await self._store.batches.get(self.id)

    async def jobs(self) -> AsyncIterator[JobRecord]:
        """Yields every job in the order of submission, in its state when its page is read."""
        await self._engine.open()
        async for record in self._store.jobs.of_batch(self.id):
            yield record

    async def duplicates(self) -> AsyncIterator[DuplicateRecord]:
        """Yields the items that have no job of their own, in the order of submission, each with the
        job that it duplicates."""
        async for record in self._duplicates(await self.get()):
            yield record

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yields the log after number `after`: first the existing events, then new ones, without a
        gap.

        Ends after the event that ends the batch. To resume, pass the last number received. If the
        events after it were pruned, or the log never reached that number, the first event is a
        `state_sync`.
        """
        await self._engine.open()
        with await self._engine.hub.follow(self.id, after, self._store.batches) as follower:
            while found := await follower.next():
                for entry in found:
                    yield entry.event

    async def wait(self, timeout: float | None = None) -> BatchRecord:
        """Returns when the batch is finished. Keeps waiting through a restart of the database."""
        await self._engine.open()
        batches, listener = self._store.batches, self._engine.listener
        with listener.subscribe(topics.batch_end(self.id)) as wake_up:
            async with asyncio.timeout(timeout):
                while True:
                    await patiently(lambda: batches.watch(self.id))
                    record = await patiently(lambda: batches.get(self.id))
                    if record.is_finished:
                        return record
                    await wake_up.wait(POLL if listener.is_listening else POLL_WITHOUT_NOTIFY)

    async def results(self, timeout: float | None = None) -> Results:
        """Waits for the batch, then returns the results of all its jobs.

        Does not wait for jobs outside the batch that its duplicates name.
        """
        results = Results(await self.wait(timeout), [], [], [], [])
        duplicates = self._duplicates(results.batch)
        async for found in in_order(self.jobs(), duplicates, lambda item: item.position):
            if found.state == JobState.COMPLETED:
                results.values.append(self._engine.registry.load_result(found))
            if isinstance(found, DuplicateRecord):
                results.duplicates.append(found)
            elif found.state is JobState.FAILED:
                results.failed.append(found)
            elif found.state is not JobState.COMPLETED:
                results.cancelled.append(found)
        return results

    def _duplicates(self, batch: BatchRecord) -> AsyncIterator[DuplicateRecord]:
        return self._store.duplicates.of_batch(batch.id, batch.duplicates)

    async def cancel(self) -> int:
        """Cancels the batch and returns the number of jobs cancelled. Waiting jobs never start;
        running ones are interrupted."""
        await self._engine.open()
        return await self._store.batches.cancel(self.id)

    async def retry(self) -> int:
        """Makes all failed jobs ready again and returns their number."""
        await self._engine.open()
        return await self._store.batches.retry(self.id)

    async def notify(self, *targets: str, at_most: int = MOST_TARGETS) -> list[NotificationRecord]:
        """Notifies these URLs and mail addresses when the batch finishes, or at once if it has
        finished. Returns all notifications of the batch. Raises Conflict if there would be more
        than `at_most`; 20 is the limit for every batch."""
        written = written_targets(targets)
        await self._engine.targets.check(written, (await self.get()).tenant)
        await self._store.notifications.add(self.id, written, at_most)
        return await self.notifications()

    async def notifications(self) -> list[NotificationRecord]:
        """The URLs and mail addresses that are notified when the batch finishes."""
        await self._engine.open()
        found = await self._store.notifications.of_batch(self.id)
        if not found:
            await self.get()
        return found

    async def usage(self) -> dict[str, Decimal]:
        """What its jobs have used so far, by name: the amounts that handlers recorded."""
        await self._engine.open()
        found = await self._store.usage.totals({"batch": self.id})
        if not found:
            await self.get()
        return {total.name: total.amount for total in found}

    async def delete(self) -> None:
        """Deletes the finished batch with its jobs, results and events."""
        await self._engine.open()
        await self._store.batches.delete(self.id)


def check_job_id(id: int) -> int:
    if not 0 < id < 2**63:
        raise NotFound(f"There is no job {id}.")
    return id
