"""The cost of a job does not grow with the backlog: the pages read for ten jobs and for a million.

Table statistics are collected while the tables are nearly empty, and the session has cached its
plans by then. A statement that needs better statistics to get a good plan fails these tests.
"""

from typing import Any

import psycopg
import pytest

from batchmill.domain.demand import Demand
from batchmill.domain.job import Claim, JobState, Progress
from batchmill.domain.limits import Limits
from batchmill.domain.outcome import Outcome
from batchmill.store.delivery import Turns, claim_call, finish_call, report_call
from batchmill.store.queries import queries
from tests.store.engine import Engine
from tests.store.test_releases import naming, new_file, releasing

TABLES = ("jobs", "lanes", "batches", "event_blocks", "finished")
PROGRESS = Progress("reading")
EXPLAIN = "explain (analyze, buffers, timing off, format json) "
STARTED = "select id, fence, lane_id from batchmill.jobs where state = 'running' and task = %s"
SCANS = """select relname, seq_scan from pg_stat_xact_user_tables
    where schemaname = 'batchmill' and relname = any (%s)"""
MORE_JOBS = """
    with one as (
        select * from batchmill.jobs where task = %s and state <> 'running' order by id limit 1
    ), more as (
        insert into batchmill.jobs (batch_id, position, lane_id, task, tenant, state, run_at,
            payload, created_at, expires_on)
        select batch_id, n, lane_id, task, tenant, %s::batchmill.job_state, run_at + %s, payload,
            created_at, expires_on
        from one cross join generate_series(1, %s) n
        returning batch_id
    )
    update batchmill.batches set total = total + (select count(*) from more)
    where id = (select batch_id from one) returning total"""
MORE_BATCHES = """
    with more as (
        insert into batchmill.batches (id, tenant, task, total, created_at, expires_at, expires_on)
        select gen_random_uuid(), replace(%(tenant)s, '{n}', n::text), %(task)s, 1, clock,
            clock + interval '1 day', batchmill.day_of(clock) + 1
        from batchmill.clock() cross join generate_series(1, %(count)s) n
        returning *
    ), limited as (
        insert into batchmill.limits (name, set_slots)
        select 'batch:' || id, %(limit)s from more where %(limit)s::integer is not null
    ), tracks as (
        insert into batchmill.lanes (task, tenant, batch_id, ready_at, is_due)
        select task, tenant, id, created_at, true from more returning *
    )
    insert into batchmill.jobs (batch_id, position, lane_id, task, tenant, state, run_at, payload,
        created_at, expires_on)
    select m.id, 0, t.id, m.task, m.tenant, 'ready', m.created_at, '1', m.created_at, m.expires_on
    from tracks t join more m on m.id = t.batch_id"""

# Half of the jobs are live. Of the finished ones, 1 % failed and 1 % were cancelled.
MIXED = """
    with batch as (
        select * from batchmill.batches where id = %(batch)s
    ), waiting as (
        insert into batchmill.jobs (batch_id, position, lane_id, task, tenant, state, run_at,
            payload, created_at, expires_on)
        select b.id, n, l.id, b.task, b.tenant,
            case when n %% 100 = 0 then 'scheduled' else 'ready' end::batchmill.job_state,
            b.created_at, '1', b.created_at, b.expires_on
        from batch b join batchmill.lanes l on l.batch_id = b.id
        cross join generate_series(%(first)s::integer, %(last)s::integer) n where n %% 2 = 0
    )
    insert into batchmill.finished (id, batch_id, position, task, tenant, state, priority, run_at,
        attempt, snoozes, finished_at, payload, result, created_at, expires_on)
    select nextval(pg_get_serial_sequence('batchmill.jobs', 'id')), id, n, task, tenant,
        case n %% 200 when 1 then 'failed' when 101 then 'cancelled' else 'completed' end
            ::batchmill.job_state,
        0, created_at, 1, 0, created_at, '1', '1', created_at, expires_on
    from batch cross join generate_series(%(first)s::integer, %(last)s::integer) n
    where n %% 2 = 1"""
MORE_JOBS_OF_BATCH = """
    with more as (
        insert into batchmill.jobs (batch_id, position, lane_id, task, tenant, state, run_at,
            payload, created_at, expires_on)
        select batch_id, n, lane_id, task, tenant, 'ready', run_at, payload, created_at, expires_on
        from (select * from batchmill.jobs where batch_id = %s) one
        cross join generate_series(1, %s) n
        returning batch_id
    )
    update batchmill.batches b set total = total + n
    from (select batch_id, count(*) as n from more group by batch_id) m
    where b.id = m.batch_id returning total"""


MORE_FILES_OF_JOB = """
    with job as (
        select * from batchmill.jobs where id = %(job)s
    ), more as (
        insert into batchmill.artifacts (id, tenant, kind, state, batch_id, job_id, fence, name,
            media_type, sha256, storage_key, created_at, written_at, expires_at)
        select gen_random_uuid(), tenant, 'output', 'kept', batch_id, id, fence, 'f', 'text/plain',
            repeat('a', 64), format('%%s/%%s', id, n), created_at, created_at, created_at + interval '1 day'
        from job cross join generate_series(1, %(count)s) n
        returning *
    )
    insert into batchmill.artifact_uses (artifact_id, tenant, batch_id, items)
    select id, tenant, batch_id, '{[0,1)}' from more"""
FIRST_FILES = "select id from batchmill.artifacts where job_id = %s order by id limit 10"


@pytest.fixture
def engine(sql: psycopg.Connection[Any]) -> Engine:
    return Engine(sql)


@pytest.fixture
def worker(engine: Engine) -> int:
    """A worker in a session that has cached all plans while the tables were nearly empty."""
    engine.task("work")
    worker = engine.worker("work")
    engine.set_limit("tenant:quiet", 5)
    engine.batch("work", 10)
    engine.conn.execute("analyze")
    for _ in range(8):
        pages(engine, worker, "work")
    return worker


def pages(engine: Engine, worker: int, task: str) -> int:
    """The pages read to claim ten jobs, to report progress on them and to finish them."""
    since = engine.value("select pg_current_xact_id()::text")
    claim = claim_call(Demand(worker, {task: 10}, 10), since, Turns())
    with engine.conn.transaction(force_rollback=True):
        claimed = pages_of(engine, "claim_jobs", claim)
        started = [Claim(*row) for row in engine.rows(STARTED, task)]
        reported = pages_of(engine, "report_progress", report_call((c, PROGRESS) for c in started))
        ended = finish_call([Outcome(c, "completed", "1", progress=PROGRESS) for c in started])
        with engine.conn.transaction(force_rollback=True):
            finished = pages_of(engine, "finish", ended)
        return claimed + reported + finished + pages_of(engine, "finish_and_claim", ended | claim)


def pages_of(engine: Engine, query: str, call: dict[str, Any]) -> int:
    """Also asserts that no table has a sequential scan."""
    before = engine.rows(SCANS, list(TABLES))
    read = pages_read(engine, query, call)
    assert engine.rows(SCANS, list(TABLES)) == before
    return read


def pages_read(engine: Engine, query: str, call: dict[str, Any]) -> int:
    row = engine.conn.execute((EXPLAIN + queries()[query]).encode(), call).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def pages_when_warm(engine: Engine, worker: int, task: str) -> int:
    """The first run after a change of the tables also reads the system catalogs."""
    return min(pages(engine, worker, task) for _ in range(3))


@pytest.mark.timeout(300)
def test_a_job_costs_the_same_with_a_million_jobs_in_the_lane(engine: Engine, worker: int):
    few = pages_when_warm(engine, worker, "work")
    engine.value(MORE_JOBS, "work", "ready", "0 s", 1_000_000)
    assert pages_when_warm(engine, worker, "work") < 1.5 * few
    engine.conn.execute("analyze")
    assert pages_when_warm(engine, worker, "work") < 1.5 * few


def test_a_job_costs_the_same_with_100_000_scheduled_jobs_in_the_lane(engine: Engine, worker: int):
    few = pages_when_warm(engine, worker, "work")
    engine.value(MORE_JOBS, "work", "scheduled", "1 day", 100_000)
    assert pages_when_warm(engine, worker, "work") < 1.5 * few


def test_a_new_batch_costs_the_same_next_to_a_batch_of_100_000_at_its_limit(
    engine: Engine, worker: int
):
    engine.task("narrow", limits=Limits(per_batch=1))
    engine.batch("narrow", 10)
    assert len(engine.claim(worker, "narrow")) == 1
    new = engine.batch("narrow", 1)
    few = pages_when_warm(engine, worker, "narrow")
    engine.value(MORE_JOBS, "narrow", "ready", "0 s", 100_000)
    assert pages_when_warm(engine, worker, "narrow") < 1.5 * few
    assert [claim.batch_id for claim in engine.claim(worker, "narrow")] == [str(new)]


def test_a_job_costs_the_same_with_5_000_batches(engine: Engine, worker: int):
    add_batches(engine, 20)
    few = pages_when_warm(engine, worker, "work")
    add_batches(engine, 5_000)
    assert pages_when_warm(engine, worker, "work") < 1.5 * few


def test_a_job_costs_the_same_with_5_000_limits(engine: Engine, worker: int):
    add_batches(engine, 20, limit=3)
    few = pages_when_warm(engine, worker, "work")
    add_batches(engine, 5_000, limit=3)
    assert pages_when_warm(engine, worker, "work") < 1.5 * few


@pytest.mark.parametrize(
    ("query", "call"),
    [
        ("submit", {"items": '[{"payload": 1}]', "options": "{}"}),
        ("submit", {"items": "[1]", "options": '{"bare": true}'}),
        ("submit_one", {"payload": "1", "options": "{}"}),
    ],
    ids=["items with options", "payloads", "one payload"],
)
def test_a_submit_costs_the_same_with_5_000_limits(
    engine: Engine, worker: int, query: str, call: dict[str, Any]
):
    def pages_when_warm() -> int:
        return min(pages_read(engine, query, {"task": "work", **call}) for _ in range(8))

    few = pages_when_warm()
    engine.conn.execute(
        "insert into batchmill.limits (name, set_slots) "
        "select 'batch:' || gen_random_uuid(), 3 from generate_series(1, 5000)"
    )
    assert pages_when_warm() < 1.5 * few


def test_a_job_costs_the_same_with_5_000_batches_of_a_paused_tenant(engine: Engine, worker: int):
    engine.set_limit("tenant:paused", paused=True)
    add_batches(engine, 20, tenant="paused")
    park(engine, worker)
    few = pages_when_warm(engine, worker, "work")
    add_batches(engine, 5_000, tenant="paused")
    park(engine, worker)
    assert pages_when_warm(engine, worker, "work") < 1.5 * few


def test_a_job_costs_the_same_with_5_000_tenants(engine: Engine, worker: int):
    add_batches(engine, 20, tenant="t{n}")
    few = pages_when_warm(engine, worker, "work")
    add_batches(engine, 5_000, tenant="t{n}")
    assert pages_when_warm(engine, worker, "work") < 1.5 * few


def test_a_job_costs_the_same_with_5_000_tenants_that_have_only_scheduled_jobs(
    engine: Engine, worker: int
):
    few = pages_when_warm(engine, worker, "work")
    add_batches(engine, 5_000, tenant="t{n}")
    engine.conn.execute(
        "update batchmill.lanes set ready_at = ready_at + interval '1 day', is_due = false "
        "where tenant <> 'default'"
    )
    engine.conn.execute("vacuum batchmill.lanes")
    assert pages_when_warm(engine, worker, "work") < 1.5 * few


def test_a_job_costs_the_same_with_5_000_tenants_behind_a_full_limit(engine: Engine, worker: int):
    engine.task("narrow", limits=Limits(total=1))
    engine.batch("narrow", 10)
    for _ in range(8):
        pages(engine, worker, "narrow")
    add_batches(engine, 20, tenant="t{n}", task="narrow")
    few = pages_when_warm(engine, worker, "narrow")
    add_batches(engine, 5_000, tenant="t{n}", task="narrow")
    engine.conn.execute(
        "update batchmill.lanes set blocked_by = "
        "(select id from batchmill.limits where name = 'task:narrow') where tenant <> 'default'"
    )
    engine.conn.execute("update batchmill.limits set parked = true where name = 'task:narrow'")
    engine.conn.execute("vacuum batchmill.lanes")
    assert pages_when_warm(engine, worker, "narrow") < 1.5 * few


def add_batches(
    engine: Engine,
    count: int,
    *,
    tenant: str = "default",
    task: str = "work",
    limit: int | None = None,
) -> None:
    """`{n}` in the tenant is replaced by the number of the batch, so that each has its own tenant."""
    params = {"task": task, "tenant": tenant, "count": count, "limit": limit}
    engine.conn.execute(MORE_BATCHES, params)


def park(engine: Engine, worker: int) -> None:
    """Claims until every lane behind the paused limit is parked, and releases the claimed jobs."""
    open_lanes = """select count(*) from batchmill.lanes
        where tenant = 'paused' and blocked_by is null"""
    while engine.value(open_lanes):
        engine.release(*engine.claim(worker, "work", want=500))


def test_a_page_of_events_costs_the_same_in_a_large_block(engine: Engine, worker: int):
    few, many = (engine.batch("work", count) for count in (500, 10_000))
    for batch in (few, many):
        engine.call("cancel_batch", batch)
    pages_of_few, pages_of_many = (
        pages_read(engine, "events_after", {"batch": batch, "after": 0, "count": 500})
        for batch in (few, many)
    )
    assert pages_of_many < 10 * pages_of_few


def test_reading_the_jobs_of_a_batch_is_cheap_with_5_000_batches(engine: Engine, worker: int):
    batch = engine.batch("work", 10)
    add_batches(engine, 5_000)
    engine.conn.execute("analyze")
    page = {"batch": batch, "after": -1, "count": 500, "bytes": 1_000_000}
    assert pages_of_tenant(engine, "jobs_of_batch", page) < 300


PAGES: list[tuple[str, dict[str, Any]]] = [
    ("jobs_of_batch", {"count": 100, "bytes": 1_000_000}),
    ("ended_of_batch", {"count": 100, "bytes": 1_000_000}),
    ("state_of_batch", {"most": 100}),
    *(
        (
            "list_jobs_of_batch",
            {"state": state, "task": None, "tenant": None, "count": 100, "look": 100},
        )
        for state in (None, *JobState)
    ),
]


@pytest.mark.timeout(300)
def test_a_page_of_a_batch_costs_the_same_in_a_batch_of_100_000(engine: Engine, worker: int):
    """One test for all pages, because adding the jobs takes longer than reading the pages."""
    batch = engine.batch("work", 1)

    def read(name: str, page: dict[str, Any], *after: int) -> int:
        return max(
            pages_of_tenant(engine, name, page | {"batch": batch, "after": n}) for n in after
        )

    engine.conn.execute(MIXED, {"batch": batch, "first": 1, "last": 20_000})
    few = [read(name, page, -1, 10_000) for name, page in PAGES]
    engine.conn.execute(MIXED, {"batch": batch, "first": 20_001, "last": 100_000})
    for _ in range(2):
        many = [read(name, page, -1, 10_000, 90_000) for name, page in PAGES]
        grown = [(*page, a, b) for page, a, b in zip(PAGES, few, many, strict=True) if b >= 1.5 * a]
        assert grown == []
        engine.conn.execute("analyze")


@pytest.mark.parametrize("name", ["jobs_of_batch", "ended_of_batch"])
def test_a_page_of_1_000_jobs_costs_less_than_ten_pages_of_100(
    name: str, engine: Engine, worker: int
):
    batch = engine.batch("work", 1)
    engine.conn.execute(MIXED, {"batch": batch, "first": 1, "last": 4_000})
    page = {"batch": batch, "after": -1, "bytes": 100_000_000}
    few, many = (pages_of_tenant(engine, name, page | {"count": n}) for n in (100, 1_000))
    assert many < 10 * few


def pages_of_tenant(engine: Engine, name: str, call: dict[str, Any]) -> int:
    """Reads as a request does: a row-level security policy may prevent the use of an index."""
    with engine.conn.transaction():
        engine.conn.execute(
            queries()["act_for_tenant"].encode(),
            {"acting_tenant": "default", "acting_timeout": None},
        )
        engine.conn.execute(queries()["read_in_order"].encode())
        return min(pages_read(engine, name, call) for _ in range(2))


def test_a_step_of_a_cancel_costs_the_same_in_a_batch_of_100_000(engine: Engine, worker: int):
    read = []
    for count in (1_000, 100_000):
        batch = engine.batch("work", 1)
        engine.value(MORE_JOBS_OF_BATCH, batch, count)
        with engine.conn.transaction(force_rollback=True):
            engine.call("begin_cancel", batch)
            step = {"batch": batch, "after": -1, "most": 100}
            pages_read(engine, "cancel_step", step)
            read.append(pages_read(engine, "cancel_step", step | {"after": 100}))
    assert read[1] < 1.5 * read[0]


@pytest.mark.timeout(300)
def test_a_release_costs_the_same_if_20_000_items_name_the_file(engine: Engine, worker: int):
    """All but a few of the jobs have released the file already."""
    read = []
    for count in (200, 20_000):
        file = new_file(engine)
        engine.batch("work", [naming(file)] * count)
        last: list[Claim] = []
        while claims := engine.claim(worker, "work", want=1_000):
            *claims, first = claims
            last.append(first)
            engine.finish(*(releasing(c, file) for c in claims))
            engine.call("apply_releases", 100)
        engine.conn.execute("vacuum batchmill.artifact_releases, batchmill.artifact_uses")
        call = finish_call([releasing(last[0], file)])
        ended = pages_read(engine, "finish_with_records", call)
        applied = pages_read(engine, "apply_releases", {"most": 100})
        read.append(ended + applied)
        engine.finish(*(releasing(c, file) for c in last[1:]))
    assert read[1] < 1.5 * read[0]


def test_a_release_costs_the_same_if_the_job_has_20_000_files(engine: Engine, worker: int):
    """By the statistics, each job has one file."""

    def claim_with_files(count: int) -> Claim:
        engine.batch("work", 1)
        (claim,) = engine.claim(worker, "work", want=1)
        engine.conn.execute(MORE_FILES_OF_JOB, {"job": claim.id, "count": count})
        return claim

    engine.drain(worker, "work")
    for _ in range(200):
        engine.complete(claim_with_files(1))
    engine.conn.execute("analyze")
    read = []
    for count in (1_000, 20_000):
        claim = claim_with_files(count)
        files = [row[0] for row in engine.rows(FIRST_FILES, claim.id)]
        with engine.conn.transaction(force_rollback=True):
            engine.finish(releasing(claim, *files))
            read.append(pages_read(engine, "apply_releases", {"most": 100}))
        engine.complete(claim)
    assert read[1] < 1.5 * read[0]
