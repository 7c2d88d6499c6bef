"""Runs attempts: payload → handler → outcome. Every way an attempt can end is one clause here."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

from batchmill.domain import outcome
from batchmill.domain.failure import Failure, classify
from batchmill.domain.job import Claim
from batchmill.domain.outcome import Outcome
from batchmill.domain.task import Task
from batchmill.worker.attempt import Attempt, Stop
from batchmill.worker.runners import Runners

log = logging.getLogger("batchmill.worker")

AHEAD = 0.1

OnEnd = Callable[[Attempt, Outcome | None], None]


class Pace:
    """How many attempts end in a second, lately."""

    def __init__(self) -> None:
        self.per_second = 0.0
        self._counted = 0
        self._since = time.monotonic()

    def count(self) -> None:
        self._counted += 1
        passed = time.monotonic() - self._since
        if passed >= AHEAD:
            self.per_second = (self.per_second + self._counted / passed) / 2
            self._counted, self._since = 0, time.monotonic()


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
    ):
        self._tasks = tasks
        self._runners = runners
        self._on_end = on_end
        self._concurrency = concurrency
        self._prefetch = prefetch
        self._pools = {name: pools.get(name, concurrency + prefetch) for name in tasks}
        self._patience = patience
        self._slots = asyncio.Semaphore(concurrency)
        self._attempts: dict[int, Attempt] = {}
        self._pace = Pace()
        self.freed = asyncio.Event()

    @property
    def attempts(self) -> Collection[Attempt]:
        return self._attempts.values()

    def room(self) -> tuple[int, int]:
        """How many attempts could run now, and how many more may wait here.

        No more wait than get done in a moment: where handlers take their time, none do.
        """
        ahead = min(self._prefetch, int(self._pace.per_second * AHEAD))
        want = max(0, self._concurrency - len(self._attempts))
        spare = max(0, self._concurrency + ahead - len(self._attempts)) - want
        return want, spare

    def wants(self) -> dict[str, int]:
        """How many of each task there is room for in its pool."""
        left = dict(self._pools)
        for attempt in self._attempts.values():
            left[attempt.claim.task] -= 1
        return {name: count for name, count in left.items() if count > 0}

    def start(self, claim: Claim) -> None:
        attempt = Attempt(claim, self._tasks[claim.task])
        self._attempts[claim.fence] = attempt
        attempt.running = asyncio.create_task(
            self._run(attempt), name=f"{claim.task}, job {claim.id}"
        )

    def interrupt(self, stop: Stop, which: Callable[[Claim], bool] = lambda _: True) -> None:
        """Stops attempts. One that does not stop is left behind."""
        for attempt in list(self._attempts.values()):
            if which(attempt.claim):
                attempt.interrupt(stop)
                asyncio.get_running_loop().call_later(self._patience, self._abandon, attempt)

    def release_waiting(self) -> None:
        """Gives back what has not begun."""
        for attempt in list(self._attempts.values()):
            if not attempt.has_begun:
                attempt.interrupt(Stop.RELEASED)

    async def emptied(self) -> None:
        while self._attempts:
            self.freed.clear()
            await self.freed.wait()

    async def _run(self, attempt: Attempt) -> None:
        try:
            async with self._slots:
                ended = await self._outcome(attempt)
        except asyncio.CancelledError:
            ended = _stopped(attempt)
        self._end(attempt, ended)

    async def _outcome(self, attempt: Attempt) -> Outcome | None:
        try:
            payload = attempt.task.payload.load(attempt.claim.payload)
            return await self._runners.run(attempt, payload)
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            if attempt.stop is not None:
                return _stopped(attempt)
            failure = classify(error, attempt.task.rules, now=datetime.now(UTC))
            return self._failed(attempt, failure)

    def _failed(self, attempt: Attempt, failure: Failure) -> Outcome:
        return outcome.failed(attempt.claim, failure, attempt.task.retry, random.random())

    def _end(self, attempt: Attempt, ended: Outcome | None) -> None:
        if attempt.is_over:
            return
        attempt.is_over = True
        del self._attempts[attempt.claim.fence]
        self._pace.count()
        self.freed.set()
        self._on_end(attempt, ended)

    def _abandon(self, attempt: Attempt) -> None:
        """The handler goes on although it was told to stop; nothing it does counts any more."""
        if not attempt.is_over:
            log.warning(
                "Task %s does not stop (job %d): left behind.", attempt.task.name, attempt.claim.id
            )
            self._end(attempt, _stopped(attempt))


def _stopped(attempt: Attempt) -> Outcome | None:
    match attempt.stop:
        case Stop.RELEASED:
            return outcome.released(attempt.claim)
        case Stop.CANCELLED:
            return outcome.cancelled(attempt.claim)
        case _:
            return None
