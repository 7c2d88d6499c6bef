"""Child processes for tasks with `process=True`. A crash, memory limit or kill affects one job."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from batchmill.domain.artifact import Artifact
from batchmill.domain.job import Progress
from batchmill.domain.task import Task
from batchmill.errors import BatchmillError, LeaseLost, Transient
from batchmill.job import JobServices
from batchmill.jobinfo import JobInfo
from batchmill.worker import supervisor
from batchmill.worker.attempt import Attempt
from batchmill.worker.watch import MARK, Watch

T = TypeVar("T")

log = logging.getLogger("batchmill.worker")

CHILD = "batchmill.worker.child"
JOBS_PER_CHILD = 100
# A child imports the application before its handler starts. The task's timeout excludes this.
IMPORT_TIMEOUT = 120.0
ANSWERS = {"result", "advance", "snooze", "failure"}


class Child:
    def __init__(self) -> None:
        (ours, theirs), (control, stdin) = socket.socketpair(), socket.socketpair()
        is_supervised = supervisor.is_available()
        numbers = [theirs.fileno(), *([os.getpid()] if is_supervised else [])]
        mark = uuid4().hex
        with theirs, stdin:
            self._process = subprocess.Popen(
                [sys.executable, "-m", CHILD, *map(str, numbers)],
                pass_fds=[theirs.fileno()],
                stdin=stdin.fileno(),
                env=os.environ | {MARK: mark},
                start_new_session=True,
            )
        self._conn = Connection(ours.detach())
        self._watch = (
            Watch(self._process, mark, control, self._conn.fileno()) if is_supervised else None
        )
        self.jobs = 0
        self.last_task = ""
        self.preparing: asyncio.Future[None] | None = None
        self.send({"path": sys.path})

    @property
    def has_ended(self) -> bool:
        """Whether an idle child has ended by itself. It sends nothing while it is idle, so there is
        only the end of the connection to read. It is not idle before it is prepared."""
        is_prepared = self.preparing is None or self.preparing.done()
        return is_prepared and self._conn.poll()

    def send(self, message: dict[str, Any]) -> None:
        self._conn.send_bytes(json.dumps(message).encode())

    def receive(self) -> dict[str, Any]:
        return json.loads(self._conn.recv_bytes())

    def kill(self) -> str:
        """Kills the process and its descendants. Returns how it ended, which may be earlier."""
        if self._watch:
            self._watch.end()
        else:
            self._kill_group()
        code = self._process.wait()
        self._conn.close()
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _kill_group(self) -> None:
        # The kernel does not reuse a process id before `wait`, even if the process has ended.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


class Processes:
    """Runs jobs in at most `size` children at once. A child runs one job at a time and is replaced
    after `JOBS_PER_CHILD` jobs. At least `warm` children are started in advance, and prepared for
    the `tasks`."""

    def __init__(self, size: int, *, warm: int = 0, tasks: Iterable[Task[..., Any]] = ()):
        self._size = size
        self._warm = min(warm, size)
        self._preparation = {"prepare": [_source(task) for task in tasks]} if warm else {}
        self._slots = asyncio.Semaphore(size)
        self._alive = 0
        self._idle: list[Child] = []
        self._warming: asyncio.Task[None] | None = None
        # Two threads per child: one may wait for its answer while another kills it. One more child
        # may be starting in advance.
        self._threads = ThreadPoolExecutor(2 * size + 2, thread_name_prefix="batchmill-child")

    def warm_up(self) -> None:
        """Starts children in the background, if there are too few."""
        if self._alive < self._warm and (self._warming is None or self._warming.done()):
            self._warming = asyncio.create_task(self._start_children(), name="batchmill.children")

    def stop_warming(self) -> None:
        """Starts no more children in advance."""
        self._warm = 0

    async def run(self, attempt: Attempt, services: JobServices) -> dict[str, Any]:
        """Runs the attempt's handler in a child and returns the child's answer."""
        async with self._slots:
            child = await self._next_child()
            try:
                answer = await self._run_in_child(child, attempt, services)
            except BaseException as error:
                ending = await asyncio.shield(self._end(child))
                if isinstance(error, EOFError | ConnectionError):
                    raise Transient(
                        f"The process that ran this job ended unexpectedly ({ending}).",
                        code="crashed",
                    ) from error
                raise
            child.last_task = attempt.task.name
            await self._put_back(child, answer)
            return answer

    def dead(self) -> dict[Child, str]:
        """The idle children that have ended by themselves, with the task that each has run last."""
        return {child: child.last_task for child in self._idle if child.has_ended}

    async def remove_dead(self) -> None:
        """Removes the children that have ended, so that the next jobs get new ones."""
        dead = self.dead()
        self._idle = [child for child in self._idle if child not in dead]
        for child in dead:
            await self._end(child)

    async def close(self) -> None:
        self.stop_warming()
        self._kill_idle()
        if self._warming is not None:
            await asyncio.wait({self._warming})
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _next_child(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if not child.has_ended:
                return child
            await self._end(child)
        return await self._new_child()

    async def _new_child(self) -> Child:
        self._alive += 1
        starting = asyncio.ensure_future(self._in_thread(Child))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.shield(self._end_started(starting))
            raise
        except BaseException:
            self._alive -= 1
            raise

    async def _end_started(self, starting: asyncio.Future[Child]) -> None:
        """Ends a child that nobody waits for any more."""
        try:
            child = await starting
        except Exception:
            self._alive -= 1
        else:
            await self._end(child)

    async def _start_children(self) -> None:
        """One after the other, so that the first one is ready soon. A job that gets a child
        meanwhile waits for the rest of its preparation."""
        while self._alive < self._warm:
            try:
                child = await self._new_child()
            except OSError as error:
                log.warning("Cannot start a child process in advance: %s", error)
                return
            if not self._warm:
                await self._end(child)
                return
            child.preparing = asyncio.ensure_future(self._prepare(child))
            # Those that have run a job are used first.
            self._idle.insert(0, child)
            await asyncio.wait({child.preparing})

    async def _prepare(self, child: Child) -> None:
        # If it ends meanwhile, the next job or the next reset replaces it.
        with suppress(OSError, EOFError):
            await self._in_thread(child.send, self._preparation)
            await self._in_thread(child.receive)

    def _kill_idle(self) -> None:
        while self._idle:
            self._idle.pop().kill()

    async def _end(self, child: Child) -> str:
        """Kills a child and returns how it ended. Another one may be started for it."""
        try:
            return await self._in_thread(child.kill)
        finally:
            self._alive -= 1
            self.warm_up()

    async def _run_in_child(
        self, child: Child, attempt: Attempt, services: JobServices
    ) -> dict[str, Any]:
        if attempt.span is not None:
            attempt.span.begin()
        async with asyncio.timeout(IMPORT_TIMEOUT):
            if child.preparing is not None:
                await asyncio.shield(child.preparing)
            await self._in_thread(child.send, _order(attempt))
            message = await self._in_thread(child.receive)
        attempt.begin(JobInfo(attempt.claim))
        async with asyncio.timeout(attempt.task.timeout):
            while not message.keys() & ANSWERS:
                await self._handle(child, attempt, services, message)
                message = await self._in_thread(child.receive)
        return message

    async def _handle(
        self, child: Child, attempt: Attempt, services: JobServices, message: dict[str, Any]
    ) -> None:
        match message:
            case {"progress": progress}:
                services.report(attempt.claim, Progress(*progress))
            case {"use": name, "amount": amount}:
                assert attempt.job is not None
                attempt.job.use(name, Decimal(amount))
            case {"checkpoint": name, "value": value}:
                kept = await _kept(services, attempt, name, value)
                await self._in_thread(child.send, {"kept": kept})
            case {"enter": name}:
                number = await _answer(services.enter_limit(attempt.claim, name), int)
                await self._in_thread(child.send, number)
            case {"leave": number}:
                services.leave_limit(number)
            case {"save": name, "path": path, "media_type": kind}:
                files = services.artifacts(attempt.claim)
                saved = await _answer(files.save(name, Path(path), media_type=kind), _written)
                await self._in_thread(child.send, saved)
            case {"fetch": id}:
                path = await _answer(services.artifacts(attempt.claim).path(id), str)
                await self._in_thread(child.send, path)
            case {"release": id}:
                services.artifacts(attempt.claim).release(id)
            case {"folder": True}:
                path = await _answer(services.artifacts(attempt.claim).folder(), str)
                await self._in_thread(child.send, path)

    async def _put_back(self, child: Child, answer: dict[str, Any]) -> None:
        child.jobs += 1
        is_spare = self._alive > self._size
        is_worn = child.jobs >= JOBS_PER_CHILD
        # A handler that failed or left processes behind may have corrupted its own process.
        if is_spare or is_worn or "failure" in answer or answer["left"]:
            await self._end(child)
        else:
            self._idle.append(child)

    async def _in_thread(self, function: Callable[..., T], *args: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)


async def _kept(services: JobServices, attempt: Attempt, name: str, value: str) -> bool:
    try:
        await services.save_checkpoint(attempt.claim, name, value)
    except LeaseLost:
        return False
    return True


async def _answer(work: Awaitable[T], written: Callable[[T], Any]) -> dict[str, Any]:
    try:
        return {"done": written(await work)}
    except BatchmillError as error:
        return {"refused": error.code, "message": str(error)}


def _written(reference: Artifact) -> dict[str, Any]:
    return asdict(reference) | {"artifact": str(reference.artifact)}


def _source(task: Task[..., Any]) -> dict[str, Any]:
    """Where a child finds the task."""
    module = task.function.__module__
    main = sys.modules["__main__"].__file__ if module == "__main__" else None
    return {"module": module, "name": task.name, "main": main}


def _order(attempt: Attempt) -> dict[str, Any]:
    return {
        **_source(attempt.task),
        "claim": attempt.claim,
        "memory": attempt.task.memory,
        "timeout": attempt.task.timeout,
        "traceparent": attempt.span.traceparent if attempt.span else None,
    }
