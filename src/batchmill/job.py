"""What a handler gets: the job it works for, and what it may tell about it."""

import inspect
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from uuid import UUID

from batchmill.artifacts.plain import Courier, SyncJobArtifacts
from batchmill.domain.failure import MESSAGE_LENGTH, cut, storable
from batchmill.domain.job import Claim, Progress
from batchmill.domain.payload import Codec
from batchmill.errors import InvalidInput

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from batchmill.artifacts.attempt import JobArtifacts
    from batchmill.mill import Mill

T = TypeVar("T")
LOG = logging.getLogger("batchmill.job")


class Desk(Protocol):
    """Where an attempt on the event loop leaves what it has to say."""

    mill: "Mill"

    def report(self, claim: Claim, progress: Progress) -> None: ...
    async def save_checkpoint(self, claim: Claim, name: str, value: str) -> None: ...
    async def check_job(self, task: str, key: str, payload: str) -> None: ...
    def completing(
        self, claim: Claim, result: Callable[[], str | None]
    ) -> AbstractAsyncContextManager["AsyncConnection[Any]"]: ...
    def artifacts(self, claim: Claim) -> "JobArtifacts": ...


class JobInfo:
    """What every handler can read, wherever it runs. Made when the handler begins."""

    def __init__(self, claim: Claim, timeout: float | None = None):
        self.id = claim.id
        self.position = claim.position
        self.task = claim.task
        self.tenant = claim.tenant
        self.key = claim.key
        self.attempt = claim.attempt
        self.snoozes = claim.snoozes
        self.labels = claim.labels
        self.cancelled = False
        self._claim = claim
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._checkpoints = claim.checkpoints or {}

    @property
    def batch_id(self) -> UUID | None:
        return UUID(self._claim.batch_id) if self._claim.batch_id else None

    @property
    def remaining(self) -> float | None:
        """Seconds until the task's timeout; None if it has none."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that names the job, its task and its attempt in every line."""
        about = {"job_id": self.id, "task": self.task, "attempt": self.attempt}
        return _BoundLogger(LOG, about)


class Job(JobInfo):
    """For async handlers."""

    def __init__(self, claim: Claim, desk: Desk, result: Codec, timeout: float | None = None):
        super().__init__(claim, timeout)
        self._desk = desk
        self._codec = result
        self._result: str | None = None
        self.is_recorded = False

    async def progress(self, stage: str, message: str = "", percent: float | None = None) -> None:
        """Tells where the job is. A few a second are kept, and always the last one."""
        self._desk.report(self._claim, checked_progress(stage, message, percent))

    async def once(self, name: str, make: Callable[[], Awaitable[T] | T], kind: Any = Any) -> T:
        """What `make` gave in the first attempt that got that far; later ones do not call it."""
        codec = Codec(kind)
        if name in self._checkpoints:
            return codec.load_parsed(self._checkpoints[name])
        value = make()
        text = codec.dump(await value if inspect.isawaitable(value) else value)
        await self._desk.save_checkpoint(self._claim, name, text)
        return codec.load(text)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator["AsyncConnection[Any]"]:
        """Commits what the handler writes together with the job's completion, or neither.

        Give the result to `complete` inside the block; what the handler returns does not count.
        """
        async with self._desk.completing(self._claim, lambda: self._result) as conn:
            yield conn
        self.is_recorded = True

    def complete(self, result: Any) -> None:
        """Sets the result that `transaction` will record."""
        self._result = self._codec.dump(result)

    @property
    def artifacts(self) -> "JobArtifacts":
        """The files of this attempt: those it reads, and those it makes."""
        return self._desk.artifacts(self._claim)

    @property
    def mill(self) -> "Mill":
        """The one that the worker works for: what is submitted here goes to the same database."""
        return self._desk.mill


class Channel(Courier, Protocol):
    """How an attempt outside the event loop talks to the worker."""

    def report(self, progress: Progress) -> None: ...
    def save_checkpoint(self, name: str, value: str) -> None: ...


class SyncJob(JobInfo):
    """For plain functions, in a thread or a process."""

    def __init__(self, claim: Claim, channel: Channel, timeout: float | None = None):
        super().__init__(claim, timeout)
        self._channel = channel

    def progress(self, stage: str, message: str = "", percent: float | None = None) -> None:
        """Tells where the job is. A few a second are kept, and always the last one."""
        self._channel.report(checked_progress(stage, message, percent))

    def once(self, name: str, make: Callable[[], T], kind: Any = Any) -> T:
        """What `make` gave in the first attempt that got that far; later ones do not call it."""
        codec = Codec(kind)
        if name in self._checkpoints:
            return codec.load_parsed(self._checkpoints[name])
        text = codec.dump(make())
        self._channel.save_checkpoint(name, text)
        return codec.load(text)

    @property
    def artifacts(self) -> SyncJobArtifacts:
        """The files of this attempt: those it reads, and those it makes."""
        return SyncJobArtifacts(self._channel)


class _BoundLogger(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: Any, kwargs: Any) -> tuple[Any, Any]:
        about = dict(self.extra or {})
        kwargs["extra"] = {**about, **kwargs.get("extra", {})}
        return f"[{about['task']} job {about['job_id']} attempt {about['attempt']}] {msg}", kwargs


def checked_progress(stage: str, message: str, percent: float | None) -> Progress:
    if percent is not None and not 0 <= percent <= 100:
        raise InvalidInput(f"Progress goes from 0 to 100 percent, not {percent!r}.")
    stage, message = (storable(cut(text, MESSAGE_LENGTH)) for text in (stage, message))
    return Progress(stage, message, percent)
