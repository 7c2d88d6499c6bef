"""The application's own tables: their guards, their keys, and servers of the previous version."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from apps.calls.search import moments_of
from apps.calls.tables import CALLS
from batchmill import Mill
from tests.library.tools import one, rows

TABLES = ("calls", "operations", "sentences", "transcripts")
GUARDED = """select c.relname, c.relrowsecurity, c.relforcerowsecurity,
    array(select p.polname::text from pg_policy p where p.polrelid = c.oid order by 1)
    from pg_class c where c.relnamespace = 'calls'::regnamespace and c.relkind = 'r'
      and exists (select from pg_attribute where attrelid = c.oid and attname = 'tenant') order by 1"""
OPEN = """select c.relname from pg_class c where c.relnamespace = 'calls'::regnamespace
    and has_table_privilege('batchmill_tenant', c.oid, 'select') and c.relkind = 'r' order by 1"""
FOREIGN_KEYS = """select conrelid::regclass::text, exists (
        select from pg_attribute a
        where a.attrelid = c.conrelid and a.attnum = any (c.conkey) and a.attname = 'tenant')
    from pg_constraint c where connamespace = 'calls'::regnamespace and contype = 'f' order by 1"""

# Statements of the version whose tables are those of the first migration.
OLD_ADD_CALL = """insert into calls.calls (id, tenant, upload_id, name, provider, language)
    values (%(id)s, 'acme', gen_random_uuid(), 'call', 'local', 'en') on conflict do nothing"""
OLD_KEEP_TRANSCRIPT = """with kept as (
        insert into calls.transcripts (call_id, tenant, configuration, words)
        select c.id, c.tenant, 'english'::regconfig, to_tsvector('english', 'My motors.')
        from calls.calls c where c.id = %(id)s
        on conflict (call_id) do update set configuration = excluded.configuration, words = excluded.words
        returning call_id, tenant)
    insert into calls.sentences (call_id, number, tenant, speaker, start_at, end_at, sentence)
    select k.call_id, 1, k.tenant, 1, 0, 1, 'My motors.' from kept k
    on conflict (call_id, number) do nothing"""
OLD_KEEP_OPERATION = """with kept as (
        insert into calls.operations (call_id, number, tenant, provider, operation)
        select id, 1, tenant, 'local', '7' from calls.calls where id = %(id)s
        on conflict (call_id, number) do update set operation = operations.operation
        returning operation)
    select operation from kept"""
OLD_STATEMENTS = (OLD_ADD_CALL, OLD_KEEP_TRANSCRIPT, OLD_KEEP_OPERATION)


@pytest.fixture
async def mill(dsn: str) -> AsyncIterator[Mill]:
    async with Mill(dsn, migrate=True, schemas=[CALLS]) as mill:
        yield mill


def run_old_statements(sql: psycopg.Connection[Any], id: UUID) -> None:
    for statement in OLD_STATEMENTS:
        sql.execute(statement.encode(), {"id": id})


async def found(mill: Mill, call: UUID, words: str) -> list[str]:
    moments = await moments_of(mill.as_tenant("acme"), [call], words)
    return [moment["text"] for moment in moments[call]]


async def test_row_level_security_is_forced_on_every_table(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    assert rows(sql, GUARDED) == [(name, True, True, ["engine", "tenant"]) for name in TABLES]
    assert rows(sql, OPEN) == [(name,) for name in TABLES], "Tenants can read no other table."


async def test_foreign_keys_include_the_organisation(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    """Their checks ignore row-level security."""
    assert rows(sql, FOREIGN_KEYS) == [(f"calls.{name}", True) for name in TABLES[1:]]
    run_old_statements(sql, id := uuid4())
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        sql.execute("insert into calls.operations values (%s, 2, 'another', 'local', '8')", [id])


async def test_servers_of_the_previous_version_can_write_to_the_new_tables(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    id = uuid4()
    for _ in range(2):
        run_old_statements(sql, id)
    assert await found(mill, id, "motor") == ["My motors."]
    assert one(sql, "select count(*) from calls.operations") == (1,)


async def test_calls_of_the_previous_version_can_be_searched_and_deleted(
    dsn: str, sql: psycopg.Connection[Any]
) -> None:
    first, *_ = CALLS.migrations
    sql.execute("create schema calls; set search_path = calls, public")
    sql.execute(first.sql.encode())
    sql.execute("set search_path to default")
    sql.execute("insert into batchmill.application_versions values ('calls', 1)")
    run_old_statements(sql, id := uuid4())
    async with Mill(dsn, migrate=True, schemas=[CALLS]) as mill:
        assert await found(mill, id, "motor") == ["My motors."]
        assert await found(mill, id, "engine") == []
        await CALLS.rows(mill, "delete_call", id=id)
    for table in TABLES:
        assert rows(sql, f"select from calls.{table}") == []
