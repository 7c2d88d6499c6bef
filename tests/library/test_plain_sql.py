"""Submitting in plain SQL, from any language: two functions, and errors with their own codes."""

import json
from typing import Any

import psycopg
import pytest

from batchmill import Job, Limits, Mill, Permanent, Transient
from batchmill.maintenance import retention
from tests.invariants import violations
from tests.library.tools import echo_on, nothing_is_left, one

ENQUEUE = "select batchmill.enqueue(%s, %s::json, %s::jsonb)"
SUBMIT = "select batchmill.submit(%s, %s::json, %s::jsonb)"


def enqueue(sql: psycopg.Connection, task: str, payload: Any, **options: Any) -> dict[str, Any]:
    return one(sql, ENQUEUE, task, json.dumps(payload), json.dumps(options))[0]


def submit(sql: psycopg.Connection, task: str, items: Any, **options: Any) -> dict[str, Any]:
    return one(sql, SUBMIT, task, json.dumps(items), json.dumps(options))[0]


@pytest.fixture
async def tasks(mill: Mill) -> Mill:
    """`echo` takes anything, `small` at most 100 bytes; `keyed` has a key for each job."""
    echo_on(mill)

    @mill.task(payload_limit=100)
    async def small(text: str) -> str:
        return text

    @mill.task(key=lambda n: f"{n}", limits=Limits(per_batch=1))
    async def keyed(n: int) -> int:
        return n

    await mill.register_tasks()
    return mill


async def test_sql_enqueues_a_job_with_one_select(tasks: Mill, sql: psycopg.Connection) -> None:
    row = sql.execute("select batchmill.enqueue('echo', '{\"n\": 1}')").fetchone()
    assert row is not None and row[0]["cached"] is False
    async with tasks.running():
        assert await tasks.job(row[0]["job_id"]).result() == {"n": 1}


async def test_sql_submits_a_batch_with_one_select(tasks: Mill, sql: psycopg.Connection) -> None:
    row = sql.execute(
        """select batchmill.submit('echo', '[{"payload": 1}, {"payload": "two"}, {}]')"""
    ).fetchone()
    assert row is not None
    answer = row[0]
    assert (answer["total"], answer["duplicates"], answer["cached"]) == (3, 0, 0)
    async with tasks.running():
        assert (await tasks.batch(answer["batch_id"]).results()).values == [1, "two", None]


async def test_items_can_come_from_a_query(tasks: Mill, sql: psycopg.Connection) -> None:
    (answer,) = one(
        sql,
        """select batchmill.submit('echo', json_agg(json_build_object('payload', n)))
        from generate_series(1, 10000) n""",
    )
    assert answer["total"] == 10_000
    assert violations(sql) == []


async def test_sql_functions_accept_every_option(tasks: Mill, sql: psycopg.Connection) -> None:
    items: Any = [
        {"payload": 1, "priority": 5, "dedup_key": "a"},
        {"payload": 2, "delay": 60, "cache_key": "c"},
        {"payload": 3, "run_at": "2040-01-01T00:00:00Z"},
        {"payload": 4, "dedup_key": "a"},
    ]
    answer = submit(
        sql,
        "echo",
        items,
        tenant="t",
        priority=1,
        labels={"from": "sql"},
        limit=2,
        expires_in=86_400,
        on_finish="echo",
        idempotency_key="k",
    )
    assert (answer["total"], answer["duplicates"]) == (3, 1)
    batch = tasks.batch(answer["batch_id"])
    record = await batch.get()
    assert (record.tenant, record.labels) == ("t", {"from": "sql"})
    jobs = [job async for job in batch.jobs()]
    assert [(job.priority, job.state) for job in jobs] == [
        (5, "ready"),
        (1, "scheduled"),
        (1, "scheduled"),
    ]
    assert jobs[2].run_at.year == 2040
    job = enqueue(sql, "keyed", 1, key="one", tenant="t", priority=2, delay=5, labels={"a": "b"})
    single = await tasks.job(job["job_id"]).get()
    assert (single.key, single.tenant, single.priority, single.labels) == (
        ("one", "t", 2, {"a": "b"})
    )


async def test_deduplication_and_idempotency_work_from_sql(
    tasks: Mill, sql: psycopg.Connection
) -> None:
    first = enqueue(sql, "echo", 1, dedup_key="d")
    second = enqueue(sql, "echo", 2, dedup_key="d")
    assert second["job_id"] == first["job_id"] and second["duplicate"]
    again = [enqueue(sql, "echo", 1, idempotency_key="j") for _ in range(2)]
    assert again[1]["job_id"] == again[0]["job_id"] and again[1]["existing"]
    batches = [submit(sql, "echo", [{"payload": 1}], idempotency_key="b") for _ in range(2)]
    assert batches[1]["batch_id"] == batches[0]["batch_id"] and batches[1]["existing"]


async def test_a_batch_can_be_submitted_in_several_calls_of_one_transaction(
    tasks: Mill, sql: psycopg.Connection
) -> None:
    with sql.transaction():
        batch = submit(sql, "echo", [{"payload": 1}], more=True)["batch_id"]
        submit(sql, "echo", [{"payload": 2}], more=True, batch_id=batch)
        answer = submit(sql, "echo", [{"payload": 3}], batch_id=batch)
    assert answer["total"] == 3
    async with tasks.running():
        assert (await tasks.batch(batch).results()).values == [1, 2, 3]


async def test_a_batch_of_several_calls_needs_one_transaction(
    tasks: Mill, sql: psycopg.Connection
) -> None:
    with pytest.raises(psycopg.Error) as refusal:
        batch = submit(sql, "echo", [{"payload": 1}], more=True)["batch_id"]
        submit(sql, "echo", [{"payload": 2}], batch_id=batch)
    assert refusal.value.sqlstate == "BM002"
    assert nothing_is_left(sql)


REFUSED: list[tuple[str, Any]] = [
    ("BM001", lambda sql: enqueue(sql, "unheard_of", 1)),
    ("BM001", lambda sql: submit(sql, "unheard_of", [{"payload": 1}])),
    ("BM001", lambda sql: submit(sql, "echo", [{"payload": 1}], on_finish="unheard_of")),
    ("BM002", lambda sql: enqueue(sql, "echo", "nul \0")),
    ("BM002", lambda sql: submit(sql, "echo", [{"payload": "nul \0"}])),
    ("BM002", lambda sql: enqueue(sql, "echo", 1, key="not keyed")),
    ("BM002", lambda sql: submit(sql, "echo", [{"payload": 1, "key": "not keyed"}])),
    ("BM002", lambda sql: submit(sql, "keyed", [{"payload": 1}])),
    ("BM002", lambda sql: enqueue(sql, "keyed", 1)),
    ("BM002", lambda sql: submit(sql, "echo", [])),
    ("BM002", lambda sql: submit(sql, "echo", {"payload": 1})),
    ("BM002", lambda sql: submit(sql, "echo", [1, 2])),
    ("BM002", lambda sql: submit(sql, "echo", [{"payload": 1}], limit=-1)),
    ("BM002", lambda sql: submit(sql, "echo", [{"payload": 1}], limit=0)),
    ("BM002", lambda sql: enqueue(sql, "echo", 1, tenant="")),
    ("BM003", lambda sql: enqueue(sql, "small", "x" * 99)),
    ("BM003", lambda sql: submit(sql, "small", [{"payload": "x" * 99}])),
    ("BM004", lambda sql: enqueue(sql, "echo", 2, idempotency_key="taken")),
    ("BM004", lambda sql: submit(sql, "echo", [{"payload": 1}], idempotency_key="taken")),
]


async def test_refused_calls_have_an_error_code_and_write_nothing(
    tasks: Mill, sql: psycopg.Connection
) -> None:
    enqueue(sql, "echo", 1, idempotency_key="taken")
    for number, (code, call) in enumerate(REFUSED):
        with pytest.raises(psycopg.Error) as refusal:
            call(sql)
        assert (number, refusal.value.sqlstate) == (number, code)
    assert one(sql, "select count(*) from batchmill.jobs") == (1,)
    assert one(sql, "select count(*) from batchmill.batches") == (0,)


async def test_the_payload_limit_is_the_same_as_in_python(
    tasks: Mill, sql: psycopg.Connection
) -> None:
    assert enqueue(sql, "small", "x" * 98)["job_id"]
    assert submit(sql, "small", [{"payload": "x" * 98}])["total"] == 1


def test_unknown_ids_have_an_error_code(sql: psycopg.Connection) -> None:
    nobody = "'00000000-0000-0000-0000-000000000000'"
    for call in (
        f"cancel_batch({nobody})",
        f"retry_batch({nobody})",
        f"delete_batch({nobody})",
        "cancel_job(0)",
        "retry_job(0)",
    ):
        with pytest.raises(psycopg.Error) as refusal:
            sql.execute(f"select batchmill.{call}".encode())
        assert refusal.value.sqlstate == "BM005"


async def test_the_functions_do_not_depend_on_the_callers_search_path(
    tasks: Mill, sql: psycopg.Connection
) -> None:
    sql.execute("create table public.jobs (trap integer)")
    sql.execute("create function public.clock() returns date language sql as 'select null::date'")
    sql.execute("set search_path = public")
    job = enqueue(sql, "echo", 1)["job_id"]
    batch = submit(sql, "echo", [{"payload": 1}])["batch_id"]
    cancel = "select batchmill.cancel_job(%s), batchmill.cancel_batch(%s)"
    assert one(sql, cancel, job, batch) == (1, 1)


async def test_a_mill_works_with_any_search_path(dsn: str) -> None:
    """The tests' role is called batchmill, so the schema is on its search path by default."""
    mill = Mill(f"{dsn}?options=-c%20search_path%3Dpublic")

    @mill.task(key=lambda n: f"{n}", limits=Limits(total=3, per_batch=2, per_tenant=2, per_key=1))
    async def work(job: Job, n: int) -> int:
        await job.progress("working")
        if n == 3 and job.attempt == 1:
            raise Transient("again")
        if n == 4:
            raise Permanent("never")
        return await job.once("answer", lambda: n)

    async with mill.running():
        batch = await mill.submit(work, range(5), limit=2)
        results = await batch.results()
        assert await batch.retry() == 1
        assert (await batch.wait()).failed == 1
        await retention.tidy(mill.engine.store)
        await mill.limits.set("tenant:*", slots=1)
        await batch.delete()
    assert results.values == [0, 1, 2, 3]
