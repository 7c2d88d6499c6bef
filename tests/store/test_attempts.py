"""How attempts end: writes are fenced, delays are stored, and only an expired lease means lost."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest

from batchmill.domain import outcome
from batchmill.domain.job import Claim, JobState, Progress
from batchmill.domain.retry import Retry
from tests.invariants import violations
from tests.store.engine import LEASE, PERMANENT, TRANSIENT, Engine

Sessions = Callable[[], Engine]


@pytest.fixture
def worker(engine: Engine) -> int:
    engine.task("work")
    engine.task("next")
    return engine.worker("work", "next")


def test_a_retry_starts_only_after_its_stored_delay(engine: Engine, worker: int):
    engine.batch("work", 1)
    engine.fail(*engine.claim(worker, "work"), failure=TRANSIENT)
    assert engine.claim(worker, "work") == []
    engine.advance_clock(9)
    assert engine.claim(worker, "work") == []
    engine.advance_clock(2)
    (claim,) = engine.claim(worker, "work")
    assert claim.attempt == 2


def test_retry_delays_follow_the_policy_until_attempts_run_out(engine: Engine, worker: int):
    job = engine.enqueue("work")["job_id"]
    waits: list[Any] = []
    for _ in range(2):
        engine.fail(*engine.claim(worker, "work"), failure=TRANSIENT)
        query = """select extract(epoch from run_at - clock)::integer
            from batchmill.jobs, batchmill.clock()"""
        waits.append(engine.value(query))
        engine.advance_clock(100)
    engine.fail(*engine.claim(worker, "work"), failure=TRANSIENT)
    assert (waits, engine.state(job)) == ([10, 20], JobState.FAILED)


def test_failed_attempts_are_recorded_with_their_code_times_and_worker(engine: Engine, worker: int):
    job = engine.enqueue("work")["job_id"]
    for _ in range(3):
        engine.fail(*engine.claim(worker, "work"), failure=TRANSIENT)
        engine.advance_clock(100)
    kept = engine.value("select attempts from batchmill.finished where id = %s", job)
    assert [entry["attempt"] for entry in kept] == [1, 2, 3]
    assert {entry["code"] for entry in kept} == {"busy"}
    assert {entry["worker"] for entry in kept} == {"test"}
    assert all(entry["started_at"] <= entry["ended_at"] for entry in kept)


def test_a_lost_worker_cannot_overwrite_the_result_of_the_next_attempt(engine: Engine, worker: int):
    batch = engine.batch("work", 1)
    (first,) = engine.claim(worker, "work")
    rescuer = lose(engine, worker)
    engine.advance_clock(100)
    engine.call("renew_lease", rescuer, LEASE)
    (second,) = engine.claim(rescuer, "work")
    assert second.fence > first.fence
    assert engine.complete(first, result="first") == [first.id]
    assert engine.complete(second, result="second") == []
    assert engine.complete(first, result="first") == [first.id]
    assert engine.value("select result from batchmill.finished") == "second"
    assert engine.status(batch) == ("completed", 1, 0, 1, 0, 0)


def assert_all_writes_are_refused(engine: Engine, stale: Claim, batch: UUID) -> None:
    """Every write of the attempt is refused, and none adds an event."""
    before = engine.events(batch)
    assert engine.report(stale, progress={"stage": "late"}) == [stale.id]
    save = "select batchmill.save_checkpoint(%s, %s, 'step', '1'::json)"
    assert engine.value(save, stale.id, stale.fence) is False
    for ending in (
        outcome.completed(stale, "1"),
        outcome.advanced(stale, "next", "", "1"),
        outcome.snoozed(stale, 1),
        outcome.released(stale),
        outcome.cancelled(stale),
    ):
        assert engine.finish(ending) == [stale.id]
    assert engine.events(batch) == before


def test_a_stale_attempt_can_write_nothing_at_all(engine: Engine, worker: int):
    batch = engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    lose(engine, worker)
    assert_all_writes_are_refused(engine, claim, batch)


def test_a_stale_attempt_can_write_nothing_while_the_next_one_runs(engine: Engine, worker: int):
    batch = engine.batch("work", 1)
    (stale,) = engine.claim(worker, "work")
    rescuer = lose(engine, worker)
    engine.advance_clock(100)
    engine.call("renew_lease", rescuer, LEASE)
    (running,) = engine.claim(rescuer, "work")
    assert_all_writes_are_refused(engine, stale, batch)
    query = "select fence, progress, checkpoints from batchmill.jobs"
    assert engine.rows(query) == [(running.fence, None, None)]


def test_outcomes_with_a_wrong_fence_are_refused(engine: Engine, worker: int):
    engine.batch("work", 2)
    (claim,) = engine.claim(worker, "work", want=1)
    id, fence, lane, *_ = claim
    waiting = id + 1
    guesses = [(id, fence + 1, lane), (waiting, fence, lane), (waiting, 0, lane), (999, 1, 1)]
    assert engine.complete(*(Claim(*guess) for guess in guesses)) == [id, waiting, 999]


def test_an_outcome_that_is_sent_twice_counts_once(engine: Engine, worker: int):
    batch = engine.batch("work", 3)
    first, second, _ = engine.claim(worker, "work")
    assert engine.complete(first, first) == []
    assert engine.complete(first, second) == [first.id]
    assert engine.status(batch) == ("processing", 3, 1, 2, 0, 0)


def test_a_worker_that_renews_its_lease_is_not_lost_during_a_long_job(engine: Engine, worker: int):
    engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    for _ in range(100):
        engine.advance_clock(LEASE - 1)
        assert engine.call("renew_lease", worker, LEASE) == []
        assert engine.look_after(worker) == []
    assert engine.complete(claim) == []


def test_an_expired_lease_returns_all_jobs_of_the_worker_and_counts_the_attempt(
    engine: Engine, worker: int
):
    engine.batch("work", 3)
    lost = engine.claim(worker, "work", want=2)
    rescuer = lose(engine, worker)
    engine.advance_clock(100)
    engine.call("renew_lease", rescuer, LEASE)
    again = {claim.id: claim.attempt for claim in engine.claim(rescuer, "work")}
    assert again == {lost[0].id: 2, lost[1].id: 2, lost[1].id + 1: 1}


@pytest.mark.parametrize(
    "end",
    [
        "update batchmill.workers set state = 'draining' where id = %s returning id",
        "update batchmill.workers set state = 'stopped' where id = %s returning id",
        "delete from batchmill.workers where id = %s returning id",
    ],
)
def test_jobs_of_a_draining_stopped_or_deleted_worker_are_rescued(
    end: str, engine: Engine, worker: int
):
    engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    engine.rows(end, worker)
    engine.advance_clock(LEASE + 1)
    engine.tidy()
    assert engine.look_after(engine.worker("work")) == [claim.id]


def test_a_locked_worker_row_does_not_delay_the_rescue_of_other_jobs(
    engine: Engine, worker: int, sessions: Sessions
):
    """A claim locks its worker's row until its transaction ends, which may never happen."""
    engine.batch("work", 2)
    (held,) = engine.claim(worker, "work", want=1)
    (lost,) = engine.claim(engine.worker("work"), "work", want=1)
    holder = sessions()
    engine.conn.execute("set lock_timeout = '5s'")
    with holder.conn.transaction():
        holder.rows("select id from batchmill.workers where id = %s for update", worker)
        engine.advance_clock(LEASE + 1)
        leader = engine.worker("work")
        assert engine.look_after(leader) == [lost.id]
    assert engine.look_after(leader) == [held.id]


def test_a_lost_worker_cannot_renew_its_lease_or_claim_jobs(engine: Engine, worker: int):
    lose(engine, worker)
    assert engine.call("renew_lease", worker, LEASE) is None
    with pytest.raises(Exception, match=f"Worker {worker} is not live"):
        engine.claim(worker, "work")


def test_a_claim_reports_whether_its_worker_is_the_only_live_worker(engine: Engine, worker: int):
    def is_alone() -> bool:
        return engine.value(
            "select batchmill.claim_jobs(%s, '{work}', '{1}', 1, 0, '0') -> 'alone'", worker
        )

    engine.task("work")
    assert is_alone()
    other = engine.worker("work", name="other")
    assert not is_alone()
    engine.value("update batchmill.workers set state = 'stopped' where id = %s returning 1", other)
    assert is_alone()


def test_a_job_that_loses_its_worker_every_time_fails(engine: Engine, worker: int):
    batch = engine.batch("work", 1)
    for _ in range(3):
        assert len(engine.claim(worker, "work")) == 1
        worker = lose(engine, worker)
        engine.advance_clock(1000)
        engine.call("renew_lease", worker, LEASE)
    assert engine.status(batch) == ("failed", 1, 0, 0, 1, 0)
    assert engine.value("select error ->> 'code' from batchmill.finished") == "worker_lost"


def test_upkeep_has_one_leader_until_its_lease_expires(engine: Engine, worker: int):
    second = engine.worker("work")
    assert engine.call("lead", worker, 15)
    assert not engine.call("lead", second, 15)
    assert engine.call("look_after", second, 15) is None
    engine.advance_clock(16)
    assert engine.call("lead", second, 15)
    assert not engine.call("lead", worker, 15)


def test_a_snooze_does_not_use_up_an_attempt(engine: Engine, worker: int):
    engine.batch("work", 1)
    for snoozes in range(5):
        (claim,) = engine.claim(worker, "work")
        assert (claim.attempt, claim.snoozes) == (1, snoozes)
        engine.finish(outcome.snoozed(claim, 60))
        assert engine.claim(worker, "work") == []
        engine.advance_clock(61)
        engine.call("renew_lease", worker, LEASE)


def test_a_released_job_uses_up_no_attempt_and_starts_without_delay(engine: Engine, worker: int):
    engine.batch("work", 3)
    (claim,) = engine.claim(worker, "work", want=1)
    engine.release(claim)
    again = engine.claim(worker, "work")
    assert [(c.id, c.attempt) for c in again] == [(claim.id + n, 1) for n in range(3)]


def test_a_stage_starts_after_the_previous_stage_with_its_own_payload_and_attempts(
    engine: Engine, worker: int
):
    batch = engine.batch("work", ["sheet"])
    engine.fail(*engine.claim(worker, "work"), failure=TRANSIENT)
    assert engine.claim(worker, "next") == []
    engine.advance_clock(11)
    engine.finish(*(outcome.advanced(c, "next", "", '"pdf"') for c in engine.claim(worker, "work")))
    assert engine.claim(worker, "work") == []
    (claim,) = engine.claim(worker, "next")
    assert (claim.task, claim.payload, claim.attempt) == ("next", '"pdf"', 1)
    engine.complete(claim)
    assert engine.events(batch) == [
        "batch_started",
        "job_started",
        "job_retrying",
        "job_started",
        "job_stage",
        "job_started",
        "job_completed",
        "batch_completed",
    ]


def test_a_stage_counts_its_own_snoozes(engine: Engine, worker: int):
    engine.batch("work", 1)
    engine.finish(*(outcome.snoozed(claim, 0) for claim in engine.claim(worker, "work")))
    (snoozed,) = engine.claim(worker, "work")
    assert snoozed.snoozes == 1
    engine.finish(outcome.advanced(snoozed, "next", "", "1"))
    (claim,) = engine.claim(worker, "next")
    assert claim.snoozes == 0


def test_checkpoints_are_available_to_the_next_attempt(engine: Engine, worker: int):
    engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    for name, value in (("a", "1"), ("b", "[2]")):
        query = "select batchmill.save_checkpoint(%s, %s, %s, %s::json)"
        assert engine.value(query, claim.id, claim.fence, name, value)
    engine.fail(claim, failure=TRANSIENT)
    engine.advance_clock(11)
    (claim,) = engine.claim(worker, "work")
    assert claim.checkpoints == {"a": 1, "b": [2]}


def test_checkpoints_last_through_all_stages(engine: Engine, worker: int):
    engine.batch("work", 1)
    (first,) = engine.claim(worker, "work")
    engine.value("select batchmill.save_checkpoint(%s, %s, 'step', '1')", first.id, first.fence)
    engine.finish(outcome.advanced(first, "next", "", "1"))
    (second,) = engine.claim(worker, "next")
    assert second.checkpoints == {"step": 1}


@pytest.mark.parametrize("excess", [0, 1])
def test_all_checkpoints_of_a_job_together_have_a_size_limit(
    engine: Engine, worker: int, excess: int
):
    engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    save = "select batchmill.save_checkpoint(%s, %s, %s, to_json(repeat('x', %s)))"
    first = 4_000_000
    # Postgres writes the names, quotes and separators of the object as {"a": "…", "b": "…"}.
    rest = 4 * 2**20 - first - len('{"a": "", "b": ""}')
    engine.value(save, claim.id, claim.fence, "a", first)
    if excess:
        with pytest.raises(psycopg.Error, match="the limit is 4194304"):
            engine.value(save, claim.id, claim.fence, "b", rest + 1)
    assert engine.value(save, claim.id, claim.fence, "b", rest)


def test_a_claim_has_the_labels_of_its_batch_or_job(engine: Engine, worker: int):
    engine.batch("work", 1, labels={"club": "blue"})
    engine.enqueue("work", labels={"club": "red"})
    engine.batch("work", 1, labels={"club": "green"})
    labels = {c.labels["club"] if c.labels else None for c in engine.claim(worker, "work")}
    assert labels == {"blue", "red", "green"}


def test_progress_is_an_event_and_the_last_progress_is_kept(engine: Engine, worker: int):
    batch = engine.batch("work", 2)
    claims = engine.claim(worker, "work")
    engine.report(*claims, progress={"stage": "half", "percent": 50})
    engine.finish(outcome.completed(claims[0], "1")._replace(progress=None))
    engine.complete(claims[1])
    assert engine.events(batch).count("job_progress") == 2
    query = "select progress ->> 'stage' from batchmill.finished"
    assert engine.rows(query) == [("half",), ("half",)]


def test_last_progress_events_come_before_the_end_events_for_every_outcome(
    engine: Engine, worker: int
):
    batch = engine.batch("work", 3)
    first, second, third = engine.claim(worker, "work")
    ended = [
        outcome.completed(first, "1"),
        outcome.failed(second, PERMANENT, Retry(), 0),
        outcome.released(third),
    ]
    engine.finish(*(each._replace(progress=Progress("last")) for each in ended))
    query = "select number, type from batchmill.events where batch_id = %s order by number"
    events = engine.rows(query, batch)
    assert [number for number, _ in events] == list(range(1, 11))
    assert [type for _, type in events[4:]] == [
        *["job_progress"] * 3,
        "job_completed",
        "job_failed",
        "job_released",
    ]


def test_jobs_start_by_priority_and_then_in_order_of_submission(engine: Engine, worker: int):
    items = [{"payload": n, "priority": p} for n, p in enumerate([0, 5, 0, -3, 5])]
    engine.batch("work", items)
    order = [engine.claim(worker, "work", want=1)[0].position for _ in range(5)]
    assert order == [1, 4, 0, 2, 3]


def test_lanes_take_turns(engine: Engine, worker: int):
    large = engine.batch("work", 100)
    small = engine.batch("work", 3)
    turns = [engine.claim(worker, "work", want=1)[0].batch_id for _ in range(6)]
    assert turns == [str(large), str(small)] * 3


def test_prefetched_jobs_come_from_fewer_lanes_than_jobs_that_start_now(
    engine: Engine, worker: int
):
    for _ in range(20):
        engine.batch("work", 200)
    ahead = engine.claim(worker, "work", want=8, prefetch=792, work=800)
    at_once = engine.claim(worker, "work", want=40)
    first, second = ({claim.batch_id for claim in claims} for claims in (ahead, at_once))
    assert (len(ahead), len(first)) == (800, 9)
    assert (len(at_once), len(second)) == (40, 10)
    assert not first & second


def test_a_claim_in_progress_leaves_lanes_to_other_workers(sessions: Sessions, worker: int):
    first, second = sessions(), sessions()
    for _ in range(30):
        first.batch("work", 10)
    with first.conn.transaction():
        assert len(first.claim(worker, "work", want=40)) == 40
        others = second.claim(second.worker("work"), "work", want=40)
        assert len({claim.batch_id for claim in others}) == 10


def lose(engine: Engine, worker: int) -> int:
    """Lets the worker's lease expire; returns a new worker that has rescued its jobs."""
    engine.advance_clock(LEASE + 1)
    rescuer = engine.worker("work", "next")
    engine.look_after(rescuer)
    return rescuer


def test_a_claim_returns_jobs_by_lane_and_then_by_priority(engine: Engine, worker: int):
    """A worker starts them in this order."""
    later = engine.batch("work", [{"payload": n, "priority": n} for n in (0, 5, 1)])
    sooner = engine.batch("work", [{"payload": n, "priority": n} for n in (-3, -1)])
    engine.rows(
        "update batchmill.lanes set ready_at = ready_at - interval '1 s' where batch_id = %s "
        "returning id",
        sooner,
    )
    claims = engine.claim(worker, "work")
    turns = [(claim.batch_id, claim.payload) for claim in claims]
    expected = [(sooner, "-1"), (sooner, "-3"), (later, "5"), (later, "1"), (later, "0")]
    assert turns == [(str(batch), payload) for batch, payload in expected]


# Jobs that are enqueued while a worker is idle start without waiting in their lane.


@pytest.fixture
def idle(engine: Engine, worker: int) -> int:
    """A worker that has run a job of each task, so that their lanes exist."""
    for task in ("work", "next"):
        engine.enqueue(task)
        engine.complete(*engine.claim(worker, task))
    return worker


def payloads(claims: list[Claim]) -> list[str]:
    return [claim.payload for claim in claims]


def test_jobs_enqueued_for_an_idle_worker_start_in_priority_order(engine: Engine, idle: int):
    for n, priority in enumerate((0, 5, 0)):
        engine.enqueue("work", n, priority=priority)
    claims = engine.claim(idle, "work")
    assert payloads(claims) == ["1", "0", "2"]
    assert violations(engine.conn) == []
    engine.set_limit("task:work", 3)
    engine.enqueue("work", 3)
    assert engine.claim(idle, "work") == []
    engine.complete(*claims)
    assert payloads(engine.claim(idle, "work")) == ["3"]


def test_jobs_of_a_waiting_batch_start_before_a_new_job(engine: Engine, idle: int):
    engine.batch("work", 2)
    engine.enqueue("work", "late")
    assert payloads(engine.claim(idle, "work", want=1)) == ["0"]
    assert set(payloads(engine.claim(idle, "work"))) == {"1", '"late"'}


def test_jobs_that_wait_in_the_lane_start_before_a_new_job(engine: Engine, idle: int):
    for n in (1, 2):
        engine.enqueue("work", n)
    first = engine.claim(idle, "work", want=1)
    engine.release(*first)
    engine.enqueue("work", 3)
    assert payloads(first + engine.claim(idle, "work")) == ["1", "1", "2", "3"]


def test_new_jobs_of_several_tenants_and_tasks_start_and_delayed_ones_wait(
    engine: Engine, idle: int
):
    engine.enqueue("work", 1, tenant="ann")
    engine.enqueue("work", 2)
    engine.enqueue("next", 3)
    engine.enqueue("work", 4, delay=60)
    assert sorted(payloads(engine.claim(idle, "work", "next"))) == ["1", "2", "3"]
    engine.advance_clock(61)
    assert payloads(engine.claim(idle, "work", "next")) == ["4"]
    assert violations(engine.conn) == []


def test_no_more_new_jobs_start_than_the_claim_asks_for(engine: Engine, idle: int):
    for n in range(3):
        engine.enqueue("work", n)
    assert payloads(engine.claim(idle, want=5, work=2)) == ["0", "1"]
    engine.enqueue("next", 9)
    assert engine.claim(idle, "work", want=0) == []
    assert sorted(payloads(engine.claim(idle, "work", "next"))) == ["2", "9"]


def test_a_busy_worker_finishes_jobs_and_starts_new_ones_in_one_call(engine: Engine, idle: int):
    engine.enqueue("work", 1)
    (running,) = engine.claim(idle, "work")
    engine.enqueue("work", 2)
    refused, claims = engine.finish_and_claim(idle, "work", ended=[outcome.completed(running, "1")])
    assert (refused, payloads(claims)) == ([], ["2"])
    engine.enqueue("work", 3)
    refused, again = engine.finish_and_claim(idle, "work", ended=[outcome.released(claims[0])])
    assert (refused, payloads(again + engine.claim(idle, "work"))) == ([], ["2", "3"])
    assert violations(engine.conn) == []
