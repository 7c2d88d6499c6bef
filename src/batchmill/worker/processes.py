"""Child processes for tasks with `process=True`. A crash, memory limit or kill affects one job."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
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
from batchmill.errors import BatchmillError, LeaseLost, Transient
from batchmill.job import JobServices
from batchmill.jobinfo import JobInfo
from batchmill.worker import supervisor
from batchmill.worker.attempt import Attempt
from batchmill.worker.watch import MARK, Watch

T = TypeVar("T")

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
        self.send({"path": sys.path})

    @property
    def has_ended(self) -> bool:
        """Whether an idle child has ended by itself. It sends nothing while it is idle, so there is
        only the end of the connection to read."""
        return self._conn.poll()

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
    """Runs at most `size` children. Each runs one job at a time and is replaced after
    `JOBS_PER_CHILD` jobs."""

    def __init__(self, size: int):
        self._slots = asyncio.Semaphore(size)
        self._idle: list[Child] = []
        # Two threads per child: one may wait for its answer while another kills it.
        self._threads = ThreadPoolExecutor(2 * size, thread_name_prefix="batchmill-child")

    async def run(self, attempt: Attempt, services: JobServices) -> dict[str, Any]:
        """Runs the attempt's handler in a child and returns the child's answer."""
        async with self._slots:
            child = await self._next_child()
            try:
                answer = await self._run_in_child(child, attempt, services)
            except BaseException as error:
                ending = await asyncio.shield(self._in_thread(child.kill))
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
            await self._in_thread(child.kill)

    async def close(self) -> None:
        for child in self._idle:
            child.kill()
        self._idle.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _next_child(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if not child.has_ended:
                return child
            await self._in_thread(child.kill)
        return await self._in_thread(Child)

    async def _run_in_child(
        self, child: Child, attempt: Attempt, services: JobServices
    ) -> dict[str, Any]:
        if attempt.span is not None:
            attempt.span.begin()
        await self._in_thread(child.send, _order(attempt))
        async with asyncio.timeout(IMPORT_TIMEOUT):
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
        if child.jobs >= JOBS_PER_CHILD or "failure" in answer or answer["left"]:
            # A handler that failed or left processes behind may have corrupted its own process.
            await self._in_thread(child.kill)
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


def _order(attempt: Attempt) -> dict[str, Any]:
    function = attempt.task.function
    module = function.__module__
    return {
        "module": module,
        "name": attempt.task.name,
        "main": sys.modules["__main__"].__file__ if module == "__main__" else None,
        "claim": attempt.claim,
        "memory": attempt.task.memory,
        "timeout": attempt.task.timeout,
        "traceparent": attempt.span.traceparent if attempt.span else None,
    }
