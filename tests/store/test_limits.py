"""Limits: exact, changed while running, and no burden to those that they do not concern."""

from collections.abc import Callable

import pytest

from batchmill.domain import outcome
from batchmill.domain.limits import Limits, Rate
from tests.store.engine import Engine
from tests.store.rivals import Rival

Sessions = Callable[[], Engine]


def keyed(keys: str) -> list[dict[str, object]]:
    return [{"payload": n, "key": key} for n, key in enumerate(keys)]


def claimed(engine: Engine, worker: int, task: str = "work") -> int:
    return len(engine.claim(worker, task))


@pytest.fixture
def worker(engine: Engine) -> int:
    engine.task("work")
    return engine.worker("work")


# Slots.


def test_a_total_counts_all_batches_and_single_jobs_together(engine: Engine, worker: int):
    engine.task("work", limits=Limits(total=4))
    engine.batch("work", 2)
    engine.batch("work", 2, tenant="ann")
    engine.enqueue("work")
    claims = engine.claim(worker, "work")
    assert len(claims) == 4
    assert claimed(engine, worker) == 0
    engine.complete(claims[0])
    assert claimed(engine, worker) == 1


def test_per_batch_counts_each_batch_by_itself(engine: Engine, worker: int):
    engine.task("work", limits=Limits(per_batch=3))
    first, second = engine.batch("work", 10), engine.batch("work", 2)
    batches = [claim.batch_id for claim in engine.claim(worker, "work")]
    assert (batches.count(str(first)), batches.count(str(second))) == (3, 2)


def test_per_batch_counts_a_keyed_batch_over_all_its_keys(engine: Engine, worker: int):
    engine.task("keyed", keyed=True, limits=Limits(per_batch=3))
    engine.batch("keyed", keyed("abcdefabc"))
    engine.batch("keyed", keyed("ab"))
    assert claimed(engine, worker, "keyed") == 5


def test_per_tenant_counts_each_tenant_by_itself(engine: Engine, worker: int):
    engine.task("work", limits=Limits(per_tenant=2))
    for tenant in ("ann", "ann", "bob"):
        engine.batch("work", 5, tenant=tenant)
    tenants = [claim.tenant for claim in engine.claim(worker, "work")]
    assert sorted(tenants) == ["ann", "ann", "bob", "bob"]


def test_per_key_counts_each_key_over_all_batches(engine: Engine, worker: int):
    engine.task("keyed", keyed=True, limits=Limits(per_key=1))
    engine.batch("keyed", keyed("aab"))
    engine.batch("keyed", keyed("aac"))
    keys = sorted(claim.key for claim in engine.claim(worker, "keyed"))
    assert keys == ["a", "b", "c"]


def test_a_limit_of_a_key_counts_it_over_all_tasks(engine: Engine):
    for task in ("read", "write"):
        engine.task(task, keyed=True)
        engine.batch(task, keyed("aaab"))
    engine.set_limit("key:a", 2)
    worker = engine.worker("read", "write")
    keys = sorted(claim.key for claim in engine.claim(worker, "read", "write"))
    assert keys == ["a", "a", "b", "b"]


def test_a_submitted_limit_counts_the_batch_over_all_its_stages(engine: Engine, worker: int):
    engine.task("next")
    engine.batch("work", 5, limit=2)
    claims = engine.claim(worker, "work", "next")
    assert len(claims) == 2
    engine.finish(outcome.advanced(claims[0], "next", "", "1"))
    assert len(engine.claim(worker, "work", "next")) == 1


def test_the_narrowest_of_several_limits_holds(engine: Engine, worker: int):
    engine.task("work", limits=Limits(total=5, per_batch=4, per_tenant=3))
    engine.batch("work", 10, limit=2, tenant="ann")
    engine.batch("work", 10, tenant="ann")
    engine.batch("work", 10, tenant="bob")
    engine.set_limit("system", 4)
    assert claimed(engine, worker) == 4
    engine.set_limit("system", 9)
    assert claimed(engine, worker) == 1


def test_spare_jobs_come_only_from_lanes_that_no_limit_counts(engine: Engine, worker: int):
    engine.task("limited", limits=Limits(total=10))
    engine.batch("limited", 10)
    assert len(engine.claim(worker, "limited", want=3, spare=5, limited=8)) == 3
    engine.batch("work", 10)
    assert len(engine.claim(worker, "work", want=3, spare=5, work=8)) == 8


def test_two_claims_at_once_share_the_last_slots(sessions: Sessions, engine: Engine, worker: int):
    """Both count what runs before either starts."""
    engine.set_limit("task:work", 3)
    engine.batch("work", 5)
    engine.batch("work", 5)
    first = sessions()
    with first.conn.transaction():
        assert len(first.claim(worker, "work", want=2)) == 2
        second = Rival(lambda: engine.claim(worker, "work")).wait_until_blocked_or_done(engine)
    assert len(second.result()) + claimed(engine, worker) == 1


def test_two_claims_at_once_share_a_limit_also_where_they_share_no_lane(
    sessions: Sessions, engine: Engine, worker: int
):
    """Only the limit's own row can stop the second."""
    engine.set_limit("task:work", 3)
    engine.batch("work", 5)
    engine.batch("work", 5)
    first = sessions()
    with first.conn.transaction():
        assert len(first.claim(worker, "work", want=1)) == 1
        second = Rival(lambda: engine.claim(worker, "work")).wait_until_blocked(engine)
    assert len(second.result()) == 2


def test_a_full_lane_does_not_hold_up_another(engine: Engine, worker: int):
    engine.task("work", limits=Limits(per_batch=1))
    engine.batch("work", 1000)
    assert claimed(engine, worker) == 1
    new = engine.batch("work", 1)
    assert [claim.batch_id for claim in engine.claim(worker, "work")] == [str(new)]


def test_lanes_parked_behind_a_full_limit_come_forward_in_turn(engine: Engine, worker: int):
    engine.set_limit("task:work", 2)
    batches = [str(engine.batch("work", 4, tenant=f"t{n}")) for n in range(5)]
    served: list[str | None] = []
    while claims := engine.claim(worker, "work"):
        assert len(claims) == 2
        served += [claim.batch_id for claim in claims]
        engine.complete(*claims)
    assert served[::2] == batches * 2


def test_a_limit_that_frees_for_a_task_nobody_works_on_still_frees_for_others(
    engine: Engine, worker: int
):
    engine.task("orphan")
    engine.set_limit("system", 1)
    engine.batch("orphan", 1)
    engine.batch("work", 2)
    other = engine.worker("orphan")
    (claim,) = engine.claim(worker, "work", want=1)
    assert engine.claim(other, "orphan") == []
    assert engine.claim(worker, "work") == []
    engine.complete(claim)
    assert len(engine.claim(worker, "work")) == 1


# Rates.


def test_a_rate_bounds_the_starts_of_any_window(engine: Engine, worker: int):
    engine.task("work", limits=Limits(rate=Rate(3, 10)))
    engine.batch("work", 20)
    assert len(engine.claim(worker, "work", want=2)) == 2
    engine.advance_clock(9)
    assert claimed(engine, worker) == 1
    engine.advance_clock(2)
    assert claimed(engine, worker) == 2
    engine.advance_clock(7)
    assert claimed(engine, worker) == 0
    engine.advance_clock(2)
    assert claimed(engine, worker) == 1


def test_ending_a_job_does_not_give_its_start_back(engine: Engine, worker: int):
    engine.task("work", limits=Limits(rate=Rate(2, 10)))
    engine.batch("work", 5)
    engine.complete(*engine.claim(worker, "work"))
    assert claimed(engine, worker) == 0


def test_a_rate_counts_each_key_by_itself(engine: Engine, worker: int):
    engine.task("keyed", keyed=True, limits=Limits(key_rate=Rate(1, 10)))
    engine.batch("keyed", keyed("aabb"))
    assert claimed(engine, worker, "keyed") == 2
    engine.advance_clock(11)
    assert claimed(engine, worker, "keyed") == 2


def test_a_claim_tells_when_the_rate_lets_the_next_one_through(engine: Engine, worker: int):
    engine.task("work", limits=Limits(rate=Rate(1, 100)))
    engine.batch("work", 2)
    assert claimed(engine, worker) == 1
    assert claimed(engine, worker) == 0
    query = "select batchmill.claim(%s, '{work}', '{5}', 5, 0, '0')"
    assert 98 < engine.value(query, worker)["wait"] <= 101


# Changes while running.


def test_raising_lets_more_start_and_lowering_lets_none_until_there_is_room(
    engine: Engine, worker: int
):
    engine.batch("work", 20)
    engine.set_limit("task:work", 2)
    claims = engine.claim(worker, "work")
    assert len(claims) == 2
    engine.set_limit("task:work", 5)
    claims += engine.claim(worker, "work")
    assert len(claims) == 5
    engine.set_limit("task:work", 1)
    engine.complete(*claims[:4])
    assert claimed(engine, worker) == 0
    engine.complete(claims[4])
    assert claimed(engine, worker) == 1


def test_per_batch_slots_can_be_changed_while_running(engine: Engine, worker: int):
    engine.task("work", limits=Limits(per_batch=1))
    engine.batch("work", 9)
    assert claimed(engine, worker) == 1
    engine.set_limit("task:work/batch:*", 3)
    assert claimed(engine, worker) == 2
    engine.set_limit("task:work/batch:*", reset=True)
    assert claimed(engine, worker) == 0


def test_a_limit_set_over_the_declared_one_outlives_a_deploy_until_it_is_reset(
    engine: Engine, worker: int
):
    engine.task("work", limits=Limits(total=1))
    engine.set_limit("task:work", 3)
    engine.task("work", limits=Limits(total=2))
    engine.batch("work", 9)
    claims = engine.claim(worker, "work")
    assert len(claims) == 3
    engine.set_limit("task:work", reset=True)
    engine.complete(*claims[:2])
    assert claimed(engine, worker) == 1


@pytest.mark.parametrize("name", ["system", "task:work", "tenant:ann", "task:work/tenant:ann"])
def test_what_is_paused_starts_nothing_and_goes_on_when_resumed(
    name: str, engine: Engine, worker: int
):
    engine.batch("work", 2, tenant="ann")
    (running,) = engine.claim(worker, "work", want=1)
    engine.set_limit(name, paused=True)
    assert claimed(engine, worker) == 0
    assert engine.complete(running) == []
    engine.set_limit(name, paused=False)
    assert claimed(engine, worker) == 1


def test_pausing_one_tenant_stops_no_other(engine: Engine, worker: int):
    engine.set_limit("tenant:ann", paused=True)
    engine.batch("work", 3, tenant="ann")
    engine.batch("work", 3, tenant="bob")
    assert {claim.tenant for claim in engine.claim(worker, "work")} == {"bob"}


def test_a_limit_made_while_jobs_run_counts_them(engine: Engine, worker: int):
    engine.batch("work", 5)
    claims = engine.claim(worker, "work", want=3)
    engine.set_limit("tenant:default", 3)
    assert claimed(engine, worker) == 0
    engine.complete(*claims[:1])
    assert claimed(engine, worker) == 1


def test_a_template_made_while_jobs_run_counts_them(engine: Engine, worker: int):
    engine.batch("work", 5, tenant="ann")
    claims = engine.claim(worker, "work", want=3)
    engine.set_limit("tenant:*", 3)
    assert claimed(engine, worker) == 0
    engine.complete(*claims)
    assert claimed(engine, worker) == 2


def test_a_template_covers_whoever_was_paused_and_resumed_before(engine: Engine, worker: int):
    engine.set_limit("tenant:ann", paused=True)
    engine.set_limit("tenant:ann", paused=False)
    engine.set_limit("tenant:*", 1)
    engine.set_limit("tenant:bob", paused=True)
    engine.set_limit("tenant:bob", paused=False)
    engine.batch("work", 3, tenant="ann")
    engine.batch("work", 3, tenant="bob")
    tenants = [claim.tenant for claim in engine.claim(worker, "work")]
    assert sorted(tenants) == ["ann", "bob"]


def test_a_limit_of_ones_own_stands_above_the_template(engine: Engine, worker: int):
    engine.set_limit("tenant:*", 1)
    engine.set_limit("tenant:ann", 3)
    engine.batch("work", 9, tenant="ann")
    assert claimed(engine, worker) == 3
    engine.set_limit("tenant:*", 2)
    assert claimed(engine, worker) == 0


def test_pausing_a_template_pauses_also_those_with_a_limit_of_their_own(
    engine: Engine, worker: int
):
    engine.set_limit("tenant:*", 1)
    engine.set_limit("tenant:ann", 3)
    engine.batch("work", 9, tenant="ann")
    engine.set_limit("tenant:*", paused=True)
    assert claimed(engine, worker) == 0
    engine.set_limit("tenant:ann", paused=False)
    assert claimed(engine, worker) == 0
    engine.set_limit("tenant:*", paused=False)
    assert claimed(engine, worker) == 3


def test_a_batch_with_a_limit_keeps_to_the_rate_of_all_batches(engine: Engine, worker: int):
    engine.set_limit("batch:*", rate=Rate(2, 10))
    engine.batch("work", 9, limit=5)
    assert claimed(engine, worker) == 2


def test_the_upkeep_keeps_limits_that_count_and_drops_those_that_do_not(
    engine: Engine, worker: int
):
    engine.task("keyed", keyed=True, limits=Limits(per_key=5, key_rate=Rate(5, 10)))
    engine.batch("keyed", keyed("abc"))
    claims = engine.claim(worker, "keyed")
    engine.complete(*claims[:2])
    query = "select count(*) from batchmill.limits where template is not null"
    engine.call("tidy_limits")
    assert engine.value(query) == 3, "the rate still counts their starts"
    engine.advance_clock(11)
    engine.call("tidy_limits")
    assert engine.value(query) == 1


# Changes in the middle of a claim or an end.


def test_a_limit_made_while_a_claim_waits_is_kept(sessions: Sessions, engine: Engine, worker: int):
    engine.batch("work", 5)
    operator = sessions()
    with operator.conn.transaction():
        operator.set_limit("task:work", 2)
        claim = Rival(lambda: engine.claim(worker, "work")).wait_until_blocked(engine)
    assert len(claim.result()) == 2


def test_a_limit_that_comes_with_a_batch_is_kept_by_a_claim_under_way(
    sessions: Sessions, engine: Engine, worker: int
):
    engine.enqueue("work")
    engine.complete(*engine.claim(worker, "work"))
    engine.enqueue("work")
    submitter, holder = sessions(), sessions()
    with holder.conn.transaction():
        holder.rows("select from batchmill.lanes for update")
        with submitter.conn.transaction():
            submitter.batch("work", 5, limit=2)
            claim = Rival(lambda: engine.claim(worker, "work")).wait_until_blocked(engine)
    assert len(claim.result()) + claimed(engine, worker) == 3


def test_a_limit_that_a_claim_makes_does_not_count_a_job_that_is_ending(
    sessions: Sessions, engine: Engine, worker: int
):
    engine.batch("work", 1, tenant="ann")
    (running,) = engine.claim(worker, "work")
    engine.set_limit("tenant:*", 1)
    engine.batch("work", 5, tenant="ann")
    other = sessions()
    with other.conn.transaction():
        other.complete(running)
        claim = Rival(lambda: engine.claim(worker, "work")).wait_until_blocked_or_done(engine)
    assert len(claim.result()) + claimed(engine, worker) == 1


def test_times_tell_the_order_in_which_a_slot_changed_hands(
    sessions: Sessions, engine: Engine, worker: int
):
    """A claim that began before the end of the job whose slot it gets has waited in between."""
    engine.task("aside")
    engine.enqueue("aside")
    engine.complete(*engine.claim(worker, "aside"))
    engine.set_limit("task:work", 1)
    engine.batch("work", 2)
    (running,) = engine.claim(worker, "work")
    engine.enqueue("aside")
    holder, ender = sessions(), sessions()
    with holder.conn.transaction():
        holder.rows("select from batchmill.lanes where task = 'aside' for update")
        claim = Rival(lambda: engine.claim(worker, "work")).wait_until_blocked(engine)
        ender.complete(running)
    (started,) = claim.result()
    query = """select j.started_at > f.finished_at from batchmill.jobs j, batchmill.finished f
        where j.id = %s and f.id = %s"""
    assert engine.value(query, started.id, running.id)
