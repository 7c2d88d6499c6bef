"""Tenants take turns, then the tasks of a tenant, then its batches."""

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from batchmill.domain import outcome
from batchmill.domain.job import Claim
from batchmill.domain.limits import Limits, Rate
from tests.store.engine import Engine

Sessions = Callable[[], Engine]
SLOTS = 20


@pytest.fixture
def worker(engine: Engine) -> int:
    engine.task("work")
    engine.task("other")
    return engine.worker("work", "other")


def flood(engine: Engine, tenant: str, batches: int, task: str = "work", jobs: int = 1) -> None:
    for _ in range(batches):
        engine.batch(task, jobs, tenant=tenant)


def next_round(engine: Engine, worker: int, running: Iterable[Claim]) -> list[Claim]:
    """Ends all running jobs and fills all slots again, in as many calls as needed."""
    ended = [outcome.completed(claim, "1") for claim in running]
    _, started = engine.finish_and_claim(worker, "work", "other", ended=ended, want=SLOTS)
    while len(started) < SLOTS:
        more = engine.claim(worker, "work", "other", want=SLOTS - len(started))
        if not more:
            break
        started += more
    return started


def rounds_until(engine: Engine, worker: int, running: list[Claim], tenant: str) -> int:
    """The number of the round in which a job of the tenant starts."""
    for number in range(1, 200):
        running = next_round(engine, worker, running)
        if any(claim.tenant == tenant for claim in running):
            return number
    raise AssertionError(f"No job of {tenant} has started.")


@pytest.mark.parametrize("limits", [Limits(), Limits(total=SLOTS)], ids=["unlimited", "limited"])
@pytest.mark.parametrize("others", [1, 10])
def test_a_tenant_with_one_job_does_not_wait_behind_all_batches_of_others(
    others: int, limits: Limits, engine: Engine, worker: int
):
    engine.task("work", limits=limits)
    for n in range(others):
        flood(engine, f"busy-{n}", 600 // others)
    running = next_round(engine, worker, [])
    running = next_round(engine, worker, running)
    engine.batch("work", 1, tenant="quiet")
    assert rounds_until(engine, worker, running, "quiet") <= 2


def test_a_freed_slot_goes_to_a_tenant_that_waits(engine: Engine, worker: int):
    """The slot of a full limit changes tenants, although the batch that frees it has more jobs."""
    engine.task("work", limits=Limits(total=1))
    engine.batch("work", 50, tenant="busy")
    running = engine.claim(worker, "work", want=SLOTS)
    engine.batch("work", 5, tenant="quiet")
    served = []
    for _ in range(6):
        ended = [outcome.completed(claim, "1") for claim in running]
        _, running = engine.finish_and_claim(worker, "work", ended=ended, want=SLOTS)
        served += [claim.tenant for claim in running]
    assert served == ["quiet", "busy"] * 3


def test_batches_of_one_tenant_take_turns_behind_a_full_limit(engine: Engine, worker: int):
    engine.task("work", limits=Limits(total=1))
    large, small = engine.batch("work", 50), engine.batch("work", 5)
    running, served = engine.claim(worker, "work"), []
    for _ in range(6):
        ended = [outcome.completed(claim, "1") for claim in running]
        _, running = engine.finish_and_claim(worker, "work", ended=ended)
        served += [claim.batch_id for claim in running]
    assert served == [str(small), str(large)] * 3


def test_tenants_get_equal_shares_whatever_their_number_of_batches(engine: Engine, worker: int):
    flood(engine, "many", 30, jobs=50)
    flood(engine, "one", 1, jobs=1_000)
    started: Counter[str] = Counter()
    running: list[Claim] = []
    for _ in range(10):
        running = next_round(engine, worker, running)
        started.update(claim.tenant for claim in running)
    assert started["many"] == started["one"] == 5 * SLOTS


def test_a_worker_with_one_slot_serves_each_tenant_in_turn(engine: Engine, worker: int):
    for tenant in "abc":
        flood(engine, tenant, 4)
    served = [engine.claim(worker, "work", want=1)[0].tenant for _ in range(9)]
    assert served == list("abcabcabc")


def test_more_tenants_than_slots_are_all_served_before_any_is_served_again(
    engine: Engine, worker: int
):
    tenants = [f"t{n:03}" for n in range(3 * SLOTS)]
    for tenant in tenants:
        flood(engine, tenant, 1, jobs=10)
    served: list[str] = []
    running: list[Claim] = []
    while len(served) < len(tenants):
        running = engine.claim(worker, "work", want=1)
        served += [claim.tenant for claim in running]
    assert sorted(served) == tenants


def test_a_task_does_not_wait_behind_all_batches_of_another_task_of_its_tenant(
    engine: Engine, worker: int
):
    flood(engine, "busy", 400)
    running = next_round(engine, worker, [])
    engine.batch("other", 1, tenant="busy")
    for _ in range(3):
        running = next_round(engine, worker, running)
        if any(claim.task == "other" for claim in running):
            return
    raise AssertionError("The other task waits behind all batches of the first.")


@pytest.mark.parametrize("slots", [1, 3])
def test_all_tasks_of_a_tenant_are_served_when_tenants_share_a_worker(
    slots: int, engine: Engine, worker: int
):
    """The turns of another tenant do not make one task miss its turn every time."""
    flood(engine, "two", 100)
    flood(engine, "two", 100, task="other")
    flood(engine, "one", 100)
    served: Counter[tuple[str, str]] = Counter()
    for _ in range(100 // slots):
        for claim in engine.claim(worker, "work", "other", want=slots):
            served[claim.tenant, claim.task] += 1
    assert min(served["two", "work"], served["two", "other"]) > 10
    assert served["one", "work"] >= 30


def test_a_lane_that_becomes_due_is_served_in_turn(engine: Engine, worker: int):
    flood(engine, "busy", 300)
    engine.batch("work", 1, tenant="later", delay=60)
    running = next_round(engine, worker, [])
    assert all(claim.tenant == "busy" for claim in running)
    engine.advance_clock(61)
    assert rounds_until(engine, worker, running, "later") <= 2


def test_a_claim_skips_lanes_that_another_claim_has_locked(
    sessions: Sessions, engine: Engine, worker: int
):
    for tenant in "abcd":
        flood(engine, tenant, 1, jobs=5)
    first, second = sessions(), sessions()
    with first.conn.transaction():
        assert [claim.tenant for claim in first.claim(worker, "work", want=1)] == ["a"]
        claims = second.claim(second.worker("work"), "work", want=1)
    assert [claim.tenant for claim in claims] == ["b"]


@pytest.mark.parametrize("want", [1, 2])
@pytest.mark.parametrize("held_by", ["pause", "slots", "rate"])
def test_a_tenant_at_its_own_limit_does_not_block_other_tenants(
    held_by: str, want: int, engine: Engine, worker: int
):
    """A claim that meets only lanes of this tenant continues with the lanes after them."""
    flood(engine, "busy", 50)
    match held_by:
        case "pause":
            engine.set_limit("tenant:busy", paused=True)
        case "slots":
            engine.set_limit("tenant:*", slots=2)
        case _:
            engine.set_limit("tenant:busy", rate=Rate(2, 60))
    engine.batch("work", 1, tenant="quiet")
    served = [claim.tenant for _ in range(5) for claim in engine.claim(worker, "work", want=want)]
    assert "quiet" in served


def test_short_jobs_of_one_tenant_do_not_affect_the_turns_of_another_task(
    engine: Engine, worker: int
):
    engine.task("work", limits=Limits(total=4, per_tenant=3, per_batch=3))
    for tenant in ("b-heavy", "bb-heavy"):
        flood(engine, tenant, 4, jobs=50)
    running = next_round(engine, worker, [])
    engine.batch("work", 1, tenant="c-quiet")
    served: list[str] = []
    for _ in range(8):
        engine.batch("other", 1, tenant="a-cheap")
        running += engine.claim(worker, "work", "other", want=30)
        cheap = [claim for claim in running if claim.task == "other"]
        limited = [claim for claim in running if claim.task == "work"]
        ended = [outcome.completed(claim, "1") for claim in [limited[0], *cheap]]
        _, started = engine.finish_and_claim(worker, "work", "other", ended=ended, want=30)
        running = limited[1:] + started
        served += [claim.tenant for claim in started]
    assert "c-quiet" in served


def test_many_single_jobs_of_one_tenant_do_not_keep_others_from_starting(
    engine: Engine, worker: int
):
    for _ in range(1_100):
        engine.enqueue("work", tenant="busy")
    engine.enqueue("work", tenant="quiet")
    served = {claim.tenant for claim in engine.claim(worker, "work", want=SLOTS)}
    assert served == {"busy", "quiet"}
