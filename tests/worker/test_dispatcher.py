"""What goes to the store and comes from it, and what happens when one of the two goes wrong."""

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


class Store:
    """Refuses to store the result of one job; claims are answered from a list."""

    def __init__(self, *answers: Delivered | Exception):
        self.answers = list(answers)
        self.recorded: dict[int, str] = {}
        self.demands: list[Demand] = []

    async def exchange(self, outcomes: Collection[Outcome], demand: Demand | None) -> Delivered:
        if any(o.claim == BAD and o.kind == "completed" for o in outcomes):
            raise InvalidInput("It holds a NUL.")
        answer = self.answers.pop(0) if demand and self.answers else Delivered()
        if demand is not None:
            self.demands.append(demand)
        if isinstance(answer, Exception):
            raise answer
        self.recorded |= {o.claim.id: o.kind for o in outcomes}
        return answer


class Slots:
    """An executor with room for one, and one more ahead."""

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


class Silence:
    hears = True

    @contextmanager
    def subscribe(self, topic: str, wake_up: WakeUp) -> Any:
        yield wake_up


@asynccontextmanager
async def dispatching(
    stores: Sequence[Store], slots: Slots, unclear: list[str]
) -> AsyncIterator[tuple[Dispatcher, Outbox]]:
    async def on_unclear() -> None:
        unclear.append("asked")

    outbox = Outbox()
    dispatcher = Dispatcher(
        cast(Sequence[Delivery], stores),
        cast(Executor, slots),
        outbox,
        cast(Listener, Silence()),
        7,
        on_unclear,
    )
    running = asyncio.create_task(dispatcher.run())
    try:
        yield dispatcher, outbox
    finally:
        running.cancel()
        await asyncio.wait({running})


async def test_what_cannot_be_stored_fails_alone_and_claims_go_on() -> None:
    store, slots = Store(Delivered(), Delivered(claims=[NEXT])), Slots()
    async with dispatching([store], slots, []) as (_, outbox):
        for claim in (BAD, GOOD):
            outbox.add(outcome.completed(claim, "1"))
        await outbox.emptied()
        assert store.recorded == {BAD.id: "failed", GOOD.id: "completed"}
        await slots.begun.wait()
    assert slots.started == [NEXT]


async def test_a_claim_whose_answer_is_lost_is_cleared_up_before_the_next() -> None:
    unclear: list[str] = []
    store, slots = Store(DatabaseUnavailable("gone"), Delivered(claims=[NEXT])), Slots()
    async with dispatching([store], slots, unclear):
        await slots.begun.wait()
    assert unclear == ["asked"]


async def test_an_outcome_is_kept_until_the_store_has_it() -> None:
    store, slots = Store(DatabaseUnavailable("gone")), Slots()
    async with dispatching([store], slots, []) as (_, outbox):
        outbox.add(outcome.completed(GOOD, "1"))
        await outbox.emptied()
    assert store.recorded == {GOOD.id: "completed"}


async def test_where_limited_work_was_passed_over_nothing_is_taken_ahead() -> None:
    store = Store(Delivered(claims=[GOOD], passed_over=True), Delivered(claims=[NEXT]))
    slots = Slots()
    async with dispatching([store], slots, []) as (_, outbox):
        await slots.begun.wait()
        outbox.add(outcome.completed(GOOD, "1"))
        await outbox.emptied()
    assert [demand.spare for demand in store.demands][:2] == [1, 0]


async def test_no_claim_comes_after_claiming_was_stopped() -> None:
    store, slots = Store(), Slots()
    async with dispatching([store], slots, []) as (dispatcher, outbox):
        await dispatcher.stop_claiming()
        before = len(store.demands)
        outbox.add(outcome.completed(GOOD, "1"))
        await outbox.emptied()
    assert len(store.demands) == before


# Several calls at once


class Slow(Store):
    """Answers when it is allowed to."""

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
AMONG_OTHERS = Delivered(claims=[NEXT], is_alone=False)


async def slow_from_now_on(first: Slow, slots: Slots) -> None:
    """The first call has told whether there are other workers; the next one is under way."""
    first.gate.set()
    await slots.begun.wait()
    first.gate.clear()
    first.asked.clear()
    await first.asked.wait()


async def test_a_backlog_is_recorded_beside_a_call_that_takes_long() -> None:
    first, second, slots = Slow(ALONE), Store(), Slots()
    async with dispatching([first, second], slots, []) as (_, outbox):
        await slow_from_now_on(first, slots)
        for each in ended(BACKLOG):
            outbox.add(each)
        await outbox.emptied()
        assert len(second.recorded) == BACKLOG


async def test_beside_other_workers_a_backlog_waits_for_the_call_under_way() -> None:
    first, second, slots = Slow(AMONG_OTHERS), Store(), Slots()
    async with dispatching([first, second], slots, []) as (_, outbox):
        await slow_from_now_on(first, slots)
        for each in ended(BACKLOG):
            outbox.add(each)
        await settled()
        assert second.recorded == {}
        first.gate.set()
        await outbox.emptied()
    assert (len(first.recorded), second.recorded) == (BACKLOG, {})


async def test_less_than_a_backlog_waits_for_the_call_under_way() -> None:
    first, second, slots = Slow(ALONE), Slow(), Slots()
    async with dispatching([first, second], slots, []) as (_, outbox):
        await slow_from_now_on(first, slots)
        slots.space = (0, 0)
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


async def test_what_may_be_claimed_is_cleared_up_only_when_no_other_answer_is_to_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Backoff, "next_delay", lambda _: 0.0)
    unclear: list[str] = []
    first, second, slots = Slow(ALONE, DatabaseUnavailable("gone")), Slow(), Slots()
    async with dispatching([first, second], slots, unclear) as (_, outbox):
        await slow_from_now_on(first, slots)
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
    """Everything that can go on has gone on."""
    for _ in range(50):
        await asyncio.sleep(0)
