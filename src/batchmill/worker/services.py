"""The services that a worker provides to running attempts."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from batchmill.artifacts.attempt import JobArtifacts
from batchmill.client import Client
from batchmill.domain import outcome
from batchmill.domain.job import Claim, Progress
from batchmill.store.database import Connection
from batchmill.worker.reporter import Reporter


class AttemptServices:
    """Handlers submit to `mill`."""

    def __init__(self, mill: Client, reporter: Reporter):
        self.mill = mill
        self._engine = mill.engine
        self._store = mill.engine.store
        self._reporter = reporter
        self._files: dict[int, JobArtifacts] = {}

    def report(self, claim: Claim, progress: Progress) -> None:
        self._reporter.add(claim, progress)

    async def save_checkpoint(self, claim: Claim, name: str, value: str) -> None:
        await self._store.attempts.save_checkpoint(claim, name, value)

    async def check_job(self, task: str, key: str, payload: str) -> None:
        await self._store.attempts.check_job(task, key, payload)

    @asynccontextmanager
    async def completing(
        self, claim: Claim, result: Callable[[], str | None]
    ) -> AsyncIterator[Connection]:
        def completed() -> outcome.Outcome:
            ended = outcome.completed(claim, result() or "null")
            return ended._replace(progress=self._reporter.take(claim))

        async with self._store.attempts.completing(claim, completed) as conn:
            yield conn

    def artifacts(self, claim: Claim) -> JobArtifacts:
        if claim.fence not in self._files:
            files = JobArtifacts(self._store.artifacts, self._engine.storage, claim)
            self._files[claim.fence] = files
        return self._files[claim.fence]

    def end(self, claim: Claim) -> Progress | None:
        """Cleans up after an attempt. Returns its last progress if that is not written yet."""
        if files := self._files.pop(claim.fence, None):
            files.close()
        return self._reporter.take(claim)
