"""Recording outcomes and claiming jobs, and what happens when a call fails."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any, cast

import pytest

from batchmill.domain import outcome
from batchmill.domain.demand import Delivered, Demand
from batchmill.domain.job import Claim
from batchmill.domain.outcome import Outcome
from batchmill.errors import DatabaseUnavailable, InvalidInput
from batchmill.store.backoff import Backoff
from batchmill.store.listen import Listener, WakeUp
from batchmill.worker.delivery import Delivery
from batchmill.worker.dispatcher import Dispatcher
from batchmill.worker.executor import Executor
from batchmill.worker.outbox import BACKLOG, Outbox
from tests.library.tools import until

BAD = Claim(1, 1, 1)
GOOD = Claim(2, 2, 1)
NEXT = Claim(3, 3, 1)


class FakeDelivery:
    """Refuses the result of job BAD. Answers claims from a list."""

    def __init__(self, *answers: Delivered | Exception):
        self.answers = list(answers)
        self.recorded: dict[int, str] = {}
        self.demands: list[Demand] = []

    async def exchange(self, outcomes: Collection[Outcome], demand: Demand | None) -> Delivered:
        if any(o.claim == BAD and o.kind == "completed" for o in outcomes):
            raise InvalidInput("It contains a NUL.")
        answer = self.answers.pop(0) if demand and self.answers else Delivered()
        if demand is not None:
            self.demands.append(demand)
        if isinstance(answer, Exception):
            raise answer
        self.recorded |= {o.claim.id: o.kind for o in outcomes}
        return answer


class FakeExecutor:
    """Has one free slot, and room to prefetch one job."""

    attempts = ()

    def __init__(self) -> None:
        self.space: tuple[int, int] = (1, 1)
        self.started: list[Claim] = []
        self.begun = asyncio.Event()

    def room(self) -> tuple[int, int]:
        return self.space

    def wants(self) -> dict[str, int]:
        return {"work": 1}

    def start(self, claim: Claim) -> None:
        self.started.append(claim)
        self.begun.set()

    def release_late(self) -> None: ...

    def expecting(self, demand: Demand | None) -> Any:
        return nullcontext()


class FakeListener:
    is_listening = True

    @contextmanager
    def subscribe(self, topic: str, wake_up: WakeUp) -> Any:
        yield wake_up


@asynccontextmanager
async def dispatching(
    deliveries: Sequence[FakeDelivery], executor: FakeExecutor, unclear: list[str]
) -> AsyncIterator[tuple[Dispatcher, Outbox]]:
    async def on_unclear() -> None:
        unclear.append("asked")

    outbox = Outbox()
    dispatcher = Dispatcher(
        cast(Sequence[Delivery], deliveries),
        cast(Executor, executor),
        outbox,
        cast(Listener, FakeListener()),
        7,
        on_unclear,
    )
    running = asyncio.create_task(dispatcher.run())
    try:
        yield dispatcher, outbox
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_an_outcome_that_cannot_be_stored_fails_only_its_job_and_claiming_continues() -> None:
    delivery, executor = FakeDelivery(Delivered(), Delivered(claims=[NEXT])), FakeExecutor()
    async with dispatching([delivery], executor, []) as (_, outbox):
        for claim in (BAD, GOOD):
            outbox.add(outcome.completed(claim, "1"))
        await outbox.emptied()
        assert delivery.recorded == {BAD.id: "failed", GOOD.id: "completed"}
        await executor.begun.wait()
    assert executor.started == [NEXT]


async def test_after_a_lost_answer_the_held_jobs_are_checked_before_the_next_claim() -> None:
    unclear: list[str] = []
    delivery, executor = (
        FakeDelivery(DatabaseUnavailable("gone"), Delivered(claims=[NEXT])),
        FakeExecutor(),
    )
    async with dispatching([delivery], executor, unclear):
        await executor.begun.wait()
    assert unclear == ["asked"]


async def test_an_outcome_is_kept_until_it_is_recorded() -> None:
    delivery, executor = FakeDelivery(DatabaseUnavailable("gone")), FakeExecutor()
    async with dispatching([delivery], executor, []) as (_, outbox):
        outbox.add(outcome.completed(GOOD, "1"))
        await outbox.emptied()
    assert delivery.recorded == {GOOD.id: "completed"}


async def test_nothing_is_prefetched_after_limited_jobs_were_passed_over() -> None:
    delivery = FakeDelivery(Delivered(claims=[GOOD], passed_over=True), Delivered(claims=[NEXT]))
    executor = FakeExecutor()
    async with dispatching([delivery], executor, []) as (_, outbox):
        await executor.begun.wait()
        outbox.add(outcome.completed(GOOD, "1"))
        await outbox.emptied()
    assert [demand.prefetch for demand in delivery.demands][:2] == [1, 0]


async def test_no_claim_is_made_after_stop_claiming() -> None:
    delivery, executor = FakeDelivery(), FakeExecutor()
    async with dispatching([delivery], executor, []) as (dispatcher, outbox):
        await dispatcher.stop_claiming()
        before = len(delivery.demands)
        outbox.add(outcome.completed(GOOD, "1"))
        await outbox.emptied()
    assert len(delivery.demands) == before


# Concurrent calls


class SlowDelivery(FakeDelivery):
    """Answers when `gate` is set."""

    def __init__(self, *answers: Delivered | Exception):
        super().__init__(*answers)
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    async def exchange(self, outcomes: Collection[Outcome], demand: Demand | None) -> Delivered:
        self.asked.set()
        await self.gate.wait()
        return await super().exchange(outcomes, demand)


def ended(count: int) -> list[Outcome]:
    return [outcome.completed(Claim(n, n, 1), "1") for n in range(10, 10 + count)]


ALONE = Delivered(claims=[NEXT], is_alone=True)
WITH_OTHERS = Delivered(claims=[NEXT], is_alone=False)


async def until_second_call_is_in_flight(first: SlowDelivery, executor: FakeExecutor) -> None:
    """Returns when the first call has reported whether other workers are live, and the next call is
    in flight."""
    first.gate.set()
    await executor.begun.wait()
    first.gate.clear()
    first.asked.clear()
    await first.asked.wait()


async def test_a_backlog_is_recorded_while_a_slow_call_is_in_flight() -> None:
    first, second, executor = SlowDelivery(ALONE), FakeDelivery(), FakeExecutor()
    async with dispatching([first, second], executor, []) as (_, outbox):
        await until_second_call_is_in_flight(first, executor)
        for each in ended(BACKLOG):
            outbox.add(each)
        await outbox.emptied()
        assert len(second.recorded) == BACKLOG


async def test_with_other_workers_a_backlog_waits_for_the_call_in_flight() -> None:
    first, second, executor = SlowDelivery(WITH_OTHERS), FakeDelivery(), FakeExecutor()
    async with dispatching([first, second], executor, []) as (_, outbox):
        await until_second_call_is_in_flight(first, executor)
        for each in ended(BACKLOG):
            outbox.add(each)
        await settled()
        assert second.recorded == {}
        first.gate.set()
        await outbox.emptied()
    assert (len(first.recorded), second.recorded) == (BACKLOG, {})


async def test_fewer_outcomes_than_a_backlog_wait_for_the_call_in_flight() -> None:
    first, second, executor = SlowDelivery(ALONE), SlowDelivery(), FakeExecutor()
    async with dispatching([first, second], executor, []) as (_, outbox):
        await until_second_call_is_in_flight(first, executor)
        executor.space = (0, 0)
        for each in ended(BACKLOG):
            outbox.add(each)
        await second.asked.wait()
        first.gate.set()
        outbox.add(outcome.completed(GOOD, "1"))
        await settled()
        assert first.recorded == {}
        second.gate.set()
        await outbox.emptied()
    assert (list(first.recorded), len(second.recorded)) == ([GOOD.id], BACKLOG)


async def test_held_jobs_are_checked_only_when_no_other_call_is_in_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Backoff, "next_delay", lambda _: 0.0)
    unclear: list[str] = []
    first, second, executor = (
        SlowDelivery(ALONE, DatabaseUnavailable("gone")),
        SlowDelivery(),
        FakeExecutor(),
    )
    async with dispatching([first, second], executor, unclear) as (_, outbox):
        await until_second_call_is_in_flight(first, executor)
        for each in ended(BACKLOG):
            outbox.add(each)
        await second.asked.wait()
        first.gate.set()
        await settled()
        assert first.demands and unclear == []
        second.gate.set()
        await until(lambda: unclear)
        assert len(second.recorded) == BACKLOG


async def settled() -> None:
    """Lets all tasks run until they wait."""
    for _ in range(50):
        await asyncio.sleep(0)
