"""The life of a batch: counters, a single finish, cancels, retries, deletion and retention."""

from collections.abc import Callable
from uuid import UUID, uuid4

import psycopg
import pytest

from batchmill.domain import outcome
from batchmill.domain.job import JobState
from batchmill.domain.limits import Limits
from tests.invariants import violations
from tests.store.engine import LEASE, TRANSIENT, Engine
from tests.store.rivals import Rival

Sessions = Callable[[], Engine]


@pytest.fixture
def worker(engine: Engine) -> int:
    engine.task("work")
    engine.task("callback")
    return engine.worker("work", "callback")


@pytest.mark.parametrize(
    ("endings", "state"),
    [
        ("cc", "completed"),
        ("cf", "partial"),
        ("ff", "failed"),
        ("cx", "partial"),
        ("fx", "failed"),
        ("xx", "cancelled"),
    ],
)
def test_the_state_of_a_batch_follows_from_the_outcomes_of_its_jobs(
    endings: str, state: str, engine: Engine, worker: int
):
    batch = engine.batch("work", len(endings))
    for ending, claim in zip(endings, engine.claim(worker, "work"), strict=True):
        match ending:
            case "c":
                engine.complete(claim)
            case "f":
                engine.fail(claim)
            case _:
                engine.call("cancel_job", claim.id)
                engine.finish(outcome.cancelled(claim))
    assert engine.status(batch)[0] == state
    assert (
        engine.events(batch)[-1] == f"batch_{'cancelled' if state == 'cancelled' else 'completed'}"
    )


def test_one_call_can_end_jobs_of_many_batches(engine: Engine, worker: int):
    batches = [engine.batch("work", 2) for _ in range(5)]
    engine.enqueue("work")
    claims = engine.claim(worker, "work")
    assert len(claims) == 11
    assert engine.complete(*claims) == []
    assert {engine.status(batch) for batch in batches} == {("completed", 2, 0, 2, 0, 0)}


def test_a_batch_submits_its_callback_once_even_if_all_jobs_failed(engine: Engine, worker: int):
    batch = engine.batch("work", 2, on_finish="callback", tenant="ann")
    engine.fail(*engine.claim(worker, "work"))
    (callback,) = engine.claim(worker, "callback")
    assert callback.tenant == "ann"
    (summary,) = engine.rows("select payload from batchmill.jobs where id = %s", callback.id)
    assert summary[0] == {
        "batch_id": str(batch),
        "tenant": "ann",
        "state": "failed",
        "total": 2,
        "completed": 0,
        "failed": 2,
        "cancelled": 0,
        "duplicates": 0,
        "generation": 1,
    }


# Cancelling.


def test_a_cancelled_batch_stays_cancelled_when_a_running_job_completes(
    engine: Engine, worker: int
):
    batch = engine.batch("work", 3, on_finish="callback")
    claims = engine.claim(worker, "work", want=2)
    assert engine.call("cancel_batch", batch) == 3
    assert engine.status(batch) == ("cancelled", 3, 2, 0, 0, 1)
    assert sorted(engine.call("renew_lease", worker, LEASE)) == [claim.id for claim in claims]
    engine.complete(claims[0])
    engine.fail(claims[1], failure=TRANSIENT)
    assert engine.status(batch) == ("cancelled", 3, 0, 0, 0, 3)
    assert engine.events(batch)[-1] == "batch_cancelled"
    assert engine.call("cancel_batch", batch) == 0


def test_no_job_of_a_batch_starts_between_the_steps_of_its_cancel(engine: Engine, worker: int):
    batch = engine.batch("work", 10, on_finish="callback")
    (first, second) = engine.claim(worker, "work", want=2)
    engine.finish(outcome.snoozed(second, 0))
    assert engine.call("begin_cancel", batch) == 1
    assert engine.claim(worker, "work") == []
    assert engine.status(batch) == ("cancelled", 10, 1, 0, 0, 0)
    assert engine.call("begin_cancel", batch) is None
    assert engine.cancel_in_steps(batch, 4) == [4]
    engine.complete(first)
    assert engine.claim(worker, "work") == []
    assert engine.status(batch) == ("cancelled", 10, 0, 0, 0, 5)
    assert engine.cancel_in_steps(batch, 4, 4, 4) == [4, 1, 0]
    assert engine.status(batch) == ("cancelled", 10, 0, 0, 0, 10)
    events = engine.events(batch)
    assert (events[-1], events.count("batch_cancelled")) == ("batch_cancelled", 1)
    assert engine.value("select count(*) from batchmill.lanes where batch_id = %s", batch) == 0


def test_the_last_running_job_finishes_a_cancelled_batch(engine: Engine, worker: int):
    batch = engine.batch("work", 5)
    (running,) = engine.claim(worker, "work", want=1)
    engine.call("begin_cancel", batch)
    assert engine.cancel_in_steps(batch, 100) == [4]
    assert engine.status(batch) == ("cancelled", 5, 1, 0, 0, 4)
    engine.complete(running)
    assert engine.events(batch)[-1] == "batch_cancelled"


def test_a_second_cancel_does_not_wait_for_the_steps_of_the_first(
    sessions: Sessions, engine: Engine, worker: int
):
    batch = engine.batch("work", 10)
    engine.call("begin_cancel", batch)
    first = sessions()
    with first.conn.transaction():
        first.cancel_in_steps(batch, 4)
        engine.conn.execute("set lock_timeout = '1s'")
        assert engine.call("begin_cancel", batch) is None
        assert engine.call("cancel_batch", batch) == 0


def test_the_upkeep_completes_an_interrupted_cancel(engine: Engine, worker: int):
    batch = engine.batch("work", 10)
    engine.call("begin_cancel", batch)
    engine.cancel_in_steps(batch, 4)
    engine.tidy()
    assert engine.status(batch) == ("cancelled", 10, 0, 0, 0, 4)
    engine.advance_clock(61)
    engine.tidy()
    assert engine.events(batch)[-1] == "batch_cancelled"


def test_a_cancelled_job_never_starts_and_never_completes(engine: Engine, worker: int):
    batch = engine.batch("work", 3)
    (running,) = engine.claim(worker, "work", want=1)
    waiting = running.id + 1
    assert engine.call("cancel_job", waiting) == 1
    assert engine.call("cancel_job", running.id) == 1
    assert engine.call("cancel_job", waiting) == 0
    assert [claim.id for claim in engine.claim(worker, "work")] == [waiting + 1]
    engine.complete(running)
    assert engine.state(running.id) is JobState.CANCELLED
    assert engine.status(batch) == ("processing", 3, 1, 0, 0, 2)


@pytest.mark.parametrize("kind", ["advance", "snooze", "release", "retry"])
def test_a_cancelled_job_is_not_queued_again(kind: str, engine: Engine, worker: int):
    engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    engine.call("cancel_job", claim.id)
    engine.finish(outcome.Outcome(claim, kind, delay=0, task="callback", key="", payload="1"))
    assert engine.state(claim.id) is JobState.CANCELLED


def test_a_cancelled_job_whose_worker_is_lost_ends_as_cancelled(engine: Engine, worker: int):
    batch = engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    engine.call("cancel_batch", batch)
    engine.advance_clock(LEASE + 1)
    assert engine.look_after(engine.worker("work")) == [claim.id]
    assert engine.status(batch) == ("cancelled", 1, 0, 0, 0, 1)


def test_a_job_cancelled_before_any_started_leaves_no_gap_in_the_events(
    engine: Engine, worker: int
):
    batch = engine.batch("work", 2)
    first = engine.value("select min(id) from batchmill.jobs")
    engine.call("cancel_job", first)
    engine.claim(worker, "work")
    assert engine.events(batch) == ["job_cancelled", "batch_started", "job_started"]


def test_a_job_without_a_batch_can_be_cancelled_before_the_first_claim(engine: Engine, worker: int):
    job = engine.enqueue("work")["job_id"]
    assert engine.call("cancel_job", job) == 1
    assert engine.claim(worker, "work") == []


def test_cancelling_does_not_wait_for_locks_on_limits(
    sessions: Sessions, engine: Engine, worker: int
):
    """A batch of a keyed task counts on one limit for each key, which is too many to lock."""
    engine.task("keyed", limits=Limits(per_key=1), keyed=True)
    batch = engine.batch("keyed", [{"payload": n, "key": str(n // 2)} for n in range(6)])
    assert len(engine.claim(worker, "keyed")) == 3
    other_session = sessions()
    with other_session.conn.transaction():
        assert other_session.rows("select from batchmill.limits for update")
        engine.value("select set_config('lock_timeout', '5s', false)")
        assert engine.call("begin_cancel", batch) == 3
        assert engine.cancel_in_steps(batch, 100) == [3]


def test_cancelling_a_job_that_has_no_lane_yet_does_not_block_claims(
    sessions: Sessions, engine: Engine, worker: int
):
    """Claims hold a shared lock on the limits. A call that waits for the exclusive lock would block
    all later claims."""
    job = engine.enqueue("work")["job_id"]
    other_session = sessions()
    with other_session.conn.transaction():
        other_session.call("hold_limits_shared")
        engine.value("select set_config('lock_timeout', '5s', false)")
        assert engine.call("cancel_job", job) == 1


def test_a_lane_emptied_by_cancels_does_not_affect_other_lanes_in_a_claim(
    engine: Engine, worker: int
):
    """One claim visits an empty lane and a lane that has more jobs than the claim wants."""
    engine.task("other")
    engine.batch("work", 10)
    engine.set_limit("task:other", 5)
    engine.batch("other", 3)
    (running,) = engine.claim(worker, "other", want=1)
    for job in (running.id + 1, running.id + 2):
        engine.call("cancel_job", job)
    assert len(engine.claim(worker, want=2, prefetch=8, work=10, other=10)) == 5
    engine.complete(running)


# Retrying.


def test_retrying_a_batch_runs_its_failed_jobs_again_and_finishes_it_again(
    engine: Engine, worker: int
):
    batch = engine.batch("work", ["a", "b", "c"], on_finish="callback")
    first, second, third = engine.claim(worker, "work")
    engine.complete(first)
    engine.fail(second, third)
    last = len(engine.events(batch))
    assert engine.call("retry_batch", batch) == 2
    assert engine.status(batch) == ("processing", 3, 0, 1, 0, 0)
    claims = engine.claim(worker, "work")
    assert [(c.payload, c.attempt) for c in claims] == [('"b"', 1), ('"c"', 1)]
    assert min(claim.fence for claim in claims) > third.fence
    engine.complete(*claims)
    assert engine.status(batch) == ("completed", 3, 0, 3, 0, 0)
    assert engine.events(batch)[last:] == [
        "batch_retried",
        *["job_retrying"] * 2,
        *["job_started"] * 2,
        *["job_completed"] * 2,
        "batch_completed",
    ]
    assert len(engine.claim(worker, "callback")) == 2


def test_one_failed_job_is_retried_while_the_batch_is_processing(engine: Engine, worker: int):
    batch = engine.batch("work", 3)
    first, second, third = engine.claim(worker, "work")
    engine.fail(first, second)
    assert engine.call("retry_job", first.id) == 1
    assert engine.status(batch) == ("processing", 3, 1, 0, 1, 0)
    assert [claim.id for claim in engine.claim(worker, "work")] == [first.id]
    engine.complete(third)


def test_a_job_without_a_batch_is_retried(engine: Engine, worker: int):
    job = engine.enqueue("work", 7)["job_id"]
    engine.fail(*engine.claim(worker, "work"))
    assert engine.call("retry_job", job) == 1
    (claim,) = engine.claim(worker, "work")
    assert (claim.id, claim.payload, claim.attempt) == (job, "7", 1)


def test_a_retry_resumes_at_the_failed_stage_with_its_checkpoints(engine: Engine, worker: int):
    engine.task("second")
    batch = engine.batch("work", 1)
    engine.finish(*(outcome.advanced(c, "second", "", "5") for c in engine.claim(worker, "work")))
    (claim,) = engine.claim(worker, "second")
    save = "select batchmill.save_checkpoint(%s, %s, 'step', '1'::json)"
    engine.value(save, claim.id, claim.fence)
    engine.fail(claim)
    engine.call("retry_batch", batch)
    (claim,) = engine.claim(worker, "second")
    assert (claim.payload, claim.checkpoints) == ("5", {"step": 1})


def test_a_retried_batch_keeps_the_limit_it_was_submitted_with(engine: Engine, worker: int):
    batch = engine.batch("work", 5, limit=2)
    while claims := engine.claim(worker, "work"):
        assert len(claims) <= 2
        engine.fail(*claims)
    engine.call("retry_batch", batch)
    assert len(engine.claim(worker, "work")) == 2


def test_only_failed_jobs_are_retried(engine: Engine, worker: int):
    batch = engine.batch("work", 1)
    (claim,) = engine.claim(worker, "work")
    with pytest.raises(psycopg.Error, match="has not failed, so it cannot be retried"):
        engine.call("retry_job", claim.id)
    engine.complete(claim)
    assert engine.call("retry_batch", batch) == 0
    assert engine.status(batch)[0] == "completed"


def test_a_cancelled_batch_is_not_retried(engine: Engine, worker: int):
    batch = engine.batch("work", 2)
    engine.fail(*engine.claim(worker, "work", want=1))
    engine.call("cancel_batch", batch)
    with pytest.raises(psycopg.Error, match="was cancelled, so its jobs cannot be retried"):
        engine.call("retry_batch", batch)


def test_two_concurrent_retries_of_a_batch_retry_its_jobs_once(
    sessions: Sessions, engine: Engine, worker: int
):
    batch = engine.batch("work", 2)
    engine.fail(*engine.claim(worker, "work"))
    first = sessions()
    with first.conn.transaction():
        assert first.call("retry_batch", batch) == 2
        second = Rival(lambda: engine.call("retry_batch", batch)).wait_until_blocked(engine)
    assert second.result() == 0


def run_all(engine: Engine, worker: int, *, fails: bool) -> None:
    claims = engine.claim(worker, "work")
    engine.fail(*claims) if fails else engine.complete(*claims)


@pytest.mark.parametrize("fails_again", [False, True])
def test_a_retry_that_comes_too_late_changes_nothing(
    fails_again: bool, sessions: Sessions, engine: Engine, worker: int
):
    """While it is blocked, another retry commits and the batch finishes again."""
    batch = engine.batch("work", 1)
    (failed,) = engine.claim(worker, "work")
    engine.fail(failed)
    first, second = sessions(), sessions()
    with first.conn.transaction():
        assert first.call("retry_job", failed.id) == 1
        of_job = Rival(lambda: engine.call("retry_job", failed.id)).wait_until_blocked(engine)
        of_batch = Rival(lambda: second.call("retry_batch", batch)).wait_until_blocked(second)
        run_all(first, worker, fails=fails_again)
    with pytest.raises(psycopg.Error, match="was already retried by another call"):
        of_job.result()
    assert of_batch.result() == 0
    assert engine.status(batch)[0] == ("failed" if fails_again else "completed")
    assert engine.rows("select id from batchmill.lanes") == []
    assert violations(engine.conn) == []


def test_the_second_of_two_concurrent_retries_of_a_single_job_is_refused(
    sessions: Sessions, engine: Engine, worker: int
):
    engine.enqueue("work")
    (failed,) = engine.claim(worker, "work")
    engine.fail(failed)
    first = sessions()
    with first.conn.transaction():
        assert first.call("retry_job", failed.id) == 1
        second = Rival(lambda: engine.call("retry_job", failed.id)).wait_until_blocked(engine)
    with pytest.raises(psycopg.Error, match="was already retried by another call"):
        second.result()


# Deleting, and unknown ids.


def test_a_retry_does_not_retry_a_job_that_failed_after_the_request(
    sessions: Sessions, engine: Engine, worker: int
):
    engine.enqueue("work")
    (claim,) = engine.claim(worker, "work")
    earlier = sessions()
    engine.advance_clock(10)
    engine.fail(claim)
    with pytest.raises(psycopg.Error, match="retried by another call"):
        earlier.call("retry_job", claim.id)
    assert engine.call("retry_job", claim.id) == 1


def test_a_deleted_batch_leaves_no_rows(engine: Engine, worker: int):
    batch = engine.batch("work", 2, idempotency_key="k")
    with pytest.raises(psycopg.Error, match="is not finished. Cancel it first"):
        engine.call("delete_batch", batch)
    engine.drain(worker, "work")
    engine.call("delete_batch", batch)
    for table in ("batches", "jobs", "finished", "events", "lanes", "requests"):
        assert engine.value(f"select count(*) from batchmill.{table}") == 0


@pytest.mark.parametrize("name", ["cancel_batch", "retry_batch", "delete_batch"])
def test_the_error_names_an_unknown_batch(name: str, engine: Engine):
    unknown = uuid4()
    with pytest.raises(psycopg.Error, match=f"There is no batch {unknown}.") as error:
        engine.call(name, unknown)
    assert error.value.sqlstate == "BM005"


@pytest.mark.parametrize("name", ["cancel_job", "retry_job"])
def test_the_error_names_an_unknown_job(name: str, engine: Engine):
    with pytest.raises(psycopg.Error, match="There is no job 999.") as error:
        engine.call(name, 999)
    assert error.value.sqlstate == "BM005"


# Retention.


def history(engine: Engine, batch: UUID) -> tuple[int, int]:
    """The numbers of finished jobs and events of a batch."""
    query = """select (select count(*) from batchmill.finished where batch_id = %s),
        (select count(*) from batchmill.events where batch_id = %s)"""
    return engine.rows(query, batch, batch)[0]


def make_partition(engine: Engine, parent: str, ahead: int) -> bool:
    query = "select batchmill.make_partition(%s, batchmill.day_of(batchmill.clock()) + %s)"
    return engine.value(query, parent, ahead)


def test_an_expired_batch_is_removed_with_its_partition_and_others_stay(
    engine: Engine, worker: int
):
    short = engine.batch("work", 2, expires_in=100 * 86_400)
    long = engine.batch("work", 2, expires_in=200 * 86_400)
    engine.drain(worker, "work")
    engine.expire()
    for parent in ("finished", "event_blocks"):
        assert make_partition(engine, parent, 100)
    assert history(engine, short) == (2, 6)
    engine.advance_clock(102 * 86_400)
    assert engine.expire()["deleted"] == 1
    assert (history(engine, short), history(engine, long)) == ((0, 0), (2, 6))
    assert engine.rows("select id from batchmill.batches") == [(long,)]
    assert engine.value("select to_regclass('batchmill.event_blocks_default')::text")


def test_a_batch_that_expires_before_it_is_finished_is_cancelled(engine: Engine, worker: int):
    batch = engine.batch("work", 2, expires_in=60)
    (claim,) = engine.claim(worker, "work", want=1)
    engine.advance_clock(61)
    assert engine.expire()["deleted"] == 0
    engine.complete(claim)
    assert engine.status(batch) == ("cancelled", 2, 0, 0, 0, 2)
    assert engine.expire()["deleted"] == 1


def test_an_expired_batch_keeps_its_history_while_a_job_still_runs(engine: Engine, worker: int):
    batch = engine.batch("work", 2, expires_in=60)
    done, running = engine.claim(worker, "work")
    engine.complete(done)
    engine.advance_clock(3 * 86_400)
    assert engine.expire()["dropped"] == 0
    before = engine.events(batch)
    engine.complete(running)
    assert engine.events(batch) == [*before, "job_cancelled", "batch_cancelled"]
    engine.expire()
    assert engine.events(batch) == []


def test_the_payload_of_a_failed_job_is_kept_until_its_batch_expires(engine: Engine, worker: int):
    batch = engine.batch("work", ["input"], expires_in=86_400)
    engine.fail(*engine.claim(worker, "work"))
    engine.advance_clock(86_000)
    engine.call("renew_lease", worker, LEASE)
    engine.expire()
    engine.tidy()
    engine.call("retry_batch", batch)
    worker = engine.worker("work")
    assert engine.claim(worker, "work")[0].payload == '"input"'


def test_a_new_partition_takes_over_rows_from_the_default_partition(engine: Engine, worker: int):
    batch = engine.batch("work", 2, expires_in=100 * 86_400)
    engine.drain(worker, "work")
    before = history(engine, batch)
    assert make_partition(engine, "finished", 100)
    assert not make_partition(engine, "finished", 100)
    assert history(engine, batch) == before
    assert engine.value("select count(*) from batchmill.finished_default") == 0


# Postgres itself refuses partial indexes that depend on the clock. These tests check the rest.


def test_no_foreign_key_sets_a_required_column_to_null(engine: Engine):
    query = """select c.conrelid::regclass, a.attname from pg_constraint c
        join pg_attribute a on a.attrelid = c.conrelid and a.attnum = any (c.conkey)
        where c.contype = 'f' and c.confdeltype = 'n' and a.attnotnull"""
    assert engine.rows(query) == []


def test_no_index_depends_on_the_clock(engine: Engine):
    query = """select indexdef from pg_indexes
        where schemaname = 'batchmill' and indexdef ~* 'now\\(|clock|current_'"""
    assert engine.rows(query) == []


def test_a_worker_finishes_the_only_limited_batch_and_claims_from_another(
    engine: Engine, worker: int
):
    """The batch's limit, the only one, is deleted in the same call."""
    engine.batch("work", 1, limit=1)
    (last,) = engine.claim(worker, "work", want=5)
    engine.batch("work", 1)
    refused, claims = engine.finish_and_claim(
        worker, "work", ended=[outcome.completed(last, "1")], want=5
    )
    assert (refused, len(claims)) == ([], 1)
    assert violations(engine.conn) == []
