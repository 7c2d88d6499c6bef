"""Submits are accepted exactly once, or refused with a message and without any rows."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql

from batchmill import Mill
from batchmill.domain.limits import Limits
from batchmill.errors import PayloadTooLarge
from tests.store.engine import Engine
from tests.store.rivals import Rival

Sessions = Callable[[], Engine]


@pytest.fixture
def worker(engine: Engine) -> int:
    engine.task("work")
    return engine.worker("work")


@contextmanager
def refused(code: str, message: str) -> Iterator[None]:
    with pytest.raises(psycopg.Error) as error:
        yield
    assert (error.value.sqlstate, error.value.diag.message_primary) == (code, message)


def is_empty(engine: Engine) -> bool:
    query = """select not exists (select from batchmill.jobs) and not exists
        (select from batchmill.batches) and not exists (select from batchmill.lanes) and not exists
        (select from batchmill.requests) and not exists (select from batchmill.limits)"""
    return engine.value(query)


def test_jobs_exist_after_the_caller_commits_but_not_after_a_rollback(engine: Engine, worker: int):
    with engine.conn.transaction(force_rollback=True):
        engine.batch("work", 3)
        engine.enqueue("work")
    assert is_empty(engine)
    with engine.conn.transaction():
        engine.batch("work", 3)
        engine.enqueue("work")
    assert engine.drain(worker, "work") == 4


def test_an_open_transaction_of_a_caller_blocks_no_other_jobs(
    sessions: Sessions, engine: Engine, worker: int
):
    caller = sessions()
    engine.enqueue("work", "before")
    with caller.conn.transaction():
        caller.enqueue("work", "open")
        caller.batch("work", ["open"])
        engine.enqueue("work", "after")
        assert engine.drain(worker, "work") == 2
    assert engine.drain(worker, "work") == 2


def test_jobs_of_a_long_transaction_run_although_later_ones_committed_first(
    sessions: Sessions, engine: Engine, worker: int
):
    slow, quick = sessions(), sessions()
    with slow.conn.transaction():
        slow.enqueue("work")
        for _ in range(3):
            quick.enqueue("work")
            assert engine.drain(worker, "work") == 1
    assert engine.drain(worker, "work") == 1


def test_a_locked_job_is_claimed_after_the_lock_is_released(
    sessions: Sessions, engine: Engine, worker: int
):
    """`result()` right after `enqueue` updates the row, possibly while a claim looks for it."""
    job = engine.enqueue("work")["job_id"]
    waiting = sessions()
    with waiting.conn.transaction():
        waiting.rows("update batchmill.jobs set watched = true where id = %s returning id", job)
        assert engine.claim(worker, "work") == []
    assert [claim.id for claim in engine.claim(worker, "work")] == [job]


def test_more_jobs_than_one_claim_reads_are_all_run(engine: Engine, worker: int):
    engine.set_limit("task:work", paused=True)
    engine.rows("select batchmill.enqueue('work', '1') from generate_series(1, 2500)")
    assert engine.claim(worker, "work") == []
    engine.set_limit("task:work", paused=False)
    assert engine.drain(worker, "work") == 2500


def test_a_large_batch_is_submitted_in_several_calls_of_one_transaction(
    engine: Engine, worker: int
):
    with engine.conn.transaction():
        answer = engine.submit("work", range(3), more=True)
        engine.submit("work", range(3, 5), more=True, batch_id=answer["batch_id"])
        answer = engine.submit("work", [], batch_id=answer["batch_id"])
    assert answer["total"] == 5
    claims = engine.claim(worker, "work")
    assert [(c.position, c.payload) for c in claims] == [(n, str(n)) for n in range(5)]
    with refused(
        "BM002", "The batch was not created by this transaction, so no jobs can be added to it."
    ):
        engine.submit("work", [6], batch_id=answer["batch_id"])


def test_bare_payloads_are_jobs_with_the_options_of_the_batch(engine: Engine, worker: int):
    with engine.conn.transaction():
        answer = engine.call("submit", "work", "[1, null]", '{"bare": true, "more": true}')
        options = {"batch_id": answer["batch_id"], "priority": 3, "delay": 60}
        engine.submit("work", [{"payload": {"n": 3}}], **options, more=True)
        options = json.dumps(options | {"bare": True})
        answer = engine.call("submit", "work", '["four"]', options)
    assert (answer["total"], answer["duplicates"]) == (4, 0)
    query = "select position, payload::text, priority, state, key from batchmill.jobs order by id"
    assert engine.rows(query) == [
        (0, "1", 0, "ready", ""),
        (1, "null", 0, "ready", ""),
        (2, '{"n":3}', 3, "scheduled", ""),
        (3, '"four"', 3, "scheduled", ""),
    ]
    assert len(engine.claim(worker, "work")) == 2
    engine.advance_clock(61)
    assert len(engine.claim(worker, "work")) == 2


def test_bare_payloads_are_checked_like_others(engine: Engine):
    engine.task("work", payload_limit=100)
    engine.task("keyed", keyed=True)
    bare = '{"bare": true}'
    with refused("BM003", "The payload has 101 bytes; the limit is 100."):
        engine.call("submit", "work", json.dumps(["x" * 99]), bare)
    with refused("BM002", 'The task "keyed" declares a key, so its jobs need one.'):
        engine.call("submit", "keyed", "[1]", bare)
    with refused("BM002", "The items of a batch must be a JSON array."):
        engine.call("submit", "work", "7", bare)
    with refused("BM002", "There is nothing to submit: a batch needs at least one job."):
        engine.call("submit", "work", "[]", bare)
    assert is_empty(engine)


# Idempotency: a repeated request returns the same batch.


def test_100_concurrent_submits_with_one_idempotency_key_create_one_batch(
    dsn: str, engine: Engine, worker: int
):
    together = threading.Barrier(100)

    def submit() -> str:
        with psycopg.connect(dsn, autocommit=True) as conn:
            together.wait()
            return Engine(conn).submit("work", range(3), idempotency_key="k")["batch_id"]

    rivals = [Rival(submit) for _ in range(100)]
    assert len({rival.result() for rival in rivals}) == 1
    assert engine.drain(worker, "work") == 3


def test_100_concurrent_enqueues_with_one_idempotency_key_create_one_job(
    dsn: str, engine: Engine, worker: int
):
    together = threading.Barrier(100)

    def enqueue() -> int:
        with psycopg.connect(dsn, autocommit=True) as conn:
            together.wait()
            return Engine(conn).enqueue("work", 1, idempotency_key="k")["job_id"]

    rivals = [Rival(enqueue) for _ in range(100)]
    assert len({rival.result() for rival in rivals}) == 1
    assert engine.drain(worker, "work") == 1


def test_a_different_request_with_the_same_idempotency_key_is_refused(engine: Engine, worker: int):
    engine.enqueue("work", 1, idempotency_key="job")
    engine.submit("work", [1], idempotency_key="batch")
    message = 'The idempotency key "{}" was used for another request.'
    with refused("BM004", message.format("job")):
        engine.enqueue("work", 2, idempotency_key="job")
    with refused("BM004", message.format("batch")):
        engine.submit("work", [1, 2], idempotency_key="batch")
    with refused("BM004", message.format("batch")):
        engine.submit("work", [1], idempotency_key="batch", priority=5)
    assert engine.drain(worker, "work") == 2


def test_an_idempotency_key_belongs_to_its_tenant(engine: Engine, worker: int):
    ann = engine.batch("work", [1], idempotency_key="k", tenant="ann")
    bob = engine.batch("work", [2], idempotency_key="k", tenant="bob")
    assert ann != bob


def test_a_rolled_back_request_does_not_use_up_its_idempotency_key(
    sessions: Sessions, engine: Engine, worker: int
):
    first = sessions()
    with first.conn.transaction(force_rollback=True):
        first.batch("work", [1], idempotency_key="k")
        second = Rival(lambda: engine.batch("work", [2], idempotency_key="k"))
        second.wait_until_blocked(engine)
    assert engine.status(second.result())[1] == 1


def test_a_repeated_request_returns_the_same_duplicate_job(engine: Engine, worker: int):
    job = engine.enqueue("work", 1, dedup_key="d")["job_id"]
    answers = [engine.enqueue("work", 1, dedup_key="d", idempotency_key="k") for _ in range(2)]
    assert [answer["job_id"] for answer in answers] == [job, job]


# Deduplication: while a job with the key is live, an enqueue with the key returns that job.


def test_an_enqueue_returns_the_live_job_with_its_deduplication_key(engine: Engine, worker: int):
    job = engine.enqueue("work", 1, dedup_key="k")["job_id"]
    again = engine.enqueue("work", 2, dedup_key="k")
    assert again == {"job_id": job, "duplicate": True, "cached": False}
    (claim,) = engine.claim(worker, "work")
    assert engine.enqueue("work", 2, dedup_key="k")["job_id"] == job
    engine.complete(claim)
    assert engine.enqueue("work", 2, dedup_key="k")["job_id"] != job


def test_a_deduplication_key_belongs_to_its_tenant_and_task(engine: Engine, worker: int):
    engine.task("other")
    jobs = [
        engine.enqueue("work", dedup_key="k")["job_id"],
        engine.enqueue("work", dedup_key="k", tenant="bob")["job_id"],
        engine.enqueue("other", dedup_key="k")["job_id"],
    ]
    assert len(set(jobs)) == 3


def test_duplicates_in_a_batch_are_counted_separately(engine: Engine, worker: int):
    engine.enqueue("work", dedup_key="k")
    items = [{"payload": n, "dedup_key": key} for n, key in enumerate("kaab")]
    answer = engine.submit("work", items)
    assert (answer["total"], answer["duplicates"]) == (2, 2)
    positions = "select position from batchmill.jobs where batch_id is not null order by position"
    assert engine.rows(positions) == [(1,), (3,)]


def test_a_batch_of_only_duplicates_is_completed_at_once(engine: Engine, worker: int):
    engine.enqueue("work", dedup_key="k")
    batch = engine.batch("work", [{"payload": 1, "dedup_key": "k"}])
    assert engine.status(batch) == ("completed", 0, 0, 0, 0, 0)
    assert engine.events(batch) == ["item_duplicate", "batch_completed"]


def test_a_retried_job_loses_a_deduplication_key_that_another_job_has_taken(
    engine: Engine, worker: int
):
    job = engine.enqueue("work", dedup_key="k")["job_id"]
    engine.fail(*engine.claim(worker, "work"))
    other = engine.enqueue("work", dedup_key="k")["job_id"]
    engine.call("retry_job", job)
    assert engine.enqueue("work", dedup_key="k")["job_id"] == other
    assert engine.drain(worker, "work") == 2


# Cached results.


def test_a_cached_result_completes_a_job_at_once(engine: Engine, worker: int):
    engine.enqueue("work", 1, cache_key="k")
    engine.complete(*engine.claim(worker, "work"), result={"answer": 42})
    answer = engine.enqueue("work", 1, cache_key="k")
    assert answer["cached"]
    assert engine.claim(worker, "work") == []
    query = "select state, cached, result from batchmill.finished where id = %s"
    assert engine.rows(query, answer["job_id"]) == [("completed", True, {"answer": 42})]


def test_a_batch_runs_only_jobs_without_a_cached_result(engine: Engine, worker: int):
    engine.enqueue("work", 1, cache_key="k")
    engine.complete(*engine.claim(worker, "work"), result=None)
    items = [{"payload": 0}, {"payload": 1, "cache_key": "k"}, {"payload": 2, "cache_key": "new"}]
    batch = engine.batch("work", items)
    assert engine.status(batch) == ("processing", 3, 0, 1, 0, 0)
    assert [claim.position for claim in engine.claim(worker, "work")] == [0, 2]


def test_a_batch_of_only_cached_results_is_completed_at_once(engine: Engine, worker: int):
    engine.enqueue("work", 1, cache_key="k")
    engine.complete(*engine.claim(worker, "work"))
    batch = engine.batch("work", [{"payload": n, "cache_key": "k"} for n in range(2)])
    assert engine.status(batch) == ("completed", 2, 0, 2, 0, 0)
    started, *completed, finished = engine.events(batch)
    assert (started, finished) == ("batch_started", "batch_completed")
    assert completed == ["job_completed"] * 2


def test_a_failure_is_not_cached(engine: Engine, worker: int):
    engine.enqueue("work", 1, cache_key="k")
    engine.fail(*engine.claim(worker, "work"))
    assert not engine.enqueue("work", 1, cache_key="k")["cached"]


def test_cached_results_of_another_tenant_are_not_used(engine: Engine, worker: int):
    engine.enqueue("work", 1, cache_key="k", tenant="ann")
    engine.complete(*engine.claim(worker, "work"))
    assert not engine.enqueue("work", 1, cache_key="k", tenant="bob")["cached"]


def test_cached_results_of_another_task_are_not_used(engine: Engine, worker: int):
    engine.task("other")
    engine.enqueue("work", 1, cache_key="k")
    engine.complete(*engine.claim(worker, "work"))
    assert not engine.enqueue("other", 1, cache_key="k")["cached"]
    batch = engine.batch("other", [{"payload": 1, "cache_key": "k"}])
    assert engine.status(batch) == ("pending", 1, 0, 0, 0, 0)


def test_a_result_that_is_cached_during_a_submit_loses_no_job(
    sessions: Sessions, engine: Engine, worker: int
):
    """The submit is blocked between its two reads of the cache."""
    engine.conn.execute("""
        create function wait_here() returns trigger language plpgsql
        as 'begin perform pg_advisory_xact_lock(1); return null; end';
        create trigger wait_here after insert on batchmill.finished
        for each statement execute function wait_here()""")
    engine.enqueue("work", 1, cache_key="k")
    (claim,) = engine.claim(worker, "work")
    other = sessions()
    with other.conn.transaction():
        other.rows("select pg_advisory_xact_lock(1)::text")
        items = [{"payload": 1, "cache_key": "k"}]
        submit = Rival(lambda: engine.submit("work", items)).wait_until_blocked(engine)
        other.complete(claim)
    assert submit.result()["total"] == 1


# A batch of one.

# Times are compared with the time of the submit, because two submits have different ones.
STORED = """
    select to_jsonb(b) - array['id', 'created_at', 'expires_at', 'begun_by']
            || jsonb_build_object('kept_for', b.expires_at - b.created_at),
        to_jsonb(l) - array['id', 'batch_id', 'ready_at']
            || jsonb_build_object('due_in', l.ready_at - b.created_at),
        to_jsonb(j) - array['id', 'batch_id', 'lane_id', 'run_at', 'created_at']
            || jsonb_build_object('due_in', j.run_at - b.created_at, 'is_in_lane', j.lane_id = l.id)
    from batchmill.batches b join batchmill.lanes l on l.batch_id = b.id
    join batchmill.jobs j on j.batch_id = b.id where b.id = %s"""


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tenant": "ann", "labels": {"from": "psql"}, "expires_in": 3_600},
        {"priority": 5, "delay": 60},
    ],
    ids=lambda options: ", ".join(options) or "plain",
)
@pytest.mark.parametrize("slots", [None, 2], ids=["unlimited", "per_batch"])
def test_a_batch_of_one_stores_the_same_rows_as_other_batches(
    engine: Engine, slots: int | None, options: dict[str, Any]
):
    engine.task("work", limits=Limits(per_batch=slots))
    one = engine.submit_one("work", {"a": 1}, **options)
    bare = engine.call("submit", "work", '[{"a": 1}]', json.dumps({"bare": True, **options}))
    for other in (bare["batch_id"], engine.batch("work", [{"payload": {"a": 1}}], **options)):
        assert engine.rows(STORED, one) == engine.rows(STORED, other)


def test_a_batch_of_one_runs_and_finishes(engine: Engine, worker: int):
    batch = engine.submit_one("work", "alone")
    (claim,) = engine.claim(worker, "work")
    assert (claim.batch_id, claim.position, claim.payload) == (str(batch), 0, '"alone"')
    engine.complete(claim)
    events = "select type from batchmill.events where batch_id = %s order by number"
    assert [type for (type,) in engine.rows(events, batch)] == [
        "batch_started",
        "job_started",
        "job_completed",
        "batch_completed",
    ]


def test_an_open_transaction_with_a_batch_of_one_blocks_no_other_jobs(
    sessions: Sessions, engine: Engine, worker: int
):
    caller = sessions()
    with caller.conn.transaction():
        caller.submit_one("work", "open")
        engine.submit_one("work", "other")
        assert engine.drain(worker, "work") == 1
    assert engine.drain(worker, "work") == 1


def test_a_batch_of_one_is_checked_like_other_batches(engine: Engine):
    engine.task("keyed", keyed=True)
    engine.task("work", payload_limit=10)
    with refused(
        "BM001",
        'No task "nope" is registered. Check the name, or start a worker that has the task.',
    ):
        engine.submit_one("nope", 1)
    with refused("BM002", 'The task "keyed" declares a key, so its jobs need one.'):
        engine.submit_one("keyed", 1)
    with refused("BM003", "The payload has 13 bytes; the limit is 10."):
        engine.submit_one("work", "x" * 11)
    with refused("BM002", "priority must be from -32768 to 32767, not 40000."):
        engine.submit_one("work", 1, priority=40_000)
    with refused("BM002", "submit_one does not take these options: limit, notify. Use submit."):
        engine.submit_one("work", 1, notify=["a@example.org"], limit=3)
    assert is_empty(engine)


# Refused input.


def test_an_unknown_task_is_refused(engine: Engine):
    message = 'No task "nope" is registered. Check the name, or start a worker that has the task.'
    with refused("BM001", message):
        engine.enqueue("nope")
    with refused("BM001", message):
        engine.batch("nope", 1)
    engine.task("work")
    with refused("BM001", message):
        engine.batch("work", 1, on_finish="nope")
    assert is_empty(engine)


def test_a_payload_may_be_as_long_as_the_limit_and_no_longer(engine: Engine):
    engine.task("work", payload_limit=100)
    fits, too_long = "x" * 98, "x" * 99
    engine.enqueue("work", fits)
    engine.batch("work", [{"payload": fits, "cache_key": "its options do not count"}])
    message = "The payload has 101 bytes; the limit is 100."
    with refused("BM003", message):
        engine.enqueue("work", too_long)
    with refused("BM003", message):
        engine.batch("work", [fits, too_long])
    assert engine.value("select count(*) from batchmill.jobs") == 2


def test_a_payload_of_wide_characters_is_measured_in_bytes(engine: Engine):
    engine.task("work", payload_limit=100)
    engine.enqueue("work", "ü" * 49)
    with refused("BM003", "The payload has 102 bytes; the limit is 100."):
        engine.enqueue("work", "ü" * 50)


async def test_python_and_sql_measure_payloads_alike(mill: Mill):
    @mill.task(payload_limit=100)
    async def work(text: str) -> None: ...

    await mill.submit(work, ["x" * 98, "ü" * 49])
    await mill.enqueue(work, "x" * 98)
    with pytest.raises(PayloadTooLarge, match="101 bytes of JSON; the limit is 100"):
        await mill.submit(work, ["x" * 99])
    with pytest.raises(PayloadTooLarge, match="102 bytes of JSON; the limit is 100"):
        await mill.enqueue(work, "ü" * 50)


def test_a_nul_character_is_refused(engine: Engine):
    engine.task("work")
    message = "The payload contains a NUL character, which Postgres cannot store."
    with refused("BM002", message):
        engine.enqueue("work", {"deep": ["\0"]})
    with refused("BM002", message):
        engine.batch("work", ["fine", "\0"])
    assert is_empty(engine)


@pytest.mark.parametrize("run_at", ["0001-01-01T00:00:00+14:00", "9000-01-02", "infinity"])
def test_times_outside_the_years_1970_to_9000_are_refused(engine: Engine, run_at: str):
    engine.task("work")
    message = f"run_at must be between the years 1970 and 9000, not {run_at}."
    with refused("BM002", message):
        engine.enqueue("work", run_at=run_at)
    with refused("BM002", message):
        engine.batch("work", 1, run_at=run_at)
    with refused("BM002", message):
        engine.batch("work", [{"payload": 1, "run_at": run_at}])
    assert is_empty(engine)


@pytest.mark.parametrize("option", ["delay", "expires_in"])
@pytest.mark.parametrize("seconds", [-1, 1e12])
def test_delays_and_expiries_out_of_range_are_refused(engine: Engine, option: str, seconds: float):
    engine.task("work")
    with refused("BM002", "delay and expires_in must be from 0 seconds to ten years."):
        engine.enqueue("work", **{option: seconds})
    assert is_empty(engine)


def test_jobs_have_a_key_if_and_only_if_the_task_declares_one(engine: Engine):
    engine.task("plain")
    engine.task("keyed", keyed=True)
    unwanted = 'The task "plain" declares no key, so its jobs cannot have one.'
    with refused("BM002", unwanted):
        engine.enqueue("plain", key="k")
    with refused("BM002", unwanted):
        engine.batch("plain", [{"payload": 1, "key": "k"}])
    missing = 'The task "keyed" declares a key, so its jobs need one.'
    with refused("BM002", missing):
        engine.enqueue("keyed")
    with refused("BM002", missing):
        engine.batch("keyed", [{"payload": 1, "key": "k"}, {"payload": 2}])
    assert is_empty(engine)


@pytest.mark.parametrize(
    "call",
    [
        "submit('work', '{}')",
        "submit('work', '7')",
        "submit('work', '[1, 2]')",
        "submit('work', '[]')",
        'submit(\'work\', \'[{"payload": 1, "priority": "high"}]\')',
        "submit('work', '[{\"payload\": 1}]', '{\"limit\": -1}')",
        "submit('work', '[{\"payload\": 1}]', '{\"run_at\": \"soon\"}')",
        "submit('work', '[{\"payload\": 1}]', '{\"delay\": \"NaN\"}')",
        "submit('work', '[{\"payload\": 1}]', '{\"tenant\": \"\"}')",
        "submit('work', '[{\"payload\": \"\\ud800\"}]')",
        "submit('work', null)",
        "enqueue('work', null)",
        "enqueue('work', '1', '{\"priority\": -2147483648}')",
        "enqueue('work', '1', '{\"expires_in\": 1e300}')",
        "enqueue('work', '1', '{\"tenant\": \"\"}')",
        "enqueue('work', '1', '7')",
    ],
)
def test_invalid_input_leaves_no_rows(call: str, engine: Engine):
    engine.task("work")
    with pytest.raises(psycopg.Error) as error:
        engine.conn.execute(sql.SQL("select batchmill.{}").format(sql.SQL(call)))  # pyright: ignore
    assert error.value.diag.message_primary
    assert is_empty(engine)


def test_a_keyed_batch_runs(engine: Engine):
    engine.task("keyed", keyed=True)
    engine.batch("keyed", [{"payload": n, "key": f"k{n % 2}"} for n in range(4)])
    assert engine.drain(engine.worker("keyed"), "keyed") == 4


def test_options_reach_the_job(engine: Engine, worker: int):
    engine.batch("work", [1], delay=60, priority=3, tenant="ann")
    query: Any = """select priority, tenant, state, extract(epoch from run_at - created_at)::integer
        from batchmill.jobs"""
    assert engine.rows(query) == [(3, "ann", "scheduled", 60)]
    assert engine.claim(worker, "work") == []
    engine.advance_clock(61)
    assert len(engine.claim(worker, "work")) == 1


def test_a_different_priority_with_the_same_idempotency_key_is_refused(engine: Engine):
    engine.task("work")
    engine.enqueue("work", 1, idempotency_key="k")
    with pytest.raises(psycopg.Error, match="was used for another request"):
        engine.enqueue("work", 1, idempotency_key="k", priority=5)
