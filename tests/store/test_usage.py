"""Usage is added to the totals in the transaction that records the outcome of the attempt."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest

from batchmill.domain import outcome
from batchmill.domain.outcome import RULES, Outcome
from batchmill.store.delivery import finish_call, with_records
from tests.store.engine import Engine
from tests.store.rivals import Rival
from tests.store.test_outcomes import outcome_of

AMOUNTS = {"tokens": Decimal(1200), "eur": Decimal("0.0123")}


def used(ended: Outcome, **amounts: Any) -> Outcome:
    return ended._replace(usage={name: Decimal(amount) for name, amount in amounts.items()})


def daily(engine: Engine) -> dict[tuple[str, str, str], Decimal]:
    query = "select tenant, task, name, sum(amount) from batchmill.daily_usage group by 1, 2, 3"
    return {tuple(key): amount for *key, amount in engine.rows(query)}


def of_batch(engine: Engine, batch: UUID) -> dict[str, Decimal]:
    query = "select name, sum(amount) from batchmill.batch_usage where batch_id = %s group by 1"
    return dict(engine.rows(query, batch))


@pytest.fixture
def worker(engine: Engine) -> int:
    engine.task("work")
    engine.task("next")
    return engine.worker("work", "next")


@pytest.mark.parametrize("kind", RULES)
def test_every_outcome_adds_what_its_attempt_used_to_the_task_that_ran(
    engine: Engine, worker: int, kind: str
) -> None:
    batch = engine.batch("work", 1, tenant="ann")
    (claim,) = engine.claim(worker, "work")
    assert engine.finish(outcome_of(kind, claim)._replace(usage=AMOUNTS)) == []
    assert of_batch(engine, batch) == AMOUNTS
    assert daily(engine) == {("ann", "work", name): amount for name, amount in AMOUNTS.items()}


def test_an_attempt_that_was_cancelled_while_it_ran_adds_what_it_used(
    engine: Engine, worker: int
) -> None:
    batch = engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    engine.call("cancel_batch", batch)
    engine.finish(used(outcome.completed(claim, "1"), tokens=3))
    assert engine.status(batch)[0] == "cancelled"
    assert of_batch(engine, batch) == {"tokens": 3}


def test_a_refused_outcome_adds_nothing(engine: Engine, worker: int) -> None:
    batch = engine.batch("work", 2)
    late, current = engine.claim(worker, "work")
    ended = used(outcome.completed(late, "1"), tokens=1)
    assert engine.finish(ended) == []
    assert engine.finish(ended, used(outcome.completed(current, "1"), tokens=10)) == [late.id]
    assert of_batch(engine, batch) == {"tokens": 11}
    assert daily(engine) == {("default", "work", "tokens"): 11}


def test_of_a_stale_and_a_current_attempt_in_one_block_the_current_one_is_added(
    engine: Engine, worker: int
) -> None:
    batch = engine.batch("work", 1)
    (stale,) = engine.claim(worker, "work")
    engine.release(stale)
    (current,) = engine.claim(worker, "work")
    ended = [used(outcome.completed(c, "1"), tokens=c.fence) for c in (current, stale)]
    engine.finish(*ended)
    assert of_batch(engine, batch) == {"tokens": current.fence}


@pytest.mark.parametrize("kind", ["unknown lane", "unknown outcome"])
def test_an_outcome_that_postgres_refuses_for_another_reason_adds_nothing(
    engine: Engine, worker: int, kind: str
) -> None:
    engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    ended = (
        outcome.completed(claim._replace(lane=-1), "1")
        if kind == "unknown lane"
        else Outcome(claim, "vanished")
    )
    assert engine.finish(used(ended, tokens=1)) == [claim.id]
    assert daily(engine) == {}


def test_a_call_that_also_claims_adds_usage_and_returns_the_same_answer(
    engine: Engine, worker: int
) -> None:
    batch = engine.batch("work", 3)
    first, second = engine.claim(worker, "work", want=2)
    engine.complete(first)
    ended = [used(outcome.completed(claim, "1"), tokens=5) for claim in (first, second)]
    refused, claims = engine.finish_and_claim(worker, "work", ended=ended)
    assert (refused, len(claims)) == ([first.id], 1)
    assert of_batch(engine, batch) == {"tokens": 5}


def test_a_block_adds_up_many_attempts_of_several_tenants_tasks_and_batches(
    engine: Engine, worker: int
) -> None:
    batches = [engine.batch("work", 100, tenant=tenant) for tenant in ("ann", "bob", "bob")]
    single = engine.enqueue("next", tenant="ann")["job_id"]
    claims = engine.claim(worker, "work", "next", want=500)
    assert len(claims) == 301
    engine.finish(*(used(outcome.completed(c, "1"), eur="0.01", pages=2) for c in claims))
    for batch in batches:
        assert of_batch(engine, batch) == {"eur": 1, "pages": 200}
    assert daily(engine)["bob", "work", "eur"] == 2
    assert daily(engine)["ann", "next", "pages"] == 2
    assert engine.state(single) == "completed"


def test_a_retried_batch_goes_on_counting(engine: Engine, worker: int) -> None:
    batch = engine.batch("work", 1)
    for expected in (7, 14):
        (claim,) = engine.claim(worker, "work")
        engine.finish(used(outcome_of("failed", claim), tokens=7))
        assert of_batch(engine, batch) == {"tokens": expected}
        engine.call("retry_batch", batch)


def test_each_day_in_utc_has_its_own_total(engine: Engine, worker: int) -> None:
    engine.batch("work", 2)
    for claim in engine.claim(worker, "work"):
        engine.finish(used(outcome.completed(claim, "1"), tokens=1))
        engine.advance_clock(86_400)
    days = engine.rows("select day, amount from batchmill.daily_usage order by day")
    assert [amount for _, amount in days] == [1, 1]
    assert (days[1][0] - days[0][0]).days == 1


def test_totals_of_a_batch_are_removed_with_it_and_those_of_days_after_400_days(
    engine: Engine, worker: int
) -> None:
    deleted, expired = engine.batch("work", 1), engine.batch("work", 1, expires_in=60)
    for claim in engine.claim(worker, "work"):
        engine.finish(used(outcome.completed(claim, "1"), tokens=1))
    engine.call("delete_batch", deleted)
    assert (of_batch(engine, deleted), of_batch(engine, expired)) == ({}, {"tokens": 1})
    engine.advance_clock(120)
    assert engine.expire()["deleted"] == 1
    assert of_batch(engine, expired) == {}
    engine.advance_clock(399 * 86_400)
    engine.tidy()
    assert daily(engine) == {("default", "work", "tokens"): 2}
    engine.advance_clock(2 * 86_400)
    engine.tidy()
    assert daily(engine) == {}


def test_a_block_without_usage_calls_the_function_without_usage(
    engine: Engine, worker: int
) -> None:
    engine.batch("work", 2)
    plain, paid = engine.claim(worker, "work")
    calls = [
        finish_call([outcome.completed(plain, "1")]),
        finish_call([outcome.completed(plain, "1"), used(outcome.completed(paid, "1"), eur=1)]),
    ]
    assert [with_records("finish", call) for call in calls] == ["finish", "finish_with_records"]
    engine.complete(plain, paid)


def test_usage_of_a_transaction_that_rolls_back_is_not_added(engine: Engine, worker: int) -> None:
    batch = engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    with engine.conn.transaction(force_rollback=True):
        engine.finish(used(outcome.completed(claim, "1"), tokens=1))
        assert of_batch(engine, batch) == {"tokens": 1}
    assert of_batch(engine, batch) == {}


def test_an_attempt_that_loses_its_job_while_its_call_waits_adds_nothing(
    sessions: Callable[[], Engine],
) -> None:
    engine, holder, late = sessions(), sessions(), sessions()
    engine.task("work")
    worker = engine.worker("work")
    engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    with holder.conn.transaction():
        holder.release(claim)
        call = Rival(lambda: late.finish(used(outcome.completed(claim, "1"), tokens=9)))
        call.wait_until_blocked(late)
    assert call.result() == [claim.id]
    assert daily(engine) == {}
    engine.drain(worker, "work")


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity"])
def test_the_totals_refuse_amounts_that_are_not_finite_and_positive(
    engine: Engine, worker: int, amount: str
) -> None:
    engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    with pytest.raises(psycopg.errors.CheckViolation):
        engine.finish(used(outcome.completed(claim, "1"), tokens=amount))
    assert engine.state(claim.id) == "running"
    engine.complete(claim)


def test_claims_of_the_previous_version_are_finished_without_usage(
    engine: Engine, worker: int
) -> None:
    """Processes of the previous version call the functions with the former parameters."""
    batch = engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    answer = engine.value(
        "select batchmill.finish(%s::bigint[], %s::bigint[], '{completed}', '[1]', null, %s::bigint[])",
        *([claim.id], [claim.fence], [claim.lane]),
    )
    assert (answer, engine.status(batch)[0]) == ([], "completed")
