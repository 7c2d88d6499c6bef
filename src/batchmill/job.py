"""The job object that a handler gets, with the calls that a handler can make."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, Protocol, TypeVar

from batchmill.artifacts.attempt import JobArtifacts
from batchmill.artifacts.plain import ArtifactChannel, SyncJobArtifacts
from batchmill.client import Client
from batchmill.domain.failure import MESSAGE_LENGTH, cut, storable
from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Outcome, completed
from batchmill.domain.payload import Codec
from batchmill.domain.usage import Amount
from batchmill.errors import InvalidInput, LeaseLost
from batchmill.jobinfo import JobInfo
from batchmill.store.database import Connection

T = TypeVar("T")


class JobServices(Protocol):
    """What an attempt on the event loop can write, and the mill that it can use."""

    mill: Client

    def report(self, claim: Claim, progress: Progress) -> None: ...
    async def save_checkpoint(self, claim: Claim, name: str, value: str) -> None: ...
    async def enter_limit(self, claim: Claim, name: str) -> int: ...
    def leave_limit(self, number: int) -> None: ...
    async def check_job(self, task: str, key: str, payload: str) -> None: ...
    def completing(
        self, claim: Claim, completed: Callable[[], Outcome]
    ) -> AbstractAsyncContextManager[Connection]: ...
    def artifacts(self, claim: Claim) -> JobArtifacts: ...


class Job(JobInfo):
    """For async handlers."""

    def __init__(
        self, claim: Claim, services: JobServices, result: Codec, timeout: float | None = None
    ):
        super().__init__(claim, timeout)
        self._services = services
        self._codec = result
        self._result: str | None = None
        self.is_recorded = False

    async def progress(self, stage: str, message: str = "", percent: float | None = None) -> None:
        """Reports the job's progress. Stores a few reports per second, and always the last one."""
        self._services.report(self._claim, checked_progress(stage, message, percent))

    async def once(self, name: str, make: Callable[[], Awaitable[T] | T], kind: Any = Any) -> T:
        """Returns what `make` returned in the first attempt that called it. Later attempts read the
        stored value and do not call it."""
        codec = Codec(kind)
        if name in self._checkpoints:
            return codec.load_parsed(self._checkpoints[name])
        value = make()
        text = codec.dump(await value if inspect.isawaitable(value) else value)
        await self._services.save_checkpoint(self._claim, name, text)
        return codec.load(text)

    @asynccontextmanager
    async def limit(self, name: str) -> AsyncIterator[None]:
        """Waits for a slot of the limit, and holds it while the block runs: `async with
        job.limit("provider:openai"):`. Waiting holds no database connection, and counts towards
        the task's timeout. Declare the limit with `mill.limit`."""
        number = await self._services.enter_limit(self._claim, name)
        try:
            yield
        finally:
            self._services.leave_limit(number)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Commits the handler's writes together with the job's completion, or neither.

        Pass the result to `complete` inside the block; the handler's return value is ignored.
        """
        async with self._services.completing(self._claim, self._completed) as conn:
            yield conn
        self.is_recorded = True

    def _completed(self) -> Outcome:
        return completed(self._claim, self._result or "null")._replace(usage=self.usage)

    def complete(self, result: Any) -> None:
        """Sets the result that `transaction` will record."""
        self._result = self._codec.dump(result)

    def use(self, name: str, amount: Amount) -> None:
        if self.is_recorded:
            raise LeaseLost("This attempt has completed, so it can record no more usage.")
        super().use(name, amount)

    @property
    def artifacts(self) -> JobArtifacts:
        """The files that this attempt reads and makes."""
        return self._services.artifacts(self._claim)

    @property
    def mill(self) -> Client:
        """The worker's mill. It submits to the same database."""
        return self._services.mill


class Channel(ArtifactChannel, Protocol):
    """How an attempt outside the event loop communicates with the worker."""

    def report(self, progress: Progress) -> None: ...
    def save_checkpoint(self, name: str, value: str) -> None: ...
    def enter_limit(self, name: str) -> int: ...
    def leave_limit(self, number: int) -> None: ...


class SyncJob(JobInfo):
    """For plain functions, in a thread or a process."""

    def __init__(self, claim: Claim, channel: Channel, timeout: float | None = None):
        super().__init__(claim, timeout)
        self._channel = channel

    def progress(self, stage: str, message: str = "", percent: float | None = None) -> None:
        """Reports the job's progress. Stores a few reports per second, and always the last one."""
        self._channel.report(checked_progress(stage, message, percent))

    def once(self, name: str, make: Callable[[], T], kind: Any = Any) -> T:
        """Returns what `make` returned in the first attempt that called it. Later attempts read the
        stored value and do not call it."""
        codec = Codec(kind)
        if name in self._checkpoints:
            return codec.load_parsed(self._checkpoints[name])
        text = codec.dump(make())
        self._channel.save_checkpoint(name, text)
        return codec.load(text)

    @contextmanager
    def limit(self, name: str) -> Iterator[None]:
        """Waits for a slot of the limit, and holds it while the block runs: `with
        job.limit("provider:openai"):`. Waiting holds no database connection, and counts towards
        the task's timeout. Declare the limit with `mill.limit`."""
        number = self._channel.enter_limit(name)
        try:
            yield
        finally:
            self._channel.leave_limit(number)

    @property
    def artifacts(self) -> SyncJobArtifacts:
        """The files that this attempt reads and makes."""
        return SyncJobArtifacts(self._channel)


def checked_progress(stage: str, message: str, percent: float | None) -> Progress:
    if percent is not None and not 0 <= percent <= 100:
        raise InvalidInput(f"percent must be from 0 to 100, not {percent!r}.")
    stage, message = (storable(cut(text, MESSAGE_LENGTH)) for text in (stage, message))
    return Progress(stage, message, percent)
