"""Limits are exact, can change while jobs run, and do not delay jobs that they do not apply to."""

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


def test_a_total_limit_counts_all_batches_and_single_jobs_together(engine: Engine, worker: int):
    engine.task("work", limits=Limits(total=4))
    engine.batch("work", 2)
    engine.batch("work", 2, tenant="ann")
    engine.enqueue("work")
    claims = engine.claim(worker, "work")
    assert len(claims) == 4
    assert claimed(engine, worker) == 0
    engine.complete(claims[0])
    assert claimed(engine, worker) == 1


def test_a_per_batch_limit_counts_each_batch_separately(engine: Engine, worker: int):
    engine.task("work", limits=Limits(per_batch=3))
    first, second = engine.batch("work", 10), engine.batch("work", 2)
    batches = [claim.batch_id for claim in engine.claim(worker, "work")]
    assert (batches.count(str(first)), batches.count(str(second))) == (3, 2)


def test_a_per_batch_limit_counts_a_keyed_batch_across_all_its_keys(engine: Engine, worker: int):
    engine.task("keyed", keyed=True, limits=Limits(per_batch=3))
    engine.batch("keyed", keyed("abcdefabc"))
    engine.batch("keyed", keyed("ab"))
    assert claimed(engine, worker, "keyed") == 5


def test_a_per_tenant_limit_counts_each_tenant_separately(engine: Engine, worker: int):
    engine.task("work", limits=Limits(per_tenant=2))
    for tenant in ("ann", "ann", "bob"):
        engine.batch("work", 5, tenant=tenant)
    tenants = [claim.tenant for claim in engine.claim(worker, "work")]
    assert sorted(tenants) == ["ann", "ann", "bob", "bob"]


def test_a_per_key_limit_counts_each_key_across_all_batches(engine: Engine, worker: int):
    engine.task("keyed", keyed=True, limits=Limits(per_key=1))
    engine.batch("keyed", keyed("aab"))
    engine.batch("keyed", keyed("aac"))
    keys = sorted(claim.key for claim in engine.claim(worker, "keyed"))
    assert keys == ["a", "b", "c"]


def test_a_limit_on_a_key_counts_it_across_all_tasks(engine: Engine):
    for task in ("read", "write"):
        engine.task(task, keyed=True)
        engine.batch(task, keyed("aaab"))
    engine.set_limit("key:a", 2)
    worker = engine.worker("read", "write")
    keys = sorted(claim.key for claim in engine.claim(worker, "read", "write"))
    assert keys == ["a", "a", "b", "b"]


def test_the_limit_of_a_submit_counts_the_batch_across_all_its_stages(engine: Engine, worker: int):
    engine.task("next")
    engine.batch("work", 5, limit=2)
    claims = engine.claim(worker, "work", "next")
    assert len(claims) == 2
    engine.finish(outcome.advanced(claims[0], "next", "", "1"))
    assert len(engine.claim(worker, "work", "next")) == 1


def test_the_lowest_of_several_limits_applies(engine: Engine, worker: int):
    engine.task("work", limits=Limits(total=5, per_batch=4, per_tenant=3))
    engine.batch("work", 10, limit=2, tenant="ann")
    engine.batch("work", 10, tenant="ann")
    engine.batch("work", 10, tenant="bob")
    engine.set_limit("system", 4)
    assert claimed(engine, worker) == 4
    engine.set_limit("system", 9)
    assert claimed(engine, worker) == 1


def test_prefetched_jobs_come_only_from_lanes_without_limits(engine: Engine, worker: int):
    engine.task("limited", limits=Limits(total=10))
    engine.batch("limited", 10)
    assert len(engine.claim(worker, "limited", want=3, prefetch=5, limited=8)) == 3
    engine.batch("work", 10)
    assert len(engine.claim(worker, "work", want=3, prefetch=5, work=8)) == 8


def test_two_concurrent_claims_share_the_last_slots(
    sessions: Sessions, engine: Engine, worker: int
):
    engine.set_limit("task:work", 3)
    engine.batch("work", 5)
    engine.batch("work", 5)
    first = sessions()
    with first.conn.transaction():
        assert len(first.claim(worker, "work", want=2)) == 2
        second = Rival(lambda: engine.claim(worker, "work")).wait_until_blocked_or_done(engine)
    assert len(second.result()) + claimed(engine, worker) == 1


def test_two_concurrent_claims_of_different_lanes_share_a_limit(
    sessions: Sessions, engine: Engine, worker: int
):
    """Only the lock on the limit's row blocks the second claim."""
    engine.set_limit("task:work", 3)
    engine.batch("work", 5)
    engine.batch("work", 5)
    first = sessions()
    with first.conn.transaction():
        assert len(first.claim(worker, "work", want=1)) == 1
        second = Rival(lambda: engine.claim(worker, "work")).wait_until_blocked(engine)
    assert len(second.result()) == 2


def test_a_full_lane_does_not_block_another_lane(engine: Engine, worker: int):
    engine.task("work", limits=Limits(per_batch=1))
    engine.batch("work", 1000)
    assert claimed(engine, worker) == 1
    new = engine.batch("work", 1)
    assert [claim.batch_id for claim in engine.claim(worker, "work")] == [str(new)]


def test_lanes_parked_behind_a_full_limit_take_turns(engine: Engine, worker: int):
    engine.set_limit("task:work", 2)
    batches = [str(engine.batch("work", 4, tenant=f"t{n}")) for n in range(5)]
    served: list[str | None] = []
    while claims := engine.claim(worker, "work"):
        assert len(claims) == 2
        served += [claim.batch_id for claim in claims]
        engine.complete(*claims)
    assert served[::2] == batches * 2


def test_a_free_slot_is_not_reserved_for_a_task_that_no_worker_claims(engine: Engine, worker: int):
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


def test_a_rate_limits_the_starts_in_every_window(engine: Engine, worker: int):
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


def test_finishing_a_job_does_not_allow_another_start_under_a_rate(engine: Engine, worker: int):
    engine.task("work", limits=Limits(rate=Rate(2, 10)))
    engine.batch("work", 5)
    engine.complete(*engine.claim(worker, "work"))
    assert claimed(engine, worker) == 0


def test_a_key_rate_counts_each_key_separately(engine: Engine, worker: int):
    engine.task("keyed", keyed=True, limits=Limits(key_rate=Rate(1, 10)))
    engine.batch("keyed", keyed("aabb"))
    assert claimed(engine, worker, "keyed") == 2
    engine.advance_clock(11)
    assert claimed(engine, worker, "keyed") == 2


def test_a_claim_reports_when_the_rate_allows_the_next_start(engine: Engine, worker: int):
    engine.task("work", limits=Limits(rate=Rate(1, 100)))
    engine.batch("work", 2)
    assert claimed(engine, worker) == 1
    assert claimed(engine, worker) == 0
    query = "select batchmill.claim_jobs(%s, '{work}', '{5}', 5, 0, '0')"
    assert 98 < engine.value(query, worker)["wait"] <= 101


# Changes while jobs run.


def test_a_raised_limit_starts_more_jobs_and_a_lowered_limit_waits_for_room(
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


def test_per_batch_slots_can_be_changed_while_jobs_run(engine: Engine, worker: int):
    engine.task("work", limits=Limits(per_batch=1))
    engine.batch("work", 9)
    assert claimed(engine, worker) == 1
    engine.set_limit("task:work/batch:*", 3)
    assert claimed(engine, worker) == 2
    engine.set_limit("task:work/batch:*", reset=True)
    assert claimed(engine, worker) == 0


def test_a_limit_set_by_an_operator_survives_a_deploy_until_it_is_reset(
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
def test_a_paused_limit_starts_no_jobs_until_it_is_resumed(name: str, engine: Engine, worker: int):
    engine.batch("work", 2, tenant="ann")
    (running,) = engine.claim(worker, "work", want=1)
    engine.set_limit(name, paused=True)
    assert claimed(engine, worker) == 0
    assert engine.complete(running) == []
    engine.set_limit(name, paused=False)
    assert claimed(engine, worker) == 1


def test_pausing_one_tenant_does_not_stop_other_tenants(engine: Engine, worker: int):
    engine.set_limit("tenant:ann", paused=True)
    engine.batch("work", 3, tenant="ann")
    engine.batch("work", 3, tenant="bob")
    assert {claim.tenant for claim in engine.claim(worker, "work")} == {"bob"}


def test_a_limit_created_while_jobs_run_counts_them(engine: Engine, worker: int):
    engine.batch("work", 5)
    claims = engine.claim(worker, "work", want=3)
    engine.set_limit("tenant:default", 3)
    assert claimed(engine, worker) == 0
    engine.complete(*claims[:1])
    assert claimed(engine, worker) == 1


def test_a_template_created_while_jobs_run_counts_them(engine: Engine, worker: int):
    engine.batch("work", 5, tenant="ann")
    claims = engine.claim(worker, "work", want=3)
    engine.set_limit("tenant:*", 3)
    assert claimed(engine, worker) == 0
    engine.complete(*claims)
    assert claimed(engine, worker) == 2


def test_a_template_applies_to_tenants_that_were_paused_and_resumed(engine: Engine, worker: int):
    engine.set_limit("tenant:ann", paused=True)
    engine.set_limit("tenant:ann", paused=False)
    engine.set_limit("tenant:*", 1)
    engine.set_limit("tenant:bob", paused=True)
    engine.set_limit("tenant:bob", paused=False)
    engine.batch("work", 3, tenant="ann")
    engine.batch("work", 3, tenant="bob")
    tenants = [claim.tenant for claim in engine.claim(worker, "work")]
    assert sorted(tenants) == ["ann", "bob"]


def test_a_tenants_own_limit_overrides_the_template(engine: Engine, worker: int):
    engine.set_limit("tenant:*", 1)
    engine.set_limit("tenant:ann", 3)
    engine.batch("work", 9, tenant="ann")
    assert claimed(engine, worker) == 3
    engine.set_limit("tenant:*", 2)
    assert claimed(engine, worker) == 0


def test_pausing_a_template_pauses_tenants_with_their_own_limit_too(engine: Engine, worker: int):
    engine.set_limit("tenant:*", 1)
    engine.set_limit("tenant:ann", 3)
    engine.batch("work", 9, tenant="ann")
    engine.set_limit("tenant:*", paused=True)
    assert claimed(engine, worker) == 0
    engine.set_limit("tenant:ann", paused=False)
    assert claimed(engine, worker) == 0
    engine.set_limit("tenant:*", paused=False)
    assert claimed(engine, worker) == 3


def test_a_batch_with_its_own_limit_follows_the_rate_of_the_template(engine: Engine, worker: int):
    engine.set_limit("batch:*", rate=Rate(2, 10))
    engine.batch("work", 9, limit=5)
    assert claimed(engine, worker) == 2


def test_the_upkeep_removes_limits_that_count_nothing_any_more(engine: Engine, worker: int):
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


# Changes while a claim or a finish is in progress.


def test_a_blocked_claim_respects_a_limit_created_in_the_meantime(
    sessions: Sessions, engine: Engine, worker: int
):
    engine.batch("work", 5)
    operator = sessions()
    with operator.conn.transaction():
        operator.set_limit("task:work", 2)
        claim = Rival(lambda: engine.claim(worker, "work")).wait_until_blocked(engine)
    assert len(claim.result()) == 2


def test_a_claim_in_progress_respects_the_limit_of_a_new_batch(
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


def test_a_limit_created_by_a_claim_does_not_count_a_job_that_is_finishing(
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


def test_timestamps_show_the_order_in_which_jobs_used_a_slot(
    sessions: Sessions, engine: Engine, worker: int
):
    """The claim begins before the job that uses the slot ends."""
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
