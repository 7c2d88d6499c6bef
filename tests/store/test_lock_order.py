"""Locks are taken in one order everywhere: lanes, limits, batches, each by id, and then jobs.
Providers, by id, are locked without any of these.

Two concurrent calls are blocked by a row that a third session has locked, and each keeps the locks
that it has taken so far. When the third session releases the row, both calls must complete.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from uuid import UUID

import psycopg
import pytest

from batchmill.domain import outcome
from batchmill.domain.job import Claim
from batchmill.domain.limits import Limits
from batchmill.domain.outcome import Outcome
from batchmill.domain.retry import Retry
from batchmill.store.providers import Ask
from tests.invariants import violations
from tests.store.engine import PERMANENT, Engine
from tests.store.rivals import Rival

Sessions = Callable[[], Engine]

# The rows that the third session locks.
STOPS = {
    "the first lane": "select from batchmill.lanes where id = (select min(id) from batchmill.lanes)",
    "the last lane": "select from batchmill.lanes where id = (select max(id) from batchmill.lanes)",
    "a limit": "select from batchmill.limits where name = 'system'",
    "all batches": "select from batchmill.batches",
    "all totals of usage": "select from batchmill.daily_usage",
    "a provider": "select from batchmill.providers where name = 'provider:b'",
}


@dataclass
class World:
    """Two batches with waiting, running and failed jobs in lanes of two stages; a batch whose only
    job runs at its second stage, so that the lane of its first stage is empty; and a job without a
    batch that is not in a lane yet."""

    worker: int
    batches: list[UUID]
    claims: list[Claim]
    failed: int
    submitted: int


def used(ended: Outcome) -> Outcome:
    return ended._replace(usage={"tokens": Decimal(3), "eur": Decimal("0.01")})


def claim(engine: Engine, world: World) -> None:
    engine.claim(world.worker, "alone", "first", "second")


def finish(engine: Engine, world: World) -> None:
    engine.complete(*world.claims)


def finish_in_reverse_order(engine: Engine, world: World) -> None:
    engine.finish(*(used(outcome.completed(c, "1")) for c in reversed(world.claims)))


def advance(engine: Engine, world: World) -> None:
    engine.finish(*(used(outcome.advanced(c, "third", "", "1")) for c in world.claims))


def finish_and_claim(engine: Engine, world: World) -> None:
    ended = (used(outcome.completed(c, "1")) for c in reversed(world.claims))
    engine.finish_and_claim(world.worker, "alone", "first", "second", ended=ended)


def advance_and_claim(engine: Engine, world: World) -> None:
    ended = (outcome.advanced(c, "third", "", "1") for c in world.claims)
    engine.finish_and_claim(world.worker, "alone", "first", "second", ended=ended)


def report(engine: Engine, world: World) -> None:
    engine.report(*world.claims, progress={"stage": "here"})


def cancel_batch(engine: Engine, world: World) -> None:
    engine.call("cancel_batch", world.batches[1])


def cancel_in_steps(engine: Engine, world: World) -> None:
    engine.call("begin_cancel", world.batches[1])
    engine.cancel_in_steps(world.batches[1], 1, 100)


def cancel_job(engine: Engine, world: World) -> None:
    engine.call("cancel_job", world.claims[-1].id)


def cancel_submitted(engine: Engine, world: World) -> None:
    engine.call("cancel_job", world.submitted)


def notify_batch(engine: Engine, world: World) -> None:
    engine.call("notify_batch", world.batches[0], ["https://example.org/", "ann@example.org"])


def retry_batch(engine: Engine, world: World) -> None:
    engine.call("retry_batch", world.batches[0])


def retry_job(engine: Engine, world: World) -> None:
    engine.call("retry_job", world.failed)


def set_limit(engine: Engine, world: World) -> None:
    engine.set_limit("task:first/batch:*", 5)


def set_template(engine: Engine, world: World) -> None:
    engine.set_limit("tenant:*", 9)


def hold_slots(engine: Engine, world: World) -> None:
    asked = [Ask(100 + n, f"provider:{name}", world.claims[0]) for n, name in enumerate("cba")]
    engine.hold(world.worker, *asked, freed=[0, 1])


def set_provider(engine: Engine, world: World) -> None:
    engine.set_limit("provider:b", 2)


def expire(engine: Engine, world: World) -> None:
    engine.set_clock(3600)
    try:
        engine.expire()
    finally:
        engine.set_clock(0)


def tidy(engine: Engine, world: World) -> None:
    engine.tidy()


TABLES = (
    "batches",
    "jobs",
    "finished",
    "event_blocks",
    "lanes",
    "limits",
    "workers",
    "notifications",
    "batch_usage",
    "daily_usage",
    "holds",
    "providers",
)
CALLS = [
    claim,
    finish,
    finish_in_reverse_order,
    advance,
    finish_and_claim,
    advance_and_claim,
    report,
    cancel_batch,
    cancel_in_steps,
    cancel_job,
    cancel_submitted,
    notify_batch,
    retry_batch,
    retry_job,
    set_limit,
    set_template,
    hold_slots,
    set_provider,
    expire,
    tidy,
]


def build(engine: Engine) -> World:
    # Truncating would invalidate the cached plans of every session.
    for table in TABLES:
        engine.conn.execute(f"delete from batchmill.{table}".encode())
    engine.set_limit("system", 50)
    engine.task("alone", keyed=True, limits=Limits(per_batch=9, per_key=9))
    for name in ("first", "second", "third"):
        engine.task(name, limits=Limits(per_batch=9))
    worker = engine.worker("alone", "first", "second")
    engine.set_limit("tenant:*", 40)
    engine.batch("alone", [{"payload": 1, "key": "k"}], expires_in=60)
    (last,) = engine.claim(worker, "alone", want=1)
    engine.finish(outcome.advanced(last, "second", "", "1"))
    (last,) = engine.claim(worker, "second")
    for task in ("batchmill.webhook", "batchmill.email"):
        engine.task(task)
    recipients = ["https://example.org/", "bob@example.org"]
    batches = [
        engine.batch("first", 8, tenant=f"t{n}", expires_in=60, notify=recipients) for n in range(2)
    ]
    claims = engine.claim(worker, "first", want=8)
    for failing, advancing in (claims[:2], claims[4:6]):
        engine.finish(used(outcome.failed(failing, PERMANENT, Retry(), 0.5)))
        engine.finish(outcome.advanced(advancing, "second", "", "1"))
    failed, claims = claims[0].id, [last, *claims[2:4], *claims[6:]]
    assert len({c.batch_id for c in claims}) == 3
    submitted = engine.enqueue("first")["job_id"]
    for n, name in enumerate("abc"):
        engine.set_limit(f"provider:{name}", 1)
        engine.hold(worker, *(Ask(2 * n + k, f"provider:{name}", last) for k in range(2)))
    reverse_physical_order(engine)
    return World(worker, batches, claims, failed, submitted)


def reverse_physical_order(engine: Engine) -> None:
    """A statement that locks rows without sorting them then locks them in the wrong order."""
    for table, column in PHYSICAL:
        for (row,) in engine.rows(f"select id from batchmill.{table} order by id desc"):
            query = f"update batchmill.{table} set {column} = {column} where id = %s returning id"
            engine.rows(query, row)


PHYSICAL = (
    ("lanes", "running"),
    ("limits", "running"),
    ("batches", "total"),
    ("providers", "paused"),
)


def deadlock(call: Callable[[Engine, World], None], engine: Engine, world: World) -> str | None:
    """Where the call deadlocked, if it did. A refused call is fine: the other may have been first."""
    try:
        call(engine, world)
    except psycopg.errors.DeadlockDetected as error:
        return str(error.diag.context).splitlines()[-1]
    except psycopg.Error as error:
        assert str(error.sqlstate).startswith("BM"), error
    return None


# The lock order depends on the functions, which are the same on all servers.
@pytest.mark.parametrize("server", ["pg18"], indirect=True)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("stop", STOPS)
def test_no_two_concurrent_calls_deadlock(stop: str, sessions: Sessions):
    engine, holder, one, other = (sessions() for _ in range(4))
    for session in (one, other):
        session.conn.execute("set deadlock_timeout = '20ms'")
    never_blocked: set[Callable[[Engine, World], None]] = set()
    problems: list[str] = []
    for first, second in itertools.product(CALLS, repeat=2):
        if first in never_blocked:
            continue
        world = build(engine)
        with holder.conn.transaction():
            holder.rows(f"{STOPS[stop]} for update")
            rivals = [Rival(partial(deadlock, first, one, world)).wait_until_blocked_or_done(one)]
            if rivals[0].is_done:
                # The second call would run alone.
                never_blocked.add(first)
            else:
                rival = Rival(partial(deadlock, second, other, world))
                rivals.append(rival.wait_until_blocked_or_done(other))
        pair = f"{first.__name__} and {second.__name__}"
        problems += [f"{pair}: {where}" for rival in rivals if (where := rival.result())]
        tidy(engine, world)
        problems += [f"{pair}: {wrong}" for wrong in violations(engine.conn, lowered=True)]
    assert problems == []
    assert len(never_blocked) < len(CALLS)


def test_totals_of_usage_are_locked_in_the_same_order_by_all_calls(sessions: Sessions):
    """The two calls name the totals in opposite orders. If a call locked them in the order that it
    names, it would hold the second total while it waits for the first: a deadlock."""
    engine, holder, one, other = (sessions() for _ in range(4))
    engine.task("work")
    worker = engine.worker("work")
    for _ in range(4):
        engine.batch("work", 1)
    first, *claims = engine.claim(worker, "work")
    amounts = {"a": Decimal(1), "b": Decimal(2)}
    engine.finish(outcome.completed(first, "1")._replace(usage=amounts))
    orders = [amounts, dict(reversed(amounts.items()))]
    with holder.conn.transaction():
        holder.rows("select from batchmill.daily_usage where name = 'a' for update")
        rivals = [
            Rival(
                partial(session.finish, outcome.completed(c, "1")._replace(usage=order))
            ).wait_until_blocked(session)
            for c, session, order in zip(claims, (one, other), orders, strict=False)
        ]
    assert [rival.result() for rival in rivals] == [[], []]
    assert engine.rows("select name, amount from batchmill.daily_usage order by name") == [
        ("a", 3),
        ("b", 6),
    ]


@pytest.mark.parametrize("keyed", [False, True])
def test_a_batch_finishes_while_a_claim_reads_one_of_its_empty_lanes(
    keyed: bool, sessions: Sessions
):
    engine, holder, ender = sessions(), sessions(), sessions()
    engine.task("first", keyed=keyed, limits=Limits(per_batch=9))
    engine.task("second")
    worker = engine.worker("first", "second")
    # A claim that gets all the jobs it asked for does not notice that the lane is now empty.
    batch = engine.batch("first", 4 * [{"payload": 1, "key": "k"} if keyed else {"payload": 1}])
    running = engine.claim(worker, "first", want=4)
    engine.finish(*(outcome.advanced(c, "second", "", "1") for c in running))
    running = engine.claim(worker, "second")
    with holder.conn.transaction():
        holder.rows("select from batchmill.batches for update")
        end = Rival(lambda: ender.complete(*running)).wait_until_blocked(ender)
        looking = Rival(lambda: engine.claim(worker, "first")).wait_until_blocked(engine)
    assert (end.result(), looking.result()) == ([], [])
    assert engine.status(batch)[0] == "completed"
    engine.tidy()


def test_a_cancel_whose_job_moves_to_the_next_stage_holds_nothing_while_it_waits_again(
    sessions: Sessions,
):
    """The cancel waits for the job's first lane. When it gets the lane, the job is in another one,
    which a third call holds. That call then needs the batch."""
    engine, mover, canceller, holder = (sessions() for _ in range(4))
    engine.task("first")
    engine.task("second")
    worker = engine.worker("first", "second")
    batch = engine.batch("first", 2)
    ahead, moving = engine.claim(worker, "first", want=2)
    engine.finish(outcome.advanced(ahead, "second", "", "1"))
    with holder.conn.transaction():
        with mover.conn.transaction():
            mover.finish(outcome.advanced(moving, "second", "", "1"))
            cancel = Rival(lambda: canceller.call("cancel_job", moving.id))
            cancel.wait_until_blocked(canceller)
            lane = "select from batchmill.lanes where task = 'second' for update"
            holding = Rival(lambda: holder.rows(lane)).wait_until_blocked(holder)
        holding.result()
        # The cancel may have been first. Then it has ended.
        cancel.wait_until_blocked_or_done(canceller)
        holder.rows("select from batchmill.batches for update")
    assert cancel.result() == 1
    assert engine.status(batch)[0] == "processing"


def test_a_batch_that_gets_another_lane_is_locked_again_from_the_first_one(sessions: Sessions):
    """The id of the new lane is smaller, because its transaction began earlier."""
    engine, adder, blocker, canceller, holder = (sessions() for _ in range(5))
    for name in ("first", "second", "third"):
        engine.task(name)
    batch = engine.batch("first", 1)
    lanes = "select batchmill.lane_for(%s, 'default', %s, '')"
    with blocker.conn.transaction():
        with adder.conn.transaction():
            early = adder.value(lanes, "second", batch)
            late = engine.value(lanes, "third", batch)
            assert early < late
            blocker.rows("select from batchmill.lanes where id = %s for update", late)
            cancel = Rival(lambda: canceller.call("begin_cancel", batch))
            cancel.wait_until_blocked(canceller)
        holding = Rival(lambda: both_lanes(holder, early, late)).wait_until_blocked(holder)
    assert (holding.result(), cancel.result()) == (None, 0)


def both_lanes(session: Engine, *lanes: int) -> None:
    with session.conn.transaction():
        for lane in lanes:
            session.rows("select from batchmill.lanes where id = %s for update", lane)
