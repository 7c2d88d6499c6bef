"""Runs handlers on the event loop, in a thread, or in a child process."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import UUID

from batchmill.artifacts.attempt import JobArtifacts
from batchmill.domain import outcome
from batchmill.domain.artifact import Artifact
from batchmill.domain.failure import Failure
from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Advance, Outcome, Snooze
from batchmill.domain.task import Place, Task
from batchmill.errors import InvalidInput, LeaseLost, Permanent
from batchmill.job import Job, JobServices, SyncJob
from batchmill.worker.attempt import Attempt
from batchmill.worker.processes import Processes
from batchmill.worker.processors import Processors

T = TypeVar("T")

DETOURS = (Advance, Snooze)

# Returns the outcome of the handler, or None if the handler recorded its own completion.
Runner = Callable[[Attempt], Coroutine[Any, Any, Outcome | None]]


class Tasks(Protocol):
    """The tasks that run here, by name, and a lookup for any task that a job may advance to."""

    @property
    def tasks(self) -> Mapping[str, Task[..., Any]]: ...
    def find(self, task: Task[..., Any] | str) -> Task[..., Any]: ...


class Runners:
    def __init__(
        self,
        tasks: Tasks,
        services: JobServices,
        *,
        threads: int,
        processes: int,
        warm_processes: int = 0,
        patience: float,
        processors: Processors,
    ):
        self._tasks = tasks
        self._services = services
        self._patience = patience
        self._processors = processors
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="batchmill-task")
        isolated = (task for task in tasks.tasks.values() if task.place is Place.PROCESS)
        self.processes = Processes(processes, warm=warm_processes, tasks=isolated)

    def runner_of(self, task: Task[..., Any]) -> Runner:
        match task.place:
            case Place.LOOP:
                return self._on_loop
            case Place.PROCESS:
                return self._in_process
            case _:
                return self._in_thread

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self.processes.close()

    async def _on_loop(self, attempt: Attempt) -> Outcome | None:
        claim, task = attempt.claim, attempt.task
        signature = task.signature
        payload = task.payload.load(claim.payload)
        job = Job(claim, self._services, task.result, task.timeout) if signature.takes_job else None
        attempt.begin(job)
        call = task.function(**signature.arguments(job, payload))
        if task.timeout is None:
            value = await call
        else:
            async with asyncio.timeout(task.timeout):
                value = await call
        if job is not None and job.is_recorded:
            return None
        if isinstance(value, DETOURS):
            return await self._advance_or_snooze(attempt, value)
        return outcome.completed(claim, task.dump_result(value))

    async def _in_thread(self, attempt: Attempt) -> Outcome:
        """The timeout starts with the handler, so waiting for a free thread does not count."""
        task, loop = attempt.task, asyncio.get_running_loop()
        payload = task.payload.load(attempt.claim.payload)
        channel = LoopChannel(attempt.claim, self._services)
        begun = asyncio.Event()

        def handle() -> Any:
            job = SyncJob(attempt.claim, channel, task.timeout)
            attempt.begin(job)
            loop.call_soon_threadsafe(begun.set)
            return task.function(**task.signature.arguments(job, payload))

        thread = self._threads.submit(copy_context().run, handle)
        call = asyncio.wrap_future(thread)
        call.add_done_callback(lambda _: begun.set())
        async with asyncio.timeout(None) as limit:
            try:
                await begun.wait()
                if task.timeout is not None:
                    limit.reschedule(loop.time() + task.timeout)
                value = await asyncio.shield(call)
            except asyncio.CancelledError:
                if not thread.cancel():
                    channel.stop()
                    await self._ask_to_stop(attempt, call)
                raise
        if isinstance(value, DETOURS):
            return await self._advance_or_snooze(attempt, value)
        return outcome.completed(attempt.claim, task.dump_result(value))

    async def _ask_to_stop(self, attempt: Attempt, call: asyncio.Future[Any]) -> None:
        """Asks a thread to stop, because it cannot be killed. Its slot stays occupied while this
        waits."""
        if attempt.job is not None:
            attempt.job.cancelled = True
        await asyncio.wait({call}, timeout=self._patience)
        if not call.done():
            self._processors.stuck_until(call, attempt)

    async def _in_process(self, attempt: Attempt) -> Outcome:
        claim, task = attempt.claim, attempt.task
        # The child loads the payload again. An invalid payload must not occupy a child.
        task.payload.load(claim.payload)
        match await self.processes.run(attempt, self._services):
            case {"result": result}:
                return outcome.completed(claim, result)
            case {"advance": name, "payload": payload}:
                target = self._tasks.find(name)
                return await self._advance(claim, target, target.payload.load(payload))
            case {"snooze": seconds}:
                return snooze(claim, task, seconds)
            case {"failure": parts}:
                return outcome.failed(claim, Failure(*parts), task.retry, random.random())
        raise AssertionError("unreachable")

    async def _advance_or_snooze(self, attempt: Attempt, asked: Advance | Snooze) -> Outcome:
        if isinstance(asked, Snooze):
            return snooze(attempt.claim, attempt.task, asked.seconds)
        target = self._tasks.find(asked.task)
        return await self._advance(attempt.claim, target, asked.payload)

    async def _advance(self, claim: Claim, target: Task[..., Any], payload: Any) -> Outcome:
        text = target.dump(payload)
        key = target.key_of(text)
        if target.name not in self._tasks.tasks:
            await self._require_fit(target.name, key, text)
        return outcome.advanced(claim, target.name, key, text)

    async def _require_fit(self, task: str, key: str, payload: str) -> None:
        """Checks the payload in the database: the task is not registered in this process."""
        try:
            await self._services.check_job(task, key, payload)
        except InvalidInput as error:
            raise Permanent(
                "This job cannot continue with its next stage.", code="cannot_advance"
            ) from error


class LoopChannel:
    """Forwards the calls of a handler in another thread to the event loop."""

    def __init__(self, claim: Claim, services: JobServices):
        self._claim = claim
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._entering: set[asyncio.Task[int]] = set()
        self._is_stopped = False

    def stop(self) -> None:
        """Wakes up a thread that waits for a limit. From now on, `enter_limit` raises LeaseLost."""
        self._is_stopped = True
        for entering in self._entering:
            entering.cancel()

    def report(self, progress: Progress) -> None:
        self._loop.call_soon_threadsafe(self._services.report, self._claim, progress)

    def save_checkpoint(self, name: str, value: str) -> None:
        saving = self._services.save_checkpoint(self._claim, name, value)
        asyncio.run_coroutine_threadsafe(saving, self._loop).result()

    def enter_limit(self, name: str) -> int:
        return asyncio.run_coroutine_threadsafe(self._enter(name), self._loop).result()

    def leave_limit(self, number: int) -> None:
        self._loop.call_soon_threadsafe(self._services.leave_limit, number)

    async def _enter(self, name: str) -> int:
        if not self._is_stopped:
            entering = asyncio.create_task(self._services.enter_limit(self._claim, name))
            self._entering.add(entering)
            entering.add_done_callback(self._entering.discard)
            with suppress(asyncio.CancelledError):
                return await entering
        raise LeaseLost(f'This attempt was stopped while it waited for the limit "{name}".')

    def save_artifact(self, name: str, path: Path, media_type: str | None) -> Artifact:
        return self._wait(lambda files: files.save(name, path, media_type=media_type))

    def artifact_path(self, id: UUID) -> Path:
        return self._wait(lambda files: files.path(id))

    def release_artifact(self, id: UUID) -> None:
        def release() -> None:
            self._services.artifacts(self._claim).release(id)

        self._loop.call_soon_threadsafe(release)

    def artifact_folder(self) -> Path:
        return self._wait(lambda files: files.folder())

    def _wait(self, ask: Callable[[JobArtifacts], Coroutine[Any, Any, T]]) -> T:
        async def answer() -> T:
            return await ask(self._services.artifacts(self._claim))

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result()


def snooze(claim: Claim, task: Task[..., Any], seconds: float) -> Outcome:
    if claim.snoozes >= task.max_snoozes:
        raise Permanent(
            f"This job was snoozed {claim.snoozes} times, which is the limit.",
            code="snoozed_too_often",
        )
    return outcome.snoozed(claim, seconds)
