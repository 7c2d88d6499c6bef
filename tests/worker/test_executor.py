"""Slots and turns, without a database: what the executor does with claims between two calls."""

import asyncio
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any, cast

import pytest

from batchmill import Mill
from batchmill.domain.demand import Demand
from batchmill.domain.job import Claim
from batchmill.job import Desk
from batchmill.worker import executor as module
from batchmill.worker.attempt import Stop
from batchmill.worker.executor import AHEAD, Executor, Pace
from batchmill.worker.runners import Runners
from tests.library.tools import until

MARK = ContextVar("MARK", default=0)


class Stand:
    """An executor of two slots, whose handlers go on until they are let go."""

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
        async def deaf(n: int) -> None:
            while not self._gates[n].is_set():
                try:
                    await self._gates[n].wait()
                except asyncio.CancelledError:
                    continue

        self.runners = Runners(
            mill.engine.registry, cast(Desk, None), threads=1, processes=1, patience=0.01
        )
        self.executor = Executor(
            mill.tasks,
            self.runners,
            lambda attempt, ended: self.ended.append((attempt.claim.id, ended and ended.kind)),
            concurrency=concurrency,
            prefetch=1_000,
            pools={"deaf": 2},
            patience=0.01,
        )

    def start(self, *jobs: int, task: str = "work") -> None:
        for job in jobs:
            self.executor.start(Claim(job, job, 1, 1, str(job), task=task))

    async def let_go(self, *jobs: int) -> None:
        for job in jobs:
            self._gates[job].set()
        await settled()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    stand = Stand()
    yield stand
    stand.executor.interrupt(Stop.LOST)
    await stand.executor.emptied()
    await stand.runners.close()


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


async def test_claims_begin_in_their_order_as_slots_are_freed(stand: Stand) -> None:
    stand.start(1, 2, 3, 4, 5)
    await settled()
    assert stand.begun == [1, 2]
    await stand.let_go(2)
    assert stand.begun == [1, 2, 3]
    await stand.let_go(1, 3)
    assert stand.begun == [1, 2, 3, 4, 5]
    await stand.let_go(4, 5)
    assert stand.ended == [(job, "completed") for job in (2, 1, 3, 4, 5)]
    assert stand.executor.room()[0] == 2


async def test_a_handler_sees_no_context_of_the_one_before_it(stand: Stand) -> None:
    stand.start(1, 2, 3, 4)
    await settled()
    await stand.let_go(1, 2)
    assert stand.begun == [1, 2, 3, 4]
    assert stand.marks == [0, 0, 0, 0]


async def test_one_that_waits_is_given_back_without_having_begun(stand: Stand) -> None:
    stand.start(1, 2, 3, 4)
    await settled()
    stand.executor.release_waiting()
    assert stand.ended == [(3, "release"), (4, "release")]
    await stand.let_go(1, 2)
    assert stand.begun == [1, 2]
    assert not stand.executor.attempts


async def test_a_turn_that_was_cancelled_is_skipped(stand: Stand) -> None:
    stand.start(1, 2, 3, 4)
    await settled()
    stand.executor.interrupt(Stop.CANCELLED, lambda claim: claim.id == 3)
    assert stand.ended == [(3, "cancelled")]
    await stand.let_go(1)
    assert stand.begun == [1, 2, 4]


async def test_one_that_is_stopped_before_its_first_step_frees_its_slot(stand: Stand) -> None:
    stand.start(1, 2, 3, 4)
    stand.executor.interrupt(Stop.CANCELLED, lambda claim: claim.id < 3)
    await settled()
    assert stand.ended == [(1, "cancelled"), (2, "cancelled")]
    assert stand.begun == [3, 4]


async def test_one_that_was_left_behind_keeps_its_slot_until_it_ends(stand: Stand) -> None:
    stand.start(1, task="deaf")
    stand.start(2, 3)
    await settled()
    stand.executor.interrupt(Stop.CANCELLED, lambda claim: claim.id == 1)
    await until(lambda: stand.ended)
    assert stand.ended == [(1, "cancelled")]
    assert stand.begun == [2] and stand.executor.room()[0] == 0
    await stand.let_go(1)
    assert stand.begun == [2, 3] and stand.ended == [(1, "cancelled")]


async def test_a_pool_counts_what_runs_and_what_waits(stand: Stand) -> None:
    everything = 2 + 1_000
    assert stand.executor.wants() == {"work": everything, "deaf": 2}
    stand.start(1, 2, 3)
    stand.start(4, 5, task="deaf")
    assert stand.executor.wants() == {"work": everything - 3}
    stand.executor.release_waiting()
    assert stand.executor.wants() == {"work": everything, "deaf": 2}


class Pacing:
    """An executor whose attempts end at the clock's beat."""

    def __init__(self, clock: Clock, slots: int) -> None:
        self._clock = clock
        self.stand = Stand(slots)
        self.pace: Any = self.stand.executor._pace

    def pass_time(self, seconds: float, *, ended: int) -> tuple[int, int]:
        self._clock.now += seconds
        self.pace.ended += ended
        return self.stand.executor.room()


async def test_none_wait_where_handlers_take_their_time(clock: Clock) -> None:
    """Not even when all of them end at the same moment."""
    pacing = Pacing(clock, slots=200)
    assert pacing.pass_time(1.0, ended=200) == (200, 0)
    assert pacing.pass_time(AHEAD, ended=200) == (200, 0)


async def test_where_handlers_are_short_the_work_of_a_moment_waits(clock: Clock) -> None:
    pacing = Pacing(clock, slots=50)
    assert pacing.pass_time(AHEAD, ended=200) == (50, 200)
    assert pacing.pass_time(AHEAD, ended=100_000) == (50, 1_000), "no more than `prefetch`"
    assert pacing.pass_time(60, ended=0) == (50, 0)


async def test_short_handlers_are_known_as_soon_as_a_slot_has_ended_two(clock: Clock) -> None:
    pacing = Pacing(clock, slots=50)
    assert pacing.pass_time(AHEAD / 4, ended=50) == (50, 0)
    assert pacing.pass_time(AHEAD / 4, ended=1) == (50, 102)


async def test_those_that_wait_too_long_go_back_from_the_end(clock: Clock) -> None:
    pacing = Pacing(clock, slots=1)
    stand = pacing.stand
    stand.start(1, 2, 3, 4)
    pacing.pass_time(1.0, ended=2)
    stand.executor.release_late()
    assert stand.ended == [(4, "release")]
    pacing.pass_time(60.0, ended=0)
    stand.executor.release_late()
    assert stand.ended == [(4, "release"), (3, "release"), (2, "release")]
    await settled()
    await stand.let_go(1)
    assert stand.begun == [1]


def test_a_pace_rises_at_once_and_sinks_by_halves(clock: Clock) -> None:
    pace = Pace(slots=1)
    pace.ended, clock.now = 100, clock.now + AHEAD
    assert pace.per_second() == pytest.approx(1_000)
    clock.now += AHEAD
    assert pace.per_second() == pytest.approx(500)
    clock.now += 3 * AHEAD
    assert pace.per_second() == pytest.approx(62.5)


async def test_the_room_for_a_claim_that_is_under_way_is_kept(stand: Stand) -> None:
    demand = Demand(7, {"deaf": 2, "work": 5}, 2)
    with stand.executor.expecting(demand):
        assert stand.executor.room() == (0, 0)
        assert "deaf" not in stand.executor.wants(), "its pool has room for two"
    assert stand.executor.room() == (2, 0)
    assert stand.executor.wants()["deaf"] == 2
