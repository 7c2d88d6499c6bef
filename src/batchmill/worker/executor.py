"""Runs attempts: payload → handler → outcome. Every way an attempt can end is one clause here."""

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
from batchmill.worker.runners import Runners

if TYPE_CHECKING:
    from batchmill.telemetry.spans import Spans

log = logging.getLogger("batchmill.worker")

AHEAD = 0.1
LATE = 1.0

OnEnd = Callable[[Attempt, Outcome | None], None]


class Pace:
    """How many attempts end in a second, lately: it rises at once and sinks by halves.

    It is asked for far less often than attempts end, so only that reads the clock.
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
    """`concurrency` attempts run at once; those claimed beyond that wait here for their turn."""

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
        spans: "Spans | None" = None,
    ):
        self._tasks = tasks
        self._runs = {name: runners.runner_of(task) for name, task in tasks.items()}
        self._on_end = on_end
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._left = {name: pools.get(name, concurrency + prefetch) for name in tasks}
        self._patience = patience
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
        """How many attempts could run now, and how many more may wait here: what the slots get
        through in a moment, if handlers are short. Half of it has to be used up first, since jobs
        cost less by the block."""
        free = max(0, self._free - self._expected)
        waiting = len(self._waiting) + max(0, self._expected - self._free)
        spare = self._may_wait() - waiting
        return free, spare if free or spare > waiting else 0

    @contextmanager
    def expecting(self, demand: Demand | None) -> Iterator[None]:
        """Keeps the room for what a claim may bring while it is under way."""
        count = demand.want + demand.spare if demand else 0
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
        """How many of each task there is room for in its pool."""
        return {name: count for name, count in self._left.items() if count > 0}

    def start(self, claim: Claim) -> None:
        """At once if a slot is free, else in its turn."""
        attempt = Attempt(claim, self._tasks[claim.task])
        self._attempts[claim.fence] = attempt
        self._left[claim.task] -= 1
        if self._free:
            self._free -= 1
            self._begin(attempt)
        else:
            self._waiting.append(attempt)

    def interrupt(self, stop: Stop, which: Callable[[Claim], bool] = lambda _: True) -> None:
        """Stops attempts. One that does not stop is left behind."""
        for attempt in list(self._attempts.values()):
            if which(attempt.claim):
                self._interrupt(attempt, stop)
                self._loop.call_later(self._patience, self._abandon, attempt)

    def release_waiting(self) -> None:
        """Gives back what has not begun."""
        for attempt in list(self._attempts.values()):
            if attempt.begun_at is None:
                self._interrupt(attempt, Stop.RELEASED)

    def release_late(self) -> None:
        """Gives back those whose turn will not come soon, as what runs takes longer than expected:
        other workers may begin them."""
        in_time = int(self._pace.per_second() * LATE)
        while len(self._waiting) > in_time:
            self._interrupt(self._waiting.pop(), Stop.RELEASED)

    async def emptied(self) -> None:
        while self._attempts:
            self.freed.clear()
            await self.freed.wait()

    def _may_wait(self) -> int:
        """None, unless so many end in a moment that some slot has ended two: a job that takes its
        time must be left to a worker that can begin it."""
        soon = int(self._pace.per_second() * AHEAD)
        return min(self._prefetch, soon) if soon > self._concurrency else 0

    def _begin(self, attempt: Attempt) -> None:
        """In a context of its own: the one before, which may begin it, leaves nothing behind."""
        if self._spans is not None:
            attempt.span = self._spans.run(attempt.claim)
        attempt.running = self._loop.create_task(
            self._run(attempt),
            name=f"{attempt.claim.task}, job {attempt.claim.id}",
            context=self._context.copy(),
        )

    def _begin_next(self) -> None:
        """Hands a slot on to whoever has waited longest."""
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
        """One that waits has nothing to stop: it ends here and now, and its turn is skipped."""
        attempt.interrupt(stop)
        if attempt.is_waiting:
            self._end(attempt, _stopped(attempt))

    def _abandon(self, attempt: Attempt) -> None:
        """The handler goes on although it was told to stop; nothing it does counts any more."""
        if not attempt.is_over:
            log.warning(
                "Task %s does not stop (job %d): left behind.", attempt.task.name, attempt.claim.id
            )
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
