"""Rows of applications are erased whatever their tables look like."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import Mill
from batchmill.controls.eraser import Eraser, Progress
from tests.erasing.app import shop_on
from tests.erasing.test_erasing import mentions
from tests.library.tools import one, rows

DEFERRED = """
create table people (id integer primary key, tenant text);
create table visits (
    person integer references people deferrable initially deferred, tenant text);
"""
CHAIN = """
create table a (id integer primary key, tenant text);
create table b (id integer primary key references a, tenant text);
create table c (id integer references b on delete restrict, tenant text);
"""
TREE = """
create table comments (
    id integer primary key, parent integer references comments, tenant text,
    body text default repeat('x', 1000));
"""
AUDITED = """
create table audit (tenant text);
create table people (id integer, tenant text);
create function record_deletion() returns trigger language plpgsql as $$ begin
    insert into shop.audit values (old.tenant);
    return old;
end $$;
create trigger recorded after delete on people for each row execute function record_deletion();
"""
PARTITIONED = """
create table people (id integer, tenant text) partition by range (id);
create table first_people partition of people for values from (0) to (100);
"""
FILLED_IN = """
create table people (id integer, tenant text);
create function fill_in() returns trigger language plpgsql as $$ begin
    new.tenant := 'acme';
    return new;
end $$;
create trigger filled_in before insert on people for each row execute function fill_in();
"""
PEOPLE = "insert into shop.people values (1, %(tenant)s)"
COMMENTS = (
    "insert into shop.comments (id, tenant) select n, %(tenant)s from generate_series(1, 200) n"
)


@pytest.mark.parametrize(
    ("tables", "statements"),
    [
        pytest.param(
            DEFERRED, [PEOPLE, "insert into shop.visits values (1, 'acme')"], id="deferred"
        ),
        pytest.param(
            CHAIN, [f"insert into shop.{each} values (1, 'acme')" for each in "abc"], id="chain"
        ),
        pytest.param(
            TREE, [COMMENTS, "update shop.comments set parent = id - 1 where id > 1"], id="tree"
        ),
        pytest.param(
            TREE, [COMMENTS, "update shop.comments set parent = 1 + id * 7 %% 200"], id="cycles"
        ),
        pytest.param(AUDITED, [PEOPLE], id="audited"),
    ],
)
async def test_rows_that_refer_to_each_other_are_erased(
    dsn: str,
    sql: psycopg.Connection[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tables: str,
    statements: list[str],
) -> None:
    monkeypatch.setattr("batchmill.controls.eraser.PAGES", 1)
    async with shop_on(dsn, tmp_path, tables) as shop:
        for statement in statements:
            sql.execute(statement.encode(), {"tenant": "acme"})
        await shop.tenants.erase("acme", timeout=60)
    assert mentions(sql, "acme") == []


@pytest.mark.parametrize(
    ("tables", "table"),
    [(PARTITIONED, "people"), (PARTITIONED, "first_people"), (FILLED_IN, "people")],
)
async def test_new_rows_of_a_tenant_that_is_being_erased_are_refused(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path, tables: str, table: str
) -> None:
    async with shop_on(dsn, tmp_path, tables) as shop:
        sql.execute("insert into shop.people values (1, 'default')")
        await shop.tenants.begin_erasure("acme")
        for statement in (
            f"insert into shop.{table} values (2, 'acme')",
            f"update shop.{table} set tenant = 'acme'",
        ):
            with pytest.raises(psycopg.DatabaseError) as refused:
                sql.execute(statement.encode())
            assert refused.value.sqlstate == "BM015"


async def test_an_erasure_waits_for_a_transaction_that_has_added_rows(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    async with shop_on(dsn, tmp_path) as shop:
        (schema,) = shop.engine.schemas
        async with shop.as_tenant("acme").transaction() as conn:
            await schema.rows(conn, "add", tenant="acme")
            with pytest.raises(TimeoutError):
                await shop.tenants.erase("acme", timeout=1)
            await erase("neighbour", shop)
        await erase("acme", shop)
        assert mentions(sql, "acme") == []


async def erase(tenant: str, shop: Mill) -> None:
    await shop.tenants.begin_erasure(tenant)
    assert await Eraser(shop.engine, tenant).run(60) is Progress.ENDED


async def test_guarding_tables_again_adds_no_second_trigger(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    triggers = "select tgrelid::regclass::text from pg_trigger where tgname = 'batchmill_erasure'"
    async with shop_on(dsn, tmp_path):
        sql.execute("select batchmill.guard_tables()")
    assert sorted(rows(sql, triggers)) == [("shop.people",), ("shop.visits",)]
    assert one(sql, "select count(*) from shop.rules") == (0,)
