"""Erasing a tenant leaves nothing of it and changes nothing of others."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import (
    ErasureInProgress,
    InvalidInput,
    JobFailed,
    LeaseLost,
    Mill,
    NotFound,
    Quota,
)
from batchmill.controls.eraser import Eraser, Progress
from tests.erasing.app import fill, shop_on
from tests.invariants import violations
from tests.library.tools import one, rows, until, until_event

# Every column of every table, as text: a search that does not know which columns name a tenant.
EVERYTHING = """
select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('batchmill', 'shop') and c.relkind in ('r', 'p') and not c.relispartition"""


def mentions(sql: psycopg.Connection[Any], tenant: str) -> list[str]:
    return [
        name
        for (name,) in rows(sql, EVERYTHING)
        if one(sql, f"select exists (select from {name} t where t::text like %s)", f"%{tenant}%")[0]
    ]


def contents(sql: psycopg.Connection[Any], tenant: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that mention a tenant, without counters of the whole system."""
    return {
        name: sorted(
            rows(sql, f"select t::text from {name} t where t::text like %s", f"%{tenant}%")
        )
        for (name,) in rows(sql, EVERYTHING)
        if name != "batchmill.lanes"
    }


@pytest.fixture
async def shop(dsn: str, tmp_path: Path) -> AsyncIterator[Mill]:
    async with shop_on(dsn, tmp_path) as mill:
        yield mill


def files(folder: Path) -> list[Path]:
    return [path for path in (folder / "files").rglob("*") if path.is_file()]


async def test_nothing_is_left_of_an_erased_tenant_and_a_neighbour_is_untouched(
    shop: Mill, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    for tenant in ("acme", "acme/team", "neighbour"):
        await fill(shop, tenant)
    async with shop.running():
        await until(
            lambda: one(sql, "select count(*) from batchmill.jobs where run_at < now()") == (0,)
        )
    before = contents(sql, "neighbour"), contents(sql, "acme/team")
    assert len(await shop.tenants.remains("acme")) > 12
    await shop.tenants.erase("acme")
    assert await shop.tenants.remains("acme") == {}
    assert await shop.tenants.erasures() == []
    assert (contents(sql, "neighbour"), contents(sql, "acme/team")) == before
    await shop.tenants.erase("acme/team")
    assert mentions(sql, "acme") == []
    stored = rows(sql, "select storage_key from batchmill.artifacts")
    assert sorted(str(path.relative_to(tmp_path / "files")) for path in files(tmp_path)) == sorted(
        key for (key,) in stored
    )
    assert violations(sql) == []


async def test_the_name_of_an_erased_tenant_can_be_used_again(shop: Mill) -> None:
    await fill(shop, "acme", 3)
    await shop.tenants.erase("acme")
    await shop.tenants.erase("acme")
    batch = await shop.as_tenant("acme").submit("double", [1])
    async with shop.running():
        assert (await batch.results()).values == [2]


async def test_nothing_can_be_added_for_a_tenant_that_is_being_erased(
    shop: Mill, sql: psycopg.Connection[Any]
) -> None:
    await fill(shop, "acme", 3)
    # A worker that sends mail would have registered this task.
    sql.execute(
        "update batchmill.tasks set name = 'batchmill.email' where name = 'batchmill.webhook'"
    )
    (failed,) = [job for job in await shop.jobs() if job.task == "fail"]
    async with shop.running():
        with pytest.raises(JobFailed):
            await shop.job(failed.id).result()
    await shop.tenants.begin_erasure("acme")
    acme = shop.as_tenant("acme")
    for refused in (
        acme.submit("double", [1]),
        acme.enqueue("double", 1),
        shop.submit("double", [1], tenant="acme"),
        shop.enqueue("double", 1, tenant="acme"),
        acme.artifacts.save("a", b"x"),
        acme.job(failed.id).retry(),
        acme.batch((await acme.batches())[0].id).notify("ada@example.org"),
        shop.schedules.save("new", "0 3 * * *", "double", 1, tenant="acme"),
        shop.keys.create("new", tenant="acme"),
        shop.keys.set_quota(Quota(tenant="acme", active_jobs=1)),
        shop.engine.schemas[0].rows(shop, "add", tenant="acme"),
        shop.engine.schemas[0].rows(acme, "add", tenant="acme"),
    ):
        with pytest.raises(ErasureInProgress):
            await refused
    await shop.as_tenant("neighbour").submit("double", [1])


@pytest.mark.parametrize("tenant", ["default", "*", ""])
async def test_tenants_of_the_operator_cannot_be_erased(shop: Mill, tenant: str) -> None:
    with pytest.raises(InvalidInput, match="belongs to the operator"):
        await shop.tenants.erase(tenant)


async def test_running_jobs_are_stopped_and_their_streams_end(shop: Mill) -> None:
    stopped, started = asyncio.Event(), asyncio.Event()

    @shop.task(entry=True)
    async def hold() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    batch = await shop.as_tenant("acme").submit(hold, [None, None])
    single = await shop.as_tenant("acme").enqueue(hold)
    async with shop.running():
        seen = asyncio.create_task(last_type(batch))
        await started.wait()
        await shop.tenants.erase("acme")
        await stopped.wait()
        assert await seen == "batch_cancelled"
    for gone in (batch.get(), single.get()):
        with pytest.raises(NotFound):
            await gone


async def last_type(batch: Any) -> str | None:
    """The type of the last event. The log may be deleted before its end is read."""
    last = None
    try:
        async for event in batch.events():
            last = event.type
    except NotFound:
        return "batch_cancelled"
    return last


async def test_the_late_outcome_of_an_attempt_that_does_not_stop_is_refused(
    shop: Mill, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchmill.controls.eraser.GRACE", 0.0)
    started, may_end = asyncio.Event(), asyncio.Event()

    @shop.task(entry=True)
    async def stubborn() -> str:
        started.set()
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue
        return "acme's secret"

    batch = await shop.as_tenant("acme").submit(stubborn, [None])
    async with shop.running():
        await started.wait()
        await shop.tenants.erase("acme")
        assert mentions(sql, "acme") == []
        may_end.set()
        neighbour = await shop.as_tenant("neighbour").submit("double", [1])
        assert (await neighbour.results()).values == [2]
    assert mentions(sql, "acme") == []
    assert violations(sql) == []
    with pytest.raises(NotFound):
        await batch.get()


async def test_an_erasure_waits_for_a_transaction_that_has_submitted_before_it(
    shop: Mill, sql: psycopg.Connection[Any]
) -> None:
    await fill(shop, "acme", 3)
    async with shop.transaction() as conn:
        await shop.enqueue("double", 1, tenant="acme", connection=conn)
        with pytest.raises(TimeoutError):
            await shop.tenants.erase("acme", timeout=1)
        assert [each.tenant for each in await shop.tenants.erasures()] == ["acme"]
    await shop.tenants.erase("acme")
    assert mentions(sql, "acme") == []


@pytest.mark.parametrize("level", ["REPEATABLE_READ", "SERIALIZABLE"])
async def test_a_submit_whose_snapshot_is_older_than_the_erasure_fails(
    shop: Mill, dsn: str, sql: psycopg.Connection[Any], level: str
) -> None:
    await fill(shop, "acme", 3)
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        await conn.set_isolation_level(psycopg.IsolationLevel[level])
        await conn.execute("select from batchmill.erasures")
        await shop.tenants.begin_erasure("acme")
        with pytest.raises(psycopg.errors.SerializationFailure):
            await shop.submit("double", [1], tenant="acme", connection=conn)
        await conn.rollback()
        with pytest.raises(ErasureInProgress):
            await shop.submit("double", [1], tenant="acme", connection=conn)
        await conn.rollback()
        await shop.submit("double", [1], tenant="neighbour", connection=conn)
    await shop.tenants.erase("acme")
    assert mentions(sql, "acme") == []


@pytest.mark.parametrize(
    "step",
    [
        "batches_to_cancel",
        "cancel_singles",
        "give_up_artifacts",
        "artifacts_to_remove",
        "tables_to_erase",
        "erase_lanes",
        "erase_names",
        "end_erasure",
    ],
)
async def test_a_paused_process_deletes_nothing_after_another_one_has_ended_the_erasure(
    shop: Mill, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(shop, "acme", 3)
    await shop.tenants.begin_erasure("acme")
    paused = Eraser(shop.engine, "acme")
    reached, may_go_on = asyncio.Event(), asyncio.Event()
    go_on = getattr(paused._store, step)

    async def pause(*given: Any) -> Any:
        monkeypatch.undo()
        reached.set()
        await may_go_on.wait()
        return await go_on(*given)

    monkeypatch.setattr(paused._store, step, pause)
    running = asyncio.create_task(paused.run(60))
    await reached.wait()
    await shop.tenants.erase("acme")
    batch = await shop.as_tenant("acme").submit("double", [1])
    single = await shop.as_tenant("acme").enqueue("double", 2)
    file = await shop.as_tenant("acme").artifacts.save("a", b"x")
    await shop.limits.set("tenant:acme", slots=1)
    before = await shop.tenants.remains("acme")
    may_go_on.set()
    await running
    assert await shop.tenants.remains("acme") == before
    assert await shop.artifacts.read(file) == b"x"
    assert "tenant:acme" in [each.name for each in await shop.limits.all()]
    async with shop.running():
        assert (await batch.results()).values == [2]
        assert await single.result() == 4


async def test_a_transaction_can_add_rows_of_very_many_tenants(
    shop: Mill, sql: psycopg.Connection[Any]
) -> None:
    many = "select 'visitor-' || n from generate_series(1, 60000) n"
    with sql.transaction():
        sql.execute(f"insert into shop.people (tenant) {many}")
        held = "select count(*) from pg_locks where locktype = 'advisory'"
        assert one(sql, held)[0] <= 1_024


async def test_the_last_check_has_no_statement_timeout(
    shop: Mill, dsn: str, sql: psycopg.Connection[Any]
) -> None:
    """It reads whole tables, so it may take longer than an operator allows other statements."""
    sql.execute("""
        create table seen (timeout text);
        create or replace function batchmill.has_remains(of_tenant text) returns boolean
        language plpgsql as $$ begin
            insert into public.seen values (current_setting('statement_timeout'));
            return false;
        end $$""")
    async with shop.on(f"{dsn}?options=-cstatement_timeout%3D77s") as mill:
        await mill.tenants.erase("acme")
    assert rows(sql, "select timeout from seen") == [("0",)]


async def test_a_batch_that_is_committed_during_an_erasure_runs_no_callback(
    shop: Mill, sql: psycopg.Connection[Any]
) -> None:
    await shop.register_tasks(shop.engine.builtin_tasks)
    jobs = "select last_value from pg_sequences where sequencename = 'jobs_id_seq'"
    eraser = Eraser(shop.engine, "acme")
    async with shop.transaction() as conn:
        await shop.submit(
            "double",
            [1],
            tenant="acme",
            on_finish="note",
            notify=["https://1.1.1.1/"],
            connection=conn,
        )
        await shop.tenants.begin_erasure("acme")
        assert await eraser.run(60) is Progress.WAITING
        assert eraser.waits_for == "transactions"
    before = one(sql, jobs)
    assert await eraser.run(60) is Progress.ENDED
    assert (one(sql, jobs), mentions(sql, "acme")) == (before, [])


async def test_an_upload_in_progress_is_stopped_and_leaves_no_file(
    shop: Mill, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * 1_000_000
        begun.set()
        await may_go_on.wait()
        for _ in range(40):
            yield b"x" * 1_000_000

    upload = asyncio.create_task(shop.as_tenant("acme").artifacts.save("big", chunks()))
    await begun.wait()
    erasing = asyncio.create_task(shop.tenants.erase("acme"))
    given_up = "select state from batchmill.artifacts where tenant = 'acme'"
    await until(lambda: rows(sql, given_up) == [("gone",)])
    may_go_on.set()
    with pytest.raises(LeaseLost):
        await upload
    await erasing
    assert (files(tmp_path), mentions(sql, "acme")) == ([], [])


async def test_the_upkeep_erases_what_was_only_requested(
    shop: Mill, sql: psycopg.Connection[Any]
) -> None:
    await fill(shop, "acme", 3)
    await shop.tenants.begin_erasure("acme")
    async with shop.running():
        await until(lambda: rows(sql, "select from batchmill.erasures") == [])
    assert mentions(sql, "acme") == []


async def test_a_tenant_with_20_000_jobs_is_erased_while_workers_run(
    shop: Mill, sql: psycopg.Connection[Any]
) -> None:
    await fill(shop, "acme", 20_000)
    neighbour = await shop.as_tenant("neighbour").submit("double", range(500))
    async with shop.running():
        large = (await shop.as_tenant("acme").batches())[-1]
        await until_event(shop.batch(large.id), "job_completed")
        await shop.tenants.erase("acme")
        assert len((await neighbour.results()).values) == 500
    assert mentions(sql, "acme") == []
    assert violations(sql) == []
