"""An application's own tables: migrated with batchmill's, and separate for each tenant."""

import asyncio
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import ConfigurationError, Mill, Schema, SchemaError
from batchmill.store import migrate
from tests.library.test_tenants import TENANT_TABLES
from tests.library.tools import one, rows

MEMBERS = """
create table members (
    id bigint generated always as identity primary key,
    tenant text not null,
    name text not null
);
create table sports (name text primary key);
"""
QUERIES = """
-- name: add_member
insert into club.members (tenant, name)
values (coalesce(batchmill.seen_tenant(), %(tenant)s), %(name)s) returning id

-- name: members
select tenant, name from club.members order by id

-- name: rename_all
update club.members set name = %(name)s

-- name: claim_for
insert into club.members (tenant, name) values (%(tenant)s, 'mine')

-- name: sports
select name from club.sports
"""
VERSIONS = "select version from batchmill.application_versions where schema = 'club' order by 1"


class Club:
    """The folder of an application's SQL files."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "migrations").mkdir()
        (folder / "queries").mkdir()
        (folder / "queries" / "club.sql").write_text(QUERIES)
        self.migrate(1, "members", MEMBERS)

    def migrate(self, number: int, name: str, sql: str) -> None:
        (self.folder / "migrations" / f"{number:04}_{name}.sql").write_text(sql)

    @property
    def schema(self) -> Schema:
        return Schema("club", self.folder)


@pytest.fixture
def club(tmp_path: Path) -> Club:
    return Club(tmp_path)


async def test_the_tables_of_an_application_are_created_with_batchmills(
    empty_dsn: str, club: Club
) -> None:
    async with Mill(empty_dsn, migrate=True, schemas=[club.schema]) as mill:
        assert await club.schema.rows(mill, "members") == []
    club.migrate(2, "level", "alter table members add column level integer;")
    async with Mill(empty_dsn, migrate=True, schemas=[club.schema]):
        pass
    with psycopg.connect(empty_dsn) as conn:
        assert rows(conn, VERSIONS) == [(1,), (2,)]
        assert rows(conn, "select level from club.members") == []


async def test_a_database_without_the_tables_of_the_application_is_refused(
    dsn: str, club: Club
) -> None:
    with pytest.raises(SchemaError, match='"club" is version 0, .* needs version 1'):
        await Mill(dsn, schemas=[club.schema]).open()
    async with Mill(dsn, migrate=True, schemas=[club.schema]), Mill(dsn, schemas=[club.schema]):
        pass


async def test_a_process_of_the_previous_version_works_with_newer_tables(
    dsn: str, club: Club
) -> None:
    previous = club.schema
    assert previous.newest == 1
    club.migrate(2, "level", "alter table members add column level integer;")
    async with Mill(dsn, migrate=True, schemas=[club.schema]):
        async with Mill(dsn, schemas=[previous]) as mill:
            await previous.row(mill, "add_member", tenant="ada", name="Ada")
        async with Mill(dsn, migrate=True, schemas=[previous]) as mill:
            assert len(await previous.rows(mill, "members")) == 1


async def test_concurrent_upgrades_apply_each_migration_of_an_application_once(
    empty_dsn: str, club: Club
) -> None:
    async def up() -> list[str]:
        async with await psycopg.AsyncConnection.connect(empty_dsn, autocommit=True) as conn:
            return [m.schema for m in await migrate.upgrade(conn, [club.schema])]

    applied = await asyncio.gather(*(up() for _ in range(4)))
    assert sum("club" in each for each in applied) == 1


async def test_a_failed_migration_of_an_application_changes_nothing(
    dsn: str, sql: psycopg.Connection[Any], club: Club
) -> None:
    club.migrate(2, "broken", "create table other (); create table members ();")
    with pytest.raises(psycopg.errors.DuplicateTable):
        await Mill(dsn, migrate=True, schemas=[club.schema]).open()
    assert rows(sql, VERSIONS) == []
    assert one(sql, "select to_regnamespace('club')") == (None,)


async def test_an_upgrade_over_several_versions_locks_tables_that_it_creates(
    dsn: str, sql: psycopg.Connection[Any], club: Club
) -> None:
    """The last statement of a file needs no semicolon."""
    async with Mill(dsn, migrate=True, schemas=[club.schema]):
        pass
    club.migrate(2, "teams", "create table teams (name text primary key)")
    club.migrate(
        3, "captain", "-- Locks: members, teams\nalter table teams add column captain text"
    )
    async with Mill(dsn, migrate=True, schemas=[club.schema]):
        assert rows(sql, VERSIONS) == [(1,), (2,), (3,)]
        assert rows(sql, "select captain from club.teams") == []


async def test_a_migration_of_an_application_waits_for_locks_for_a_bounded_time(
    dsn: str, club: Club, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "PAUSE_SECONDS", 0.0)
    async with Mill(dsn, migrate=True, schemas=[club.schema]):
        pass
    club.migrate(2, "level", "-- Locks: members\nalter table members add column level integer;")
    with psycopg.connect(dsn) as busy:
        busy.execute("lock table club.members in row exclusive mode")
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
            with pytest.raises(SchemaError, match="nothing was changed"):
                await migrate.upgrade(conn, [club.schema], wait=0.2)
            busy.rollback()
            assert [m.version for m in await migrate.upgrade(conn, [club.schema])] == [2]


async def test_the_printed_script_of_an_application_creates_its_tables(
    dsn: str, sql: psycopg.Connection[Any], club: Club
) -> None:
    with sql.transaction():
        sql.execute(migrate.application_script(club.schema).encode())
        assert one(sql, "show search_path") == ("public",)
    async with Mill(dsn, schemas=[club.schema]) as mill:
        assert await club.schema.rows(mill, "members") == []


@pytest.mark.parametrize("name", ["batchmill", "public", "pg_club", "Club", "a-b", "", "x" * 64])
def test_a_schema_needs_a_name_of_its_own(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="name of a schema"):
        Schema(name, tmp_path)


def test_migrations_are_numbered_without_gaps(club: Club) -> None:
    club.migrate(3, "gap", "select 1")
    with pytest.raises(ConfigurationError, match="without gaps: 0001_members.sql, 0003_gap.sql"):
        _ = club.schema.migrations
    (club.folder / "migrations" / "2.sql").touch()
    with pytest.raises(ConfigurationError, match=re.escape("not 2.sql")):
        _ = club.schema.migrations


# Tenants


async def test_every_table_of_an_application_with_a_tenant_has_row_level_security(
    owned: Mill, owner: str, club: Club
) -> None:
    """As for the tables of batchmill, and also for a table that a later migration creates."""
    async with Mill(owner, migrate=True, schemas=[club.schema]):
        pass
    club.migrate(2, "teams", "create table teams (tenant text); create table rules (name text);")
    async with Mill(owner, migrate=True, schemas=[club.schema]):
        pass
    with psycopg.connect(owner) as conn:
        catalogue = TENANT_TABLES.replace("'batchmill'", "'club'")
        assert rows(conn, catalogue + " order by 1") == [
            ("members", True, True),
            ("teams", True, True),
        ]


async def test_a_table_that_was_created_outside_a_migration_is_guarded_by_the_next_upgrade(
    dsn: str, sql: psycopg.Connection[Any], club: Club
) -> None:
    async with Mill(dsn, migrate=True, schemas=[club.schema]):
        pass
    sql.execute("create table club.teams (tenant text)")
    async with Mill(dsn, migrate=True):
        pass
    assert ("teams", True, True) in rows(sql, TENANT_TABLES.replace("'batchmill'", "'club'"))


async def test_a_tenant_sees_and_changes_only_its_rows_of_an_application(
    owner: str, club: Club
) -> None:
    schema = club.schema
    async with Mill(owner, migrate=True, schemas=[schema]) as mill:
        ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
        await schema.row(ada, "add_member", tenant=None, name="Ada")
        await schema.row(bob, "add_member", tenant=None, name="Bob")
        await schema.row(mill, "add_member", tenant="eve", name="Eve")
        assert await schema.rows(ada, "members") == [{"tenant": "ada", "name": "Ada"}]
        await schema.rows(ada, "rename_all", name="Grace")
        assert [row["name"] for row in await schema.rows(mill, "members")] == [
            *("Grace", "Bob", "Eve")
        ]
        with pytest.raises(ConfigurationError, match="row-level security"):
            await schema.rows(ada, "claim_for", tenant="bob")
        with pytest.raises(ConfigurationError, match="sports"):
            await schema.rows(ada, "sports")
        assert await schema.rows(mill.as_tenant("nobody"), "members") == []


async def test_an_application_can_take_a_grant_back(dsn: str, club: Club) -> None:
    club.migrate(2, "open", "grant select on sports to batchmill_tenant;")
    async with Mill(dsn, migrate=True, schemas=[club.schema]):
        pass
    club.migrate(3, "close", "revoke insert on members from batchmill_tenant;")
    schema = club.schema
    async with Mill(dsn, migrate=True, schemas=[schema]):
        pass
    async with Mill(dsn, migrate=True, schemas=[schema]) as mill:
        ada = mill.as_tenant("ada")
        assert await schema.rows(ada, "sports") == []
        with pytest.raises(ConfigurationError, match="members"):
            await schema.row(ada, "add_member", tenant=None, name="Ada")


async def test_queries_join_the_transaction_of_a_submit(dsn: str, club: Club) -> None:
    schema = club.schema
    async with Mill(dsn, migrate=True, schemas=[schema]) as mill:

        @mill.task(entry=True)
        async def greet(name: str) -> str:
            return name

        ada = mill.as_tenant("ada")
        with pytest.raises(RuntimeError):
            async with ada.transaction() as conn:
                await schema.value(conn, "add_member", tenant=None, name="Ada")
                await ada.submit(greet, ["Ada"], connection=conn)
                raise RuntimeError
        assert (await ada.batches(), await schema.rows(mill, "members")) == ([], [])
        async with ada.transaction() as conn:
            assert await schema.value(conn, "add_member", tenant=None, name="Ada") == 2
            batch = await ada.submit(greet, ["Ada"], connection=conn)
        assert [each.id for each in await ada.batches()] == [batch.id]
        assert [row["tenant"] for row in await schema.rows(mill, "members")] == ["ada"]


async def test_an_unknown_query_is_a_configuration_error(dsn: str, club: Club) -> None:
    async with Mill(dsn, migrate=True, schemas=[club.schema]) as mill:
        with pytest.raises(ConfigurationError, match='"club" has no query "nothing"'):
            await club.schema.rows(mill, "nothing")
