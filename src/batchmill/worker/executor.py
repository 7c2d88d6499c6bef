"""Runs attempts: payload → handler → outcome. Handles every way an attempt can end."""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from batchmill.domain import outcome
from batchmill.domain.demand import Demand
from batchmill.domain.failure import classify
from batchmill.domain.job import Claim
from batchmill.domain.outcome import Outcome
from batchmill.domain.task import Task
from batchmill.worker.attempt import Attempt, Stop
from batchmill.worker.processors import Processors
from batchmill.worker.runners import Runners

if TYPE_CHECKING:
    from batchmill.telemetry.spans import Spans

log = logging.getLogger("batchmill.worker")

AHEAD = 0.1
LATE = 1.0

OnEnd = Callable[[Attempt, Outcome | None], None]


class Pace:
    """The recent number of attempts that end per second. It rises at once and decays by halves.

    Only `per_second` reads the clock, because it is called far less often than attempts end.
    """

    def __init__(self, slots: int) -> None:
        self.ended = 0
        self._slots = slots
        self._per_second = 0.0
        self._since = time.monotonic()

    def per_second(self) -> float:
        passed = time.monotonic() - self._since
        if passed >= AHEAD or (passed and self.ended > self._slots):
            now = self.ended / passed
            before = self._per_second * 0.5 ** (passed / AHEAD)
            self._per_second = max(now, before)
            self.ended, self._since = 0, self._since + passed
        return self._per_second


class Executor:
    """Runs up to `concurrency` attempts at once. Prefetched attempts wait here for a free slot."""

    def __init__(
        self,
        tasks: dict[str, Task[..., Any]],
        runners: Runners,
        on_end: OnEnd,
        *,
        concurrency: int,
        prefetch: int,
        pools: dict[str, int],
        patience: float,
        processors: Processors,
        spans: "Spans | None" = None,
    ):
        self._tasks = tasks
        self._runs = {name: runners.runner_of(task) for name, task in tasks.items()}
        self._on_end = on_end
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._left = {name: pools.get(name, concurrency + prefetch) for name in tasks}
        self._patience = patience
        self._processors = processors
        self._spans = spans
        self._free = concurrency
        self._expected = 0
        self._attempts: dict[int, Attempt] = {}
        self._waiting: deque[Attempt] = deque()
        self._pace = Pace(concurrency)
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self.freed = asyncio.Event()

    @property
    def attempts(self) -> Collection[Attempt]:
        return self._attempts.values()

    def room(self) -> tuple[int, int]:
        """Returns how many attempts can start now, and how many more can be prefetched.

        If handlers are short, the prefetch covers what the slots finish within `AHEAD` seconds. It
        is refilled only when it is half empty, because large blocks cost less per job."""
        free = max(0, self._free - self._expected)
        waiting = len(self._waiting) + max(0, self._expected - self._free)
        ahead = self._may_wait() - waiting
        return free, ahead if free or ahead > waiting else 0

    @contextmanager
    def expecting(self, demand: Demand | None) -> Iterator[None]:
        """Reserves room for the jobs of a claim while it is in flight."""
        count = demand.want + demand.prefetch if demand else 0
        kept = {task: min(most, count) for task, most in demand.wants.items()} if demand else {}
        self._keep(count, kept)
        try:
            yield
        finally:
            self._keep(-count, {task: -most for task, most in kept.items()})

    def _keep(self, count: int, of_tasks: Mapping[str, int]) -> None:
        self._expected += count
        for task, most in of_tasks.items():
            self._left[task] -= most

    def wants(self) -> dict[str, int]:
        """Returns the free places in the pool of each task."""
        return {name: count for name, count in self._left.items() if count > 0}

    def start(self, claim: Claim) -> None:
        """Starts the attempt if a slot is free. Otherwise, queues it."""
        attempt = Attempt(claim, self._tasks[claim.task])
        self._attempts[claim.fence] = attempt
        self._left[claim.task] -= 1
        if self._free:
            self._free -= 1
            self._begin(attempt)
        else:
            self._waiting.append(attempt)

    def interrupt(self, stop: Stop, which: Callable[[Claim], bool] = lambda _: True) -> None:
        """Stops attempts. An attempt that does not stop in time is abandoned."""
        for attempt in list(self._attempts.values()):
            if which(attempt.claim):
                self._interrupt(attempt, stop)
                self._loop.call_later(self._patience, self._abandon, attempt)

    def release_waiting(self) -> None:
        """Releases the attempts whose handlers have not started."""
        for attempt in list(self._attempts.values()):
            if attempt.begun_at is None:
                self._interrupt(attempt, Stop.RELEASED)

    def release_late(self) -> None:
        """Releases queued attempts that will not start soon, because running ones take longer than
        expected. Other workers can then start them."""
        in_time = int(self._pace.per_second() * LATE)
        while len(self._waiting) > in_time:
            self._interrupt(self._waiting.pop(), Stop.RELEASED)

    async def emptied(self) -> None:
        while self._attempts:
            self.freed.clear()
            await self.freed.wait()

    def _may_wait(self) -> int:
        """Returns how many attempts may be prefetched: 0, unless more attempts end within `AHEAD`
        seconds than there are slots. A slow job must go to a worker that can start it at once."""
        soon = int(self._pace.per_second() * AHEAD)
        return min(self._prefetch, soon) if soon > self._concurrency else 0

    def _begin(self, attempt: Attempt) -> None:
        """Starts the attempt in its own context, because the previous attempt may call this and its
        context variables must not leak."""
        if self._spans is not None:
            attempt.span = self._spans.run(attempt.claim)
        attempt.running = self._loop.create_task(
            self._run(attempt),
            name=f"{attempt.claim.task}, job {attempt.claim.id}",
            context=self._context.copy(),
        )

    def _begin_next(self) -> None:
        """Gives the free slot to the attempt that has waited longest."""
        self._pace.ended += 1
        while self._waiting:
            attempt = self._waiting.popleft()
            if not attempt.is_over:
                self._begin(attempt)
                return
        self._free += 1

    async def _run(self, attempt: Attempt) -> None:
        attempt.is_waiting = False
        try:
            ended = None if attempt.is_over else await self._runs[attempt.claim.task](attempt)
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            ended = _failed(attempt, error) if attempt.stop is None else _stopped(attempt)
        finally:
            self._begin_next()
        self._end(attempt, ended)

    def _end(self, attempt: Attempt, ended: Outcome | None) -> None:
        if attempt.is_over:
            return
        attempt.is_over = True
        del self._attempts[attempt.claim.fence]
        self._left[attempt.claim.task] += 1
        self.freed.set()
        self._on_end(attempt, ended)

    def _interrupt(self, attempt: Attempt, stop: Stop) -> None:
        """Interrupts an attempt. A queued attempt has nothing to stop, so it ends at once."""
        attempt.interrupt(stop)
        if attempt.is_waiting:
            self._end(attempt, _stopped(attempt))

    def _abandon(self, attempt: Attempt) -> None:
        """Ends an attempt whose handler ignores the stop request. Its later writes are refused."""
        if not attempt.is_over:
            log.warning(
                "The handler of task %s (job %d) does not stop. Its attempt ends without it.",
                attempt.task.name,
                attempt.claim.id,
            )
            if attempt.running is not None:
                self._processors.stuck_until(attempt.running, attempt)
            self._end(attempt, _stopped(attempt))


def _failed(attempt: Attempt, error: BaseException) -> Outcome:
    task = attempt.task
    failure = classify(error, task.rules, now=datetime.now(UTC))
    return outcome.failed(attempt.claim, failure, task.retry, random.random())


def _stopped(attempt: Attempt) -> Outcome | None:
    match attempt.stop:
        case Stop.RELEASED:
            return outcome.released(attempt.claim)
        case Stop.CANCELLED:
            return outcome.cancelled(attempt.claim)
        case _:
            return None
