"""The executor without a database: slots, waiting claims, pools and prefetch."""

import asyncio
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any, cast

import pytest

from batchmill import Mill
from batchmill.domain.demand import Demand
from batchmill.domain.job import Claim
from batchmill.job import JobServices
from batchmill.worker import executor as module
from batchmill.worker.attempt import Stop
from batchmill.worker.executor import AHEAD, Executor, Pace
from batchmill.worker.processors import Processors
from batchmill.worker.runners import Runners
from tests.library.tools import until

MARK = ContextVar("MARK", default=0)


class Harness:
    """An executor whose handlers run until `end_jobs` is called."""

    def __init__(self, concurrency: int = 2) -> None:
        mill = Mill("postgresql:///none")
        self.begun: list[int] = []
        self.marks: list[int] = []
        self.ended: list[tuple[int, str | None]] = []
        self._gates = {n: asyncio.Event() for n in range(1, 100)}

        @mill.task
        async def work(n: int) -> None:
            self.begun.append(n)
            self.marks.append(MARK.get())
            await self._gates[n].wait()

            MARK.set(n)

        @mill.task
        async def ignores_cancel(n: int) -> None:
            while not self._gates[n].is_set():
                try:
                    await self._gates[n].wait()
                except asyncio.CancelledError:
                    continue

        self.processors = Processors({"ignores_cancel"})
        self.runners = Runners(
            mill.engine.registry,
            cast(JobServices, None),
            threads=1,
            processes=1,
            patience=0.01,
            processors=self.processors,
        )
        self.executor = Executor(
            mill.tasks,
            self.runners,
            lambda attempt, ended: self.ended.append((attempt.claim.id, ended and ended.kind)),
            concurrency=concurrency,
            prefetch=1_000,
            pools={"ignores_cancel": 2},
            patience=0.01,
            processors=self.processors,
        )

    def start(self, *jobs: int, task: str = "work") -> None:
        for job in jobs:
            self.executor.start(Claim(job, job, 1, 1, str(job), task=task))

    async def end_jobs(self, *jobs: int) -> None:
        for job in jobs:
            self._gates[job].set()
        await settled()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    harness = Harness()
    yield harness
    harness.executor.interrupt(Stop.LOST)
    await harness.executor.emptied()
    await harness.runners.close()


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


async def test_claims_start_in_order_as_slots_become_free(harness: Harness) -> None:
    harness.start(1, 2, 3, 4, 5)
    await settled()
    assert harness.begun == [1, 2]
    await harness.end_jobs(2)
    assert harness.begun == [1, 2, 3]
    await harness.end_jobs(1, 3)
    assert harness.begun == [1, 2, 3, 4, 5]
    await harness.end_jobs(4, 5)
    assert harness.ended == [(job, "completed") for job in (2, 1, 3, 4, 5)]
    assert harness.executor.room()[0] == 2


async def test_a_handler_does_not_see_context_variables_of_another_handler(
    harness: Harness,
) -> None:
    harness.start(1, 2, 3, 4)
    await settled()
    await harness.end_jobs(1, 2)
    assert harness.begun == [1, 2, 3, 4]
    assert harness.marks == [0, 0, 0, 0]


async def test_waiting_claims_are_released_without_starting(harness: Harness) -> None:
    harness.start(1, 2, 3, 4)
    await settled()
    harness.executor.release_waiting()
    assert harness.ended == [(3, "release"), (4, "release")]
    await harness.end_jobs(1, 2)
    assert harness.begun == [1, 2]
    assert not harness.executor.attempts


async def test_a_waiting_claim_that_is_cancelled_never_starts(harness: Harness) -> None:
    harness.start(1, 2, 3, 4)
    await settled()
    harness.executor.interrupt(Stop.CANCELLED, lambda claim: claim.id == 3)
    assert harness.ended == [(3, "cancelled")]
    await harness.end_jobs(1)
    assert harness.begun == [1, 2, 4]


async def test_an_attempt_stopped_before_its_first_step_frees_its_slot(harness: Harness) -> None:
    harness.start(1, 2, 3, 4)
    harness.executor.interrupt(Stop.CANCELLED, lambda claim: claim.id < 3)
    await settled()
    assert harness.ended == [(1, "cancelled"), (2, "cancelled")]
    assert harness.begun == [3, 4]


async def test_an_abandoned_handler_keeps_its_slot_until_it_ends(harness: Harness) -> None:
    harness.start(1, task="ignores_cancel")
    harness.start(2, 3)
    await settled()
    harness.executor.interrupt(Stop.CANCELLED, lambda claim: claim.id == 1)
    await until(lambda: harness.ended)
    assert harness.ended == [(1, "cancelled")]
    assert harness.begun == [2] and harness.executor.room()[0] == 0
    await harness.end_jobs(1)
    assert harness.begun == [2, 3] and harness.ended == [(1, "cancelled")]


async def test_a_pool_counts_running_and_waiting_claims(harness: Harness) -> None:
    everything = 2 + 1_000
    assert harness.executor.wants() == {"work": everything, "ignores_cancel": 2}
    harness.start(1, 2, 3)
    harness.start(4, 5, task="ignores_cancel")
    assert harness.executor.wants() == {"work": everything - 3}
    harness.executor.release_waiting()
    assert harness.executor.wants() == {"work": everything, "ignores_cancel": 2}


class Pacing:
    """An executor with a controlled clock and a controlled number of ended attempts."""

    def __init__(self, clock: Clock, slots: int) -> None:
        self._clock = clock
        self.harness = Harness(slots)
        self.pace: Any = self.harness.executor._pace

    def pass_time(self, seconds: float, *, ended: int) -> tuple[int, int]:
        self._clock.now += seconds
        self.pace.ended += ended
        return self.harness.executor.room()


async def test_nothing_is_prefetched_for_slow_handlers(clock: Clock) -> None:
    """Not even when all of them end at the same time."""
    pacing = Pacing(clock, slots=200)
    assert pacing.pass_time(1.0, ended=200) == (200, 0)
    assert pacing.pass_time(AHEAD, ended=200) == (200, 0)


async def test_prefetch_follows_the_pace_of_short_handlers(clock: Clock) -> None:
    pacing = Pacing(clock, slots=50)
    assert pacing.pass_time(AHEAD, ended=200) == (50, 200)
    assert pacing.pass_time(AHEAD, ended=100_000) == (50, 1_000), "no more than `prefetch`"
    assert pacing.pass_time(60, ended=0) == (50, 0)


async def test_prefetch_starts_when_more_attempts_than_slots_have_ended(clock: Clock) -> None:
    pacing = Pacing(clock, slots=50)
    assert pacing.pass_time(AHEAD / 4, ended=50) == (50, 0)
    assert pacing.pass_time(AHEAD / 4, ended=1) == (50, 102)


async def test_claims_that_would_wait_too_long_are_released_last_first(clock: Clock) -> None:
    pacing = Pacing(clock, slots=1)
    harness = pacing.harness
    harness.start(1, 2, 3, 4)
    pacing.pass_time(1.0, ended=2)
    harness.executor.release_late()
    assert harness.ended == [(4, "release")]
    pacing.pass_time(60.0, ended=0)
    harness.executor.release_late()
    assert harness.ended == [(4, "release"), (3, "release"), (2, "release")]
    await settled()
    await harness.end_jobs(1)
    assert harness.begun == [1]


def test_pace_rises_at_once_and_decays_by_halves(clock: Clock) -> None:
    pace = Pace(slots=1)
    pace.ended, clock.now = 100, clock.now + AHEAD
    assert pace.per_second() == pytest.approx(1_000)
    clock.now += AHEAD
    assert pace.per_second() == pytest.approx(500)
    clock.now += 3 * AHEAD
    assert pace.per_second() == pytest.approx(62.5)


async def test_room_is_reserved_for_a_claim_in_flight(harness: Harness) -> None:
    demand = Demand(7, {"ignores_cancel": 2, "work": 5}, 2)
    with harness.executor.expecting(demand):
        assert harness.executor.room() == (0, 0)
        assert "ignores_cancel" not in harness.executor.wants(), "its pool has room for two"
    assert harness.executor.room() == (2, 0)
    assert harness.executor.wants()["ignores_cancel"] == 2
