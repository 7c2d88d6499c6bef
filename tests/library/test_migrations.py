"""The schema: installed only when asked, refused if incompatible, the same after every upgrade."""

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from batchmill import Mill, SchemaError
from batchmill.store import migrate
from tests.invariants import violations
from tests.library.tools import echo_on, one, rows

pytestmark = pytest.mark.all_partitions

VERSIONS = [migration.version for migration in migrate.migrations()]

# Everything in the schema, as text that does not depend on object ids. The daily partitions are
# left out, because the upkeep creates them.
CATALOGUE = """
with own as (select oid from pg_namespace where nspname = 'batchmill')
select 'column', c.relname || '.' || a.attname, concat_ws(' ', format_type(a.atttypid, a.atttypmod),
    a.attnotnull, a.attidentity, a.attgenerated, pg_get_expr(d.adbin, d.adrelid))
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace in (select oid from own) and c.relkind in ('r', 'p', 'c')
    and c.relname !~ '_[0-9]{8}$'
union all
select 'relation', relname,
    concat_ws(' ', relkind, relpersistence, reloptions, pg_get_partkeydef(oid))
from pg_class where relnamespace in (select oid from own) and relname !~ '_[0-9]{8}'
union all
select 'index', indexname, indexdef from pg_indexes
where schemaname = 'batchmill' and tablename !~ '_[0-9]{8}$'
union all
select 'constraint', concat_ws(' ', conrelid::regclass, conname), pg_get_constraintdef(oid)
from pg_constraint where connamespace in (select oid from own)
    and conrelid::regclass::text !~ '_[0-9]{8}$'
union all
select 'trigger', tgname, pg_get_triggerdef(oid) from pg_trigger
where not tgisinternal and tgrelid in (
    select oid from pg_class where relnamespace in (select oid from own))
union all
select 'function', oid::regprocedure::text, pg_get_functiondef(oid)
from pg_proc where pronamespace in (select oid from own)
union all
select 'enum', t.typname, string_agg(e.enumlabel, ' ' order by e.enumsortorder)
from pg_type t join pg_enum e on e.enumtypid = t.oid
where t.typnamespace in (select oid from own) group by 2
union all
select 'version', version::text, '' from batchmill.schema_version
order by 1, 2, 3
"""


# A batch with one completed, one ready and one scheduled job. Its events are in the partition of
# their day; its completed job is in the default partition.
VERSION_1 = """
set search_path = batchmill;
create table events_20990102 partition of events for values from ('2099-01-02') to ('2099-01-03');
insert into tasks (name, retry, registered_at) values ('echo', '{}', now());
insert into batches (id, tenant, task, state, total, completed, last_event, created_at, started_at,
    expires_at, expires_on)
values ('01234567-89ab-4cde-8f01-23456789abcd', 'default', 'echo', 'processing', 3, 1, 3, now(), now(),
    '2099-01-02', '2099-01-02');
insert into lanes (task, tenant, batch_id, ready_at)
select task, tenant, id, now() from batches;
insert into jobs (batch_id, position, lane_id, task, tenant, state, priority, run_at, payload, created_at,
    expires_on)
select b.id, n, l.id, 'echo', 'default', case n when 1 then 'ready' else 'scheduled' end::job_state,
    n * 100000, now(), to_json(n + 1), now(), '2099-01-02'
from batches b cross join lanes l cross join generate_series(1, 2) n;
insert into finished (id, batch_id, position, task, tenant, state, priority, run_at, attempt, snoozes,
    started_at, finished_at, payload, result, created_at, expires_on)
select nextval('jobs_id_seq'), id, 0, 'echo', 'default', 'completed', 0, now(), 1, 0, now(), now(), '1',
    '1', now(), '2099-01-02' from batches;
insert into events (batch_id, number, tenant, type, job_id, position, data, at, expires_on)
select f.batch_id, e.*, now(), f.expires_on from finished f cross join lateral (values
    (1, 'default', 'batch_started', null, null, '{"total": 3}'::json),
    (2, 'default', 'job_started', f.id, 0, '{"task": "echo", "attempt": 1}'),
    (3, 'default', 'job_completed', f.id, 0, '{"task": "echo", "attempt": 1}')) e;
"""
# A batch of 600 jobs. The first 300 are finished and have released a file that all items name. The
# file has another use of unknown items. The first job has also released a file that it made.
VERSION_19 = """
set search_path = batchmill;
insert into batches (id, tenant, task, state, total, completed, created_at, started_at, expires_at,
    expires_on)
values ('01234567-89ab-4cde-8f01-23456789abcd', 'default', 'echo', 'processing', 600, 300, now(),
    now(), '2099-01-02', '2099-01-02');
insert into lanes (task, tenant, batch_id, ready_at) select task, tenant, id, now() from batches;
insert into jobs (batch_id, position, lane_id, task, tenant, state, run_at, payload, created_at,
    expires_on)
select b.id, n, l.id, 'echo', 'default', 'ready', now(), '1', now(), '2099-01-02'
from batches b cross join lanes l cross join generate_series(300, 599) n;
insert into finished (id, batch_id, position, task, tenant, state, priority, run_at, attempt, snoozes,
    started_at, finished_at, payload, result, created_at, expires_on)
select nextval('jobs_id_seq'), id, n, 'echo', 'default', 'completed', 0, now(), 1, 0, now(), now(),
    '1', '1', now(), '2099-01-02'
from batches cross join generate_series(0, 299) n;
insert into artifacts (id, tenant, kind, state, job_id, fence, name, media_type, sha256, storage_key,
    created_at, written_at, expires_at)
select f.id::uuid, 'default', f.kind, 'kept', j.id, j.id, 'f', 'text/plain', repeat('a', 64), f.id,
    now(), now(), '2099-01-02'
from (values ('11111111-0000-4000-8000-000000000000', 'input'),
    ('22222222-0000-4000-8000-000000000000', 'output')) as f (id, kind)
left join finished j on f.kind = 'output' and j.position = 0;
insert into artifact_uses (artifact_id, tenant, batch_id, job_id, items)
select a.id, 'default', b.id, null, '{[0,600)}'::int4multirange from artifacts a, batches b
where a.kind = 'input'
union all select id, 'default', null, 1234567, null from artifacts where kind = 'input';
insert into artifact_releases (artifact_id, tenant, batch_id, job_id)
select a.id, 'default', f.batch_id, f.id from artifacts a join finished f
    on a.kind = 'input' or f.id = a.job_id;
"""
OLD_EVENTS = """select batch_id, number, tenant, type, job_id, position, data::text, at, expires_on
    from batchmill.events order by number"""


def catalogue(dsn: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as conn:
        return rows(conn, CATALOGUE)


async def upgrade(dsn: str) -> list[int]:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        return [migration.version for migration in await migrate.upgrade(conn)]


def install_old(dsn: str, version: int) -> None:
    """Creates the tables of an earlier version, without its functions."""
    with psycopg.connect(dsn) as conn:
        for migration in migrate.migrations()[:version]:
            conn.execute(migrate.step(migration).encode())


def has_schema(dsn: str) -> bool:
    with psycopg.connect(dsn) as conn:
        return one(conn, "select to_regnamespace('batchmill') is not null") == (True,)


# Installation


async def test_a_database_is_not_migrated_unless_asked(empty_dsn: str) -> None:
    for use in (
        lambda mill: mill.open(),
        lambda mill: mill.enqueue("echo", 1),
        lambda mill: mill.limits.all(),
        lambda mill: mill.worker().run(),
    ):
        mill = Mill(empty_dsn)
        echo_on(mill)
        with pytest.raises(SchemaError, match="Run `batchmill migrate up`"):
            await use(mill)
    assert not has_schema(empty_dsn)


async def test_a_database_is_migrated_when_asked(empty_dsn: str) -> None:
    mill = Mill(empty_dsn, migrate=True)
    echo = echo_on(mill)
    async with mill.running():
        assert (await (await mill.submit(echo, [1, 2])).results()).values == [1, 2]
    async with Mill(empty_dsn) as again:
        await again.enqueue("echo", 1)


# Compatibility


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("delete from batchmill.schema_version", "no batchmill schema.*Run `batchmill migrate up`"),
        (
            "insert into batchmill.schema_version values (1000)",
            "1000.*Upgrade batchmill on this machine",
        ),
        ("drop schema batchmill cascade", "no batchmill schema.*Run `batchmill migrate up`"),
    ],
    ids=["no version", "too new", "gone"],
)
async def test_an_incompatible_schema_is_refused_with_instructions(
    dsn: str, sql: psycopg.Connection, change: str, sentence: str
) -> None:
    sql.execute(change.encode())
    for use in (Mill.open, lambda mill: mill.worker().run()):
        mill = Mill(dsn)
        echo_on(mill)
        with pytest.raises(SchemaError, match=sentence):
            await use(mill)


async def test_an_old_schema_is_refused_with_instructions(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = migrate.Migration(VERSIONS[-1] + 1, "newer", "select 1;")
    monkeypatch.setattr(migrate, "migrations", lambda: (*MIGRATIONS, newer))
    with pytest.raises(
        SchemaError, match=f"version {VERSIONS[-1]}, .* needs version {newer.version}. Run"
    ):
        await Mill(dsn).open()


async def test_a_newer_schema_is_not_changed_even_when_asked(
    dsn: str, sql: psycopg.Connection
) -> None:
    before = catalogue(dsn)
    sql.execute("insert into batchmill.schema_version values (1000)")
    with pytest.raises(SchemaError, match="Upgrade batchmill on this machine"):
        await Mill(dsn, migrate=True).open()
    sql.execute("delete from batchmill.schema_version where version = 1000")
    assert catalogue(dsn) == before


async def test_a_schema_that_is_dropped_during_use_raises_a_schema_error(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await mill.enqueue(echo, 1)
    sql.execute("drop schema batchmill cascade")
    with pytest.raises(SchemaError, match="Run `batchmill migrate up`"):
        await mill.enqueue(echo, 1)


# Upgrades


MIGRATIONS = migrate.migrations()


@pytest.mark.parametrize("version", VERSIONS)
async def test_upgrades_from_every_version_give_the_same_schema(
    dsn: str, empty_dsn: str, version: int
) -> None:
    install_old(empty_dsn, version)
    assert await upgrade(empty_dsn) == VERSIONS[version:]
    assert catalogue(empty_dsn) == catalogue(dsn)


async def test_a_batch_of_version_1_survives_the_upgrade_and_completes(empty_dsn: str) -> None:
    install_old(empty_dsn, 1)
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute(VERSION_1)
        before = rows(conn, OLD_EVENTS)
        assert await upgrade(empty_dsn) == VERSIONS[1:]
        assert rows(conn, OLD_EVENTS) == before
        mill = Mill(empty_dsn)
        echo = echo_on(mill)
        async with mill.running():
            batch = mill.batch(one(conn, "select id from batchmill.batches")[0])
            assert (await batch.results()).values == [1, 2, 3]
            numbers = [event.number async for event in batch.events()]
            assert numbers == list(range(1, len(numbers) + 1))
            await (await mill.enqueue(echo, 4)).result()
        assert violations(conn) == []


async def test_releases_of_version_19_take_effect(empty_dsn: str) -> None:
    install_old(empty_dsn, 19)
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute(VERSION_19)
        await upgrade(empty_dsn)
        assert one(conn, "select apply_releases(10)") == (2,)
        uses = "select block, items::text from artifact_uses order by batch_id, block"
        assert rows(conn, uses) == [(1, "{[300,512)}"), (2, "{[512,600)}"), (0, None)]
        states = "select kind, state from artifacts order by kind"
        assert rows(conn, states) == [("input", "kept"), ("output", "gone")]
        assert rows(conn, "select from artifact_releases") == []


async def test_stored_bytes_of_version_5_are_added_up_by_group(empty_dsn: str) -> None:
    install_old(empty_dsn, 5)
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute(
            "insert into batchmill.usage (tenant, minute, day, stored_bytes) "
            "values ('a', now(), now(), 1), ('a/b', now(), now(), 2), ('c', now(), now(), 4)"
        )
        await upgrade(empty_dsn)
        stored = "select name, stored_bytes from batchmill.storage_groups order by name"
        assert rows(conn, stored) == [("a", 3), ("c", 4)]


async def test_versions_are_numbered_without_gaps() -> None:
    assert list(range(1, len(VERSIONS) + 1)) == VERSIONS


async def test_upgrading_again_changes_nothing(dsn: str) -> None:
    before = catalogue(dsn)
    assert await upgrade(dsn) == []
    assert catalogue(dsn) == before


async def test_functions_that_changed_without_a_new_version_are_replaced(
    dsn: str, sql: psycopg.Connection
) -> None:
    before = catalogue(dsn)
    sql.execute(
        """create or replace function batchmill.day_of(moment timestamptz) returns date
        language sql immutable as $$ select 'epoch'::date $$"""
    )
    sql.execute("update batchmill.schema_version set functions = 'of another release'")
    assert await upgrade(dsn) == []
    assert catalogue(dsn) == before


def in_one_statement(dsn: str, script: str) -> None:
    """One text in one implicit transaction, as programs do it."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(script.encode())


def in_a_transaction(dsn: str, script: str) -> None:
    """In an explicit transaction, as Alembic and Django do it."""
    with psycopg.connect(dsn) as conn:
        conn.execute("select 1")
        conn.execute(script.encode())
        # The next statements of the same migration must still find their tables.
        assert one(conn, "show search_path") == ("public",)


@pytest.mark.parametrize("apply", [in_one_statement, in_a_transaction], ids=lambda f: f.__name__)
async def test_the_printed_script_creates_the_same_schema(
    dsn: str, empty_dsn: str, apply: Callable[[str, str], None]
) -> None:
    apply(empty_dsn, migrate.script())
    assert catalogue(empty_dsn) == catalogue(dsn)
    async with Mill(empty_dsn) as mill:
        await mill.enqueue(echo_on(mill), 1)


async def test_the_printed_script_can_be_piped_into_psql(
    server: Any, dsn: str, empty_dsn: str
) -> None:
    psql = server.programs / "psql"
    if not psql.exists():
        pytest.skip("This PostgreSQL has no psql.")
    piped = await asyncio.create_subprocess_exec(
        *(psql, "-X", "-q", "--single-transaction", "-v", "ON_ERROR_STOP=1", empty_dsn),
        stdin=asyncio.subprocess.PIPE,
    )
    await piped.communicate(migrate.script().encode())
    assert piped.returncode == 0
    assert catalogue(empty_dsn) == catalogue(dsn)


async def test_concurrent_upgrades_apply_each_migration_once(dsn: str, empty_dsn: str) -> None:
    applied = await asyncio.gather(*(upgrade(empty_dsn) for _ in range(6)))
    assert sorted(applied) == [[]] * 5 + [VERSIONS]
    assert catalogue(empty_dsn) == catalogue(dsn)


async def test_a_failed_upgrade_leaves_nothing(
    empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = migrate.Migration(VERSIONS[-1] + 1, "broken", "create table batchmill.jobs ();")
    monkeypatch.setattr(migrate, "migrations", lambda: (*MIGRATIONS, broken))
    with pytest.raises(psycopg.errors.DuplicateTable):
        await upgrade(empty_dsn)
    assert not has_schema(empty_dsn)


async def test_nothing_is_created_outside_the_schema(empty_dsn: str) -> None:
    await upgrade(empty_dsn)
    with psycopg.connect(empty_dsn) as conn:
        outside = """select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace
            where nspname = 'public'"""
        assert one(conn, outside) == (0,)
        assert rows(conn, "select extname from pg_extension") == [("plpgsql",)]
