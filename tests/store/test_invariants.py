"""A checker counts only if it can fail: each bug is planted here, and has to be seen."""

from typing import Any

import psycopg
import pytest

from batchmill.domain import outcome
from batchmill.domain.limits import Limits
from tests.invariants import EXACT_LIMITS, INVARIANTS, violations
from tests.store.engine import Engine

PLANTS = {
    "the counters of a batch are the states of its jobs": """
        update batches set completed = completed + 1 where id = :going""",
    "a batch is finished exactly when all its jobs have ended": """
        update batches set finished_at = clock() where id = :going""",
    "the state of a batch follows from its counters": """
        update batches set state = 'completed' where id = :done""",
    "a batch tells once in each generation that it finished, and last of all": """
        update batches set generation = 2 where id = :done""",
    "a batch calls back once in each generation": """
        insert into jobs (position, task, tenant, state, run_at, payload, created_at, expires_on,
            submitted_by)
        select position, task, tenant, state, run_at, payload, created_at, expires_on, submitted_by
        from jobs where task = 'callback'""",
    "everyone who is to be told of a batch is told once in each generation that finished": """
        insert into jobs (position, task, tenant, state, run_at, payload, created_at, expires_on,
            submitted_by)
        select position, task, tenant, state, run_at, payload, created_at, expires_on, submitted_by
        from jobs where task = 'batchmill.email'""",
    "a batch tells once that it started, before any job does": """
        update event_blocks set last_number = -3 where batch_id = :going and type = 'job_started';
        update event_blocks set last_number = 4 where batch_id = :going and type = 'batch_started';
        update event_blocks set last_number = 3 where batch_id = :going and last_number = -3""",
    "the events of a batch are numbered from 1 to its last": """
        update event_blocks set last_number = last_number + 1
        where (batch_id, last_number) in (select id, last_event from batches where id = :going)""",
    "a job has ended once, and once more after each manual retry": """
        update event_blocks set type = 'job_snoozed', data = '{null}'
        where batch_id = :going and type = 'job_completed'""",
    "every change of a job's state is allowed": """
        update event_blocks set type = 'job_snoozed' where batch_id = :going and type = 'job_started'""",
    "progress is told only of running jobs": """
        insert into event_blocks (batch_id, last_number, tenant, type, job_ids, positions, data, at,
            expires_on)
        select batch_id, b.last_event + 1, b.tenant, 'job_progress', array[j.id],
            array[j.position], '{null}', clock(), b.expires_on
        from finished j join batches b on b.id = batch_id limit 1""",
    "a job's state is the one that its last event told": """
        update jobs set state = 'scheduled', fence = null, worker_id = null, started_at = null
        where state = 'running'""",
    "attempts are counted from 1, and only failed ones use one up": """
        update event_blocks set data = array_fill('{"attempt": 2}'::json, array[cardinality(data)])
        where batch_id = :going and type = 'job_started'""",
    "no job has more attempts than its task allows": """
        update jobs set attempt = 4 where state = 'running'""",
    "a running job has an attempt, a fence and a worker; a waiting one has neither of these two": """
        update jobs set worker_id = null where state = 'running'""",
    "no job starts before its time": """
        update jobs set run_at = 'infinity' where state = 'running'""",
    "a job is either live or finished, once": """
        insert into jobs (id, position, task, tenant, state, run_at, payload, created_at, expires_on,
            submitted_by)
        overriding system value
        select id, position, task, tenant, 'ready', run_at, payload, created_at, expires_on, '0'
        from finished limit 1""",
    "a cancelled job never completes": """
        update batches set cancelled_at = '-infinity' where id = :done""",
    "a fence belongs to one attempt": """
        update jobs set fence = (select min(fence) from finished) where state = 'running'""",
    "one live job has a deduplication key": """
        drop index jobs_dedup;
        update jobs set dedup_key = 'same' where lane_id is null or state = 'ready'""",
    "one tenant owns a batch, its jobs, events, lanes and artifacts": """
        update event_blocks set tenant = 'eve' where batch_id = :done and last_number = 2""",
    "what waits for the end of an attempt belongs to the attempt that runs": """
        update artifacts set fence = fence - 1 where state = 'stored'""",
    "nothing that is recorded names a file that may still go": """
        update finished set result = (
            select json_build_object('artifact', id) from artifacts where state = 'stored')
        where state = 'completed'""",
    "a batch's files live as long as the batch": """
        update artifacts set expires_at = expires_at - interval '1 second' where kind = 'input'""",
    "a tenant has stored what its artifacts take up": """
        update usage set stored_bytes = stored_bytes - 1""",
    "a group has stored what its tenants have": """
        update storage_groups set stored_bytes = stored_bytes - 1""",
    "a job waits in its own lane": """
        update jobs set key = 'other' where state = 'ready' and lane_id is not null""",
    "a lane counts its running jobs": """
        update lanes set running = running + 1 where batch_id = :going""",
    "a limit counts the running jobs that its name fits": """
        update limits set running = running + 1 where name = 'task:work'""",
    "a lane learns of the work that waits in it": """
        update lanes set ready_at = null where batch_id = :going""",
    "no ready job stands before the head of its lane": """
        update lanes set head_rank = 1000 where batch_id = :going""",
    "a parked lane stands behind a limit that knows of it": """
        update lanes set blocked_by = (select id from limits where name = 'task:work')
        where batch_id = :going""",
    "a limit declares what its template says": """
        update limits set set_slots = 8 where name = 'task:work/tenant:*'""",
    "nothing is left of a finished batch but what tells of it": """
        insert into lanes (task, tenant, batch_id) values ('work', 'default', :done)""",
    "no limit is exceeded": """
        update limits set set_slots = 0 where name = 'task:work'""",
    "no batch runs more jobs than its task allows": """
        update limits set set_slots = 0 where name = 'task:work/batch:*'""",
}

NO_JOBS = "delete from finished where batch_id = :done"
NO_EVENTS = "delete from event_blocks where batch_id = :done"
# Where nothing is left to count, the count is zero and not null.
REMOVALS = {
    "the counters of a batch are the states of its jobs": NO_JOBS,
    "a batch tells once in each generation that it finished, and last of all": NO_EVENTS,
    "a batch calls back once in each generation": "delete from jobs where task = 'callback'",
    "a batch tells once that it started, before any job does": NO_EVENTS,
    "the events of a batch are numbered from 1 to its last": NO_EVENTS,
    "a job has ended once, and once more after each manual retry": NO_EVENTS,
    "progress is told only of running jobs": """
        delete from event_blocks where batch_id = :going and type = 'job_started'""",
    "a job's state is the one that its last event told": NO_EVENTS,
}

OUTPUT = "select id from batchmill.begin_output(%s, %s, 'out', 'x/y', gen_random_uuid())"


@pytest.fixture
def world(sql: psycopg.Connection[Any]) -> dict[str, Any]:
    """A batch that is done, one that is going on, jobs in every state, and files."""
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
    engine.complete(first)
    engine.finish(outcome.snoozed(second, 60))
    engine.report(third, progress={"stage": "reading"})
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


def test_every_checker_has_a_bug_that_it_must_see():
    assert PLANTS.keys() == (INVARIANTS | EXACT_LIMITS).keys()


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_bug_is_seen(name: str, sql: psycopg.Connection[Any], world: dict[str, Any]):
    plant(PLANTS[name], sql, world)
    assert name in broken(sql)


@pytest.mark.parametrize("name", REMOVALS)
def test_a_removed_row_is_seen(name: str, sql: psycopg.Connection[Any], world: dict[str, Any]):
    plant(REMOVALS[name], sql, world)
    assert name in broken(sql)


def plant(bug: str, sql: psycopg.Connection[Any], world: dict[str, Any]) -> None:
    sql.execute("set search_path = batchmill")
    for statement in bug.split(";"):
        for place, batch in world.items():
            statement = statement.replace(f":{place}", f"'{batch}'")
        sql.execute(statement.encode())


def broken(sql: psycopg.Connection[Any]) -> set[str]:
    return {finding.partition(": ")[0] for finding in violations(sql)}


def test_a_large_batch_is_checked_in_seconds(sql: psycopg.Connection[Any]):
    engine = Engine(sql)
    engine.task("work")
    engine.call("cancel_batch", engine.batch("work", 50_000))
    engine.batch("work", 50_000)
    # The check takes a few seconds. A query that reads all events for each job exceeds this by far.
    sql.execute("set statement_timeout = '30s'")
    assert violations(sql) == []
