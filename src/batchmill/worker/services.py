"""The services that a worker provides to running attempts."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from batchmill.artifacts.attempt import JobArtifacts
from batchmill.client import Client
from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Outcome
from batchmill.store.database import Connection
from batchmill.worker.limiter import Limiter
from batchmill.worker.reporter import Reporter


class AttemptServices:
    """Handlers submit to `mill`."""

    def __init__(self, mill: Client, reporter: Reporter, limiter: Limiter):
        self.mill = mill
        self._engine = mill.engine
        self._store = mill.engine.store
        self._reporter = reporter
        self._limiter = limiter
        self._files: dict[int, JobArtifacts] = {}

    def report(self, claim: Claim, progress: Progress) -> None:
        self._reporter.add(claim, progress)

    async def save_checkpoint(self, claim: Claim, name: str, value: str) -> None:
        await self._store.attempts.save_checkpoint(claim, name, value)

    async def enter_limit(self, claim: Claim, name: str) -> int:
        return await self._limiter.enter(claim, name)

    def leave_limit(self, number: int) -> None:
        self._limiter.leave(number)

    async def check_job(self, task: str, key: str, payload: str) -> None:
        await self._store.attempts.check_job(task, key, payload)

    @asynccontextmanager
    async def completing(
        self, claim: Claim, completed: Callable[[], Outcome]
    ) -> AsyncIterator[Connection]:
        def ended() -> Outcome:
            return self._with_releases(completed())._replace(progress=self._reporter.take(claim))

        async with self._store.attempts.completing(claim, ended) as conn:
            yield conn

    def artifacts(self, claim: Claim) -> JobArtifacts:
        if claim.fence not in self._files:
            files = JobArtifacts(self._store.artifacts, self._engine.storage, claim)
            self._files[claim.fence] = files
        return self._files[claim.fence]

    def end(self, claim: Claim, ended: Outcome | None) -> Outcome | None:
        """Cleans up after an attempt. Adds its releases to its outcome, and its last progress if
        that is not written yet."""
        self._limiter.end(claim)
        if ended is not None:
            ended = self._with_releases(ended)
        if files := self._files.pop(claim.fence, None):
            files.close()
        progress = self._reporter.take(claim)
        return ended._replace(progress=progress) if ended and progress else ended

    def _with_releases(self, ended: Outcome) -> Outcome:
        files = self._files.get(ended.claim.fence)
        return ended.releasing(files.released) if files and files.released else ended
