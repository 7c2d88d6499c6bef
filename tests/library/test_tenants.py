"""What a tenant sees and may do, also if the owner of the schema is not a superuser."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from batchmill import Client, ConfigurationError, InvalidInput, Mill, NotFound, UnknownTask
from batchmill.store import migrate
from tests.invariants import violations
from tests.library.tools import echo_on, one, rows, until_event

TENANT_TABLES = """
    select c.relname, c.relrowsecurity and c.relforcerowsecurity,
        c.relispartition or exists (
            select from pg_policy p where p.polrelid = c.oid and p.polname = 'tenant'
              and p.polqual is not null and p.polwithcheck is not null)
    from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
    where c.relnamespace = 'batchmill'::regnamespace and c.relkind in ('r', 'p')"""

RECORD_ROLES = """
    create table roles (n serial, role text, tenant text);
    create function record_role() returns trigger language plpgsql as $$
    begin
        insert into public.roles (role, tenant)
        values (current_setting('role'), coalesce(current_setting('batchmill.tenant', true), ''));
        return null;
    end $$;
    create trigger record_role after insert on batchmill.jobs for each row execute function record_role()"""


@pytest.mark.all_partitions
def test_every_table_with_a_tenant_has_row_level_security(sql: psycopg.Connection[Any]) -> None:
    tables = rows(sql, TENANT_TABLES)
    assert len(tables) > 70
    assert [name for name, is_forced, has_policy in tables if not (is_forced and has_policy)] == []


def test_the_tenant_role_owns_nothing_and_bypasses_nothing(
    sql: psycopg.Connection[Any],
) -> None:
    about = """select rolsuper, rolbypassrls, rolcanlogin, rolcreaterole,
        (select count(*) from pg_class where relowner = r.oid)
        from pg_roles r where rolname = 'batchmill_tenant'"""
    assert one(sql, about) == (False, False, False, False, 0)


@asynccontextmanager
async def two_tenants(mill: Mill) -> AsyncIterator[tuple[Client, Client, Any, Any]]:
    echo = echo_on(mill)
    ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
    yield ada, bob, await ada.submit(echo, [1, 2]), await bob.submit(echo, [3])


async def test_a_tenant_sees_only_its_own_work(owned: Mill) -> None:
    async with two_tenants(owned) as (ada, bob, hers, his):
        assert (await hers.get()).tenant == "ada"
        assert [b.id for b in await ada.batches()] == [hers.id]
        assert [b.id for b in await bob.batches()] == [his.id]
        job = (await bob.jobs(his.id))[0].id
        assert (await bob.job(job).get()).payload == 3
        with pytest.raises(NotFound):
            await ada.batch(his.id).get()
        with pytest.raises(NotFound):
            await ada.job(job).get()
        assert await ada.jobs(his.id) == []


async def test_a_tenant_changes_only_its_own_work(owned: Mill) -> None:
    async with two_tenants(owned) as (ada, bob, hers, his):
        (job,) = await bob.jobs(his.id)
        foreign = [ada.batch(his.id).cancel, ada.batch(his.id).retry, ada.batch(his.id).delete]
        for attempt in [*foreign, ada.job(job.id).cancel, ada.job(job.id).retry]:
            with pytest.raises(NotFound):
                await attempt()
        assert (await his.get()).cancelled_at is None
        assert await hers.cancel() == 2
        await hers.delete()
        assert await bob.job(job.id).cancel()


async def test_jobs_of_tenants_complete_and_each_tenant_sees_only_its_events(owned: Mill) -> None:
    async with two_tenants(owned) as (ada, _, hers, his), owned.running():
        await until_event(hers, "batch_completed")
        assert (await hers.results()).values == [1, 2]
        assert (await his.results()).values == [3]
        with pytest.raises(NotFound):
            await until_event(ada.batch(his.id), "batch_completed")


async def test_a_client_of_a_tenant_submits_only_for_that_tenant(mill: Mill) -> None:
    echo = echo_on(mill)
    ada = mill.as_tenant("ada")
    batch = await ada.submit(echo, [1], tenant="bob")
    job = await ada.enqueue(echo, 2, tenant="bob", delay=60)
    assert [(await batch.get()).tenant, (await job.get()).tenant] == ["ada", "ada"]


async def test_idempotency_keys_are_separate_for_each_tenant(mill: Mill) -> None:
    echo = echo_on(mill)
    ids = {
        (await mill.as_tenant(who).submit(echo, [who], idempotency_key="k")).id
        for who in ("ada", "bob")
    }
    assert len(ids) == 2


@pytest.mark.parametrize(
    "statement",
    [
        "select * from {table}",
        "update {table} set tenant = 'ada'",
        "delete from {table}",
    ],
)
async def test_the_tenant_role_without_a_tenant_reaches_no_rows(
    statement: str, mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    async with two_tenants(mill):
        for table in ("batches", "jobs", "lanes", "artifacts", "api_keys", "finished"):
            for tenant in ("", None):
                assert rows_affected(sql, statement.format(table=f"batchmill.{table}"), tenant) == 0


def rows_affected(sql: psycopg.Connection[Any], statement: str, tenant: str | None) -> int:
    """The number of rows that the statement affects in the tenant role; 0 if it is refused."""
    with sql.transaction(force_rollback=True):
        sql.execute("set local role batchmill_tenant")
        if tenant is not None:
            sql.execute("select set_config('batchmill.tenant', %s, true)", [tenant])
        try:
            with sql.transaction():
                return sql.execute(statement.encode()).rowcount
        except psycopg.errors.InsufficientPrivilege:
            return 0


async def test_functions_refuse_the_tenant_role_without_a_tenant(mill: Mill) -> None:
    echo = echo_on(mill)
    with pytest.raises(InvalidInput, match="No tenant is set"):
        await mill.as_tenant("").submit(echo, [1])


async def test_a_tenant_cannot_claim_jobs_or_change_limits(mill: Mill) -> None:
    ada = mill.as_tenant("ada")
    for call in (
        ada.database.value(
            "claim_jobs",
            worker=1,
            tasks=["echo"],
            wants=[1],
            want=1,
            prefetch=0,
            since="0",
            last_tenants=[""],
            last_tenant="",
            seed=0,
        ),
        ada.limits.set("system", slots=0),
        ada.limits.pause("task:echo"),
    ):
        with pytest.raises(ConfigurationError, match="refuses this to the database role"):
            await call


async def test_a_tenant_submits_in_its_role(mill: Mill, sql: psycopg.Connection[Any]) -> None:
    sql.execute(RECORD_ROLES)
    ada, echo = mill.as_tenant("ada"), echo_on(mill)
    await ada.submit(echo, [1])
    await ada.enqueue(echo, 2)
    await mill.submit(echo, [3])
    assert rows(sql, "select role, tenant from roles order by n") == [
        ("batchmill_tenant", "ada"),
        ("batchmill_tenant", "ada"),
        ("none", ""),
    ]


async def test_the_role_of_a_tenant_does_not_stay_on_a_connection(mill: Mill) -> None:
    async with two_tenants(mill) as (ada, _, hers, his):
        await ada.batch(hers.id).get()
        await ada.enqueue("echo", 4)
        with pytest.raises(UnknownTask):
            await ada.submit("missing", [5])
        assert (await mill.batch(his.id).get()).tenant == "bob"
        current = "select current_user <> 'batchmill_tenant' as is_whole"
        async with mill.database.connection() as conn:
            assert (await (await conn.execute(current)).fetchone()) == {"is_whole": True}


async def test_limits_count_the_jobs_of_all_tenants(owned: Mill, owner: str) -> None:
    """A call of a tenant that updates a limit counts the jobs of all tenants."""
    async with two_tenants(owned) as (_, bob, _, his):
        await owned.limits.set("system", slots=2)
        with psycopg.connect(owner, autocommit=True) as conn:
            worker = one(conn, "select batchmill.register_worker('w', '1', '{echo}', 9, 60)")[0]
            claim = "select batchmill.claim_jobs(%s, '{echo}', '{9}', 9, 0, '0')"
            assert len(one(conn, claim, worker)[0]["claimed"]["jobs"][0]) == 2
            await bob.batch(his.id).cancel()
            assert one(conn, "select running from batchmill.limits where name = 'system'") == (2,)
            assert violations(conn) == []


async def test_the_schema_can_be_installed_without_the_right_to_create_roles(
    empty_dsn: str,
) -> None:
    """The library works without the tenant role; only the service needs it."""
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute("create schema batchmill")
        script = migrate.script().replace("batchmill_tenant", "batchmill_nobody")
        conn.execute("create role plain_user login")
        try:
            conn.execute(f"grant create on database {conn.info.dbname} to plain_user".encode())
            conn.execute("alter schema batchmill owner to plain_user")
            conn.execute("set role plain_user")
            with conn.transaction():
                conn.execute(script.encode())
            assert one(conn, "select batchmill.make_tenant_role()") == (False,)
        finally:
            conn.execute("reset role")
            conn.execute("drop owned by plain_user cascade")
            conn.execute("drop role plain_user")
