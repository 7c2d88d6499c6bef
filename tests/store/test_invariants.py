"""Each invariant detects violations: the tests plant bugs in the data and expect it to fail."""

from decimal import Decimal
from typing import Any

import psycopg
import pytest

from batchmill.domain import outcome
from batchmill.domain.limits import Limits
from batchmill.store.providers import Ask
from tests.invariants import EXACT_LIMITS, INVARIANTS, violations
from tests.store.engine import Engine

BUGS = {
    "the counters of a batch match the states of its jobs": """
        update batches set completed = completed + 1 where id = :going""",
    "a batch is finished exactly when all its jobs have ended": """
        update batches set finished_at = clock() where id = :going""",
    "the state of a batch follows from its counters": """
        update batches set state = 'completed' where id = :done""",
    "a batch has one finish event in each finished generation, as its last event": """
        update batches set generation = 2 where id = :done""",
    "a batch submits its callback once in each finished generation": """
        insert into jobs (position, task, tenant, state, run_at, payload, created_at, expires_on,
            submitted_by)
        select position, task, tenant, state, run_at, payload, created_at, expires_on, submitted_by
        from jobs where task = 'callback'""",
    "each notification of a batch is sent once in each finished generation": """
        insert into jobs (position, task, tenant, state, run_at, payload, created_at, expires_on,
            submitted_by)
        select position, task, tenant, state, run_at, payload, created_at, expires_on, submitted_by
        from jobs where task = 'batchmill.email'""",
    "a batch has one start event, before the first start of a job": """
        update event_blocks set last_number = -3 where batch_id = :going and type = 'job_started';
        update event_blocks set last_number = 4 where batch_id = :going and type = 'batch_started';
        update event_blocks set last_number = 3 where batch_id = :going and last_number = -3""",
    "the events of a batch are numbered from 1 without gaps": """
        update event_blocks set last_number = last_number + 1
        where (batch_id, last_number) in (select id, last_event from batches where id = :going)""",
    "a job ends once, and once more after each manual retry": """
        update event_blocks set type = 'job_snoozed', data = '{null}'
        where batch_id = :going and type = 'job_completed'""",
    "every change of a job's state is allowed": """
        update event_blocks set type = 'job_snoozed' where batch_id = :going and type = 'job_started'""",
    "only running jobs have progress events": """
        insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
            expires_on)
        select batch_id, b.last_event + 1, b.tenant, 'job_progress', array[j.id],
            array[j.position], '{null}', clock(), b.expires_on
        from finished j join batches b on b.id = batch_id limit 1""",
    "a job's state matches its last event": """
        update jobs set state = 'scheduled', fence = null, worker_id = null, started_at = null
        where state = 'running'""",
    "attempts are numbered from 1, and only failed attempts count": """
        update event_blocks set data = array_fill('{"attempt": 2}'::json, array[cardinality(data)])
        where batch_id = :going and type = 'job_started'""",
    "no job has more attempts than its task allows": """
        update jobs set attempt = 4 where state = 'running'""",
    "a running job has an attempt, a fence and a worker, a waiting job has no fence or worker": """
        update jobs set worker_id = null where state = 'running'""",
    "no job starts before its run_at": """
        update jobs set run_at = 'infinity' where state = 'running'""",
    "a job is stored once, either live or finished": """
        insert into jobs (id, position, task, tenant, state, run_at, payload, created_at, expires_on,
            submitted_by)
        overriding system value
        select id, position, task, tenant, 'ready', run_at, payload, created_at, expires_on, '0'
        from finished limit 1""",
    "a cancelled job never completes": """
        update batches set cancelled_at = '-infinity' where id = :done""",
    "a fence belongs to one attempt": """
        update jobs set fence = (select min(fence) from finished) where state = 'running'""",
    "a deduplication key belongs to at most one live job": """
        drop index jobs_dedup;
        update jobs set dedup_key = 'same' where lane_id is null or state = 'ready'""",
    "every item of a batch is a job or a duplicate, at its own position": """
        insert into duplicates select batch_id, position, tenant, id, batch_id, expires_on
        from jobs where batch_id = :going limit 1;
        update batches set duplicates = 1 where id = :going""",
    "one tenant owns a batch, its jobs, duplicates, events, lanes, usage and artifacts": """
        update event_blocks set tenant = 'eve' where batch_id = :done and last_number = 2""",
    "an artifact that waits for the end of its attempt belongs to the running attempt": """
        update artifacts set fence = fence - 1 where state = 'stored'""",
    "results and payloads do not name artifacts that may still be discarded": """
        update finished set result = (
            select json_build_object('artifact', id) from artifacts where state = 'stored')
        where state = 'completed'""",
    "the files of a batch do not expire before the batch": """
        update artifacts set expires_at = expires_at - interval '1 second' where kind = 'input'""",
    "only an item with a job of its own needs a file": """
        insert into duplicates
        select u.batch_id, 0, u.tenant, j.id, j.batch_id, j.expires_on
        from artifact_uses u join jobs j on j.batch_id = u.batch_id""",
    "the uses of files are deleted with their batch": """
        update artifact_uses set batch_id = gen_random_uuid()""",
    "the stored bytes of a tenant match its artifacts": """
        update usage set stored_bytes = stored_bytes - 1""",
    "the stored bytes of a group match its tenants": """
        update storage_groups set stored_bytes = stored_bytes - 1""",
    "the usage of a batch is deleted with the batch": """
        insert into batch_usage values (gen_random_uuid(), 'work', 'tokens', 'default', 0)""",
    "the usage of the days includes the usage of the batches": """
        update batch_usage set amount = amount + 1""",
    "a job is in the lane of its task, tenant, batch and key": """
        update jobs set key = 'other' where state = 'ready' and lane_id is not null""",
    "a lane counts its running jobs": """
        update lanes set running = running + 1 where batch_id = :going""",
    "a limit counts the running jobs that it applies to": """
        update limits set running = running + 1 where name = 'task:work'""",
    "a lane is ready by the time its first job is due": """
        update lanes set ready_at = null where batch_id = :going""",
    "no ready job is before the head of its lane": """
        update lanes set head_rank = 1000 where batch_id = :going""",
    "a limit that blocks a parked lane has its parked flag set": """
        update lanes set blocked_by = (select id from limits where name = 'task:work')
        where batch_id = :going""",
    "a limit declares the values of its template": """
        update limits set set_slots = 8 where name = 'task:work/tenant:*'""",
    "a slot of a provider belongs to the job and the worker of its attempt": """
        update holds set worker_id = worker_id + 1""",
    "no attempt gets a slot of a provider before one that has waited longer": """
        update holds set granted_at = clock() where number = 3;
        update holds set granted_at = null where number = 1""",
    "a finished batch has no lanes and no limits": """
        insert into lanes (task, tenant, batch_id) values ('work', 'default', :done)""",
    "no limit is exceeded": """
        update limits set set_slots = 0 where name = 'task:work'""",
    "no batch runs more jobs than its task allows": """
        update limits set set_slots = 0 where name = 'task:work/batch:*'""",
    "no more running attempts hold a provider than it has slots": """
        update providers set set_slots = 0""",
}

NO_JOBS = "delete from finished where batch_id = :done"
NO_EVENTS = "delete from event_blocks where batch_id = :done"
# Rows that are missing count as zero, not as null.
REMOVALS = {
    "the counters of a batch match the states of its jobs": NO_JOBS,
    "a batch has one finish event in each finished generation, as its last event": NO_EVENTS,
    "a batch submits its callback once in each finished generation": """
        delete from jobs where task = 'callback'""",
    "a batch has one start event, before the first start of a job": NO_EVENTS,
    "the events of a batch are numbered from 1 without gaps": NO_EVENTS,
    "a job ends once, and once more after each manual retry": NO_EVENTS,
    "only running jobs have progress events": """
        delete from event_blocks where batch_id = :going and type = 'job_started'""",
    "a job's state matches its last event": NO_EVENTS,
    "the usage of the days includes the usage of the batches": "delete from daily_usage",
}

OUTPUT = "select id from batchmill.begin_output(%s, %s, 'out', 'x/y', gen_random_uuid())"


@pytest.fixture
def batches(sql: psycopg.Connection[Any]) -> dict[str, Any]:
    """A finished batch and one in progress, with jobs in every state and files."""
    engine = Engine(sql)
    engine.task("work", limits=Limits(total=9, per_batch=3, per_tenant=9))
    engine.task("callback")
    engine.task("batchmill.email")
    worker = engine.worker("work")
    done = engine.batch("work", 2, on_finish="callback", notify=["ann@example.org"])
    engine.complete(*engine.claim(worker, "work", want=1))
    engine.fail(*engine.claim(worker, "work", want=1))
    going = engine.batch("work", 5)
    first, second, third = engine.claim(worker, "work")
    engine.finish(outcome.completed(first, "1")._replace(usage={"tokens": Decimal(5)}))
    engine.finish(outcome.snoozed(second, 60))
    engine.report(third, progress={"stage": "reading"})
    engine.set_limit("provider:x", 1)
    asked = [Ask(number, "provider:x", third) for number in (1, 2, 3)]
    assert engine.hold(worker, *asked).granted == [1]
    write(
        engine,
        engine.rows(
            "select id from batchmill.begin_input('default', 'in', 'x/y', gen_random_uuid())"
        )[0][0],
    )
    write(engine, engine.rows(OUTPUT, third.id, third.fence)[0][0])
    (given,) = engine.rows("select id from batchmill.artifacts where kind = 'input'")[0]
    engine.batch("work", [{"artifact": str(given)}])
    assert violations(sql) == []
    return {"done": done, "going": going}


def write(engine: Engine, artifact: Any) -> None:
    engine.rows("select * from batchmill.end_artifact(%s, 3, %s)", artifact, "0" * 64)


def test_every_invariant_has_a_planted_bug():
    assert BUGS.keys() == (INVARIANTS | EXACT_LIMITS).keys()


@pytest.mark.parametrize("name", BUGS)
def test_an_invariant_detects_its_planted_bug(
    name: str, sql: psycopg.Connection[Any], batches: dict[str, Any]
):
    apply(BUGS[name], sql, batches)
    assert name in broken(sql)


@pytest.mark.parametrize("name", REMOVALS)
def test_an_invariant_detects_missing_rows(
    name: str, sql: psycopg.Connection[Any], batches: dict[str, Any]
):
    apply(REMOVALS[name], sql, batches)
    assert name in broken(sql)


def apply(bug: str, sql: psycopg.Connection[Any], batches: dict[str, Any]) -> None:
    sql.execute("set search_path = batchmill")
    for statement in bug.split(";"):
        for place, batch in batches.items():
            statement = statement.replace(f":{place}", f"'{batch}'")
        sql.execute(statement.encode())


def broken(sql: psycopg.Connection[Any]) -> set[str]:
    return {finding.partition(": ")[0] for finding in violations(sql)}


def test_a_large_batch_is_checked_in_seconds(sql: psycopg.Connection[Any]):
    engine = Engine(sql)
    engine.task("work")
    engine.call("cancel_batch", engine.batch("work", 50_000))
    engine.batch("work", 50_000)
    # The check takes a few seconds. A query that reads all events for each job takes far longer.
    sql.execute("set statement_timeout = '30s'")
    assert violations(sql) == []
