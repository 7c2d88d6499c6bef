"""HeatSync's own tables: data of earlier versions survives, and every visitor's row has a tenant."""

import json
from typing import Any

import psycopg

from apps.heatsync.extractions import ExtractionKey, find, get, keep
from apps.heatsync.models import Extraction, Result
from apps.heatsync.tables import HEATSYNC
from batchmill import Mill
from tests.library.test_tenants import TENANT_TABLES
from tests.library.tools import one, rows

# The tables as earlier versions created them, without a recorded version.
UNVERSIONED = """
create schema heatsync;
create table heatsync.extractions (
    code text primary key, sha256 text not null, swimmer text not null, reader text not null,
    extraction jsonb not null, created_at timestamptz not null default clock_timestamp(),
    used_at timestamptz not null default clock_timestamp(), unique (sha256, swimmer, reader));
create index extractions_by_use on heatsync.extractions (used_at);
create table heatsync.askers (
    batch_id uuid primary key, user_agent text not null, referrer text not null,
    client_address text not null, created_at timestamptz not null default clock_timestamp());
create table heatsync.visitors (
    network text primary key, tenant text not null unique,
    used_at timestamptz not null default clock_timestamp());
"""
EXTRACTION = Extraction(
    swimmer_name="Ada", meet_name="Meet", session_date=None, venue=None, events=[]
)
KEY = ExtractionKey("0" * 64, "ada", "layout-2")
ASKER = "insert into heatsync.askers (batch_id, user_agent, referrer, client_address) values (%s, 'curl', '', '::1')"


async def test_data_of_earlier_versions_survives_the_upgrade(
    dsn: str, sql: psycopg.Connection[Any]
) -> None:
    sql.execute(UNVERSIONED)
    sql.execute("insert into heatsync.visitors (network, tenant) values ('::1', 'default/v')")
    sql.execute(
        "insert into heatsync.extractions (code, sha256, swimmer, reader, extraction) "
        "values ('ABCDEFGH', %s, %s, %s, %s)",
        [*KEY, EXTRACTION.model_dump_json(by_alias=True)],
    )
    async with Mill(dsn) as old:

        @old.task(name="heatsync.keep")
        async def read(code: str) -> dict[str, str]:
            return {"resultCode": code}

        batch = await old.submit(read, ["ABCDEFGH"], tenant="default/v")
        async with old.running():
            await batch.results()
    sql.execute(ASKER, [batch.id])
    async with Mill(dsn, migrate=True, schemas=[HEATSYNC]) as mill:
        found = await get(mill, "abcdefgh")
        assert found is not None and found.extraction == EXTRACTION
        visitor = await HEATSYNC.value(mill, "meet_visitor", network="::1", prefix="default/")
        assert visitor == "default/v"
    used = "select tenant, code from heatsync.extraction_uses"
    assert rows(sql, used) == [("default/v", "ABCDEFGH")]
    asked = "select tenant, user_agent from heatsync.askers"
    assert rows(sql, asked) == [("default/v", "curl")]


async def test_a_server_of_the_previous_version_still_records_who_asked(
    dsn: str, sql: psycopg.Connection[Any]
) -> None:
    async with Mill(dsn, migrate=True, schemas=[HEATSYNC]) as mill:

        @mill.task
        async def read() -> None:
            pass

        batch = await mill.submit(read, [None], tenant="default/v")
    sql.execute(ASKER, [batch.id])
    assert one(sql, "select tenant from heatsync.askers") == ("default/v",)


async def test_every_table_of_heatsync_with_a_tenant_has_row_level_security(
    dsn: str, sql: psycopg.Connection[Any]
) -> None:
    async with Mill(dsn, migrate=True, schemas=[HEATSYNC]):
        pass
    assert rows(sql, TENANT_TABLES.replace("'batchmill'", "'heatsync'") + " order by 1") == [
        (name, True, True) for name in ("askers", "extraction_uses", "visitors")
    ]


async def test_an_extraction_is_deleted_with_its_last_use(
    dsn: str, sql: psycopg.Connection[Any]
) -> None:
    left = "select extraction ->> 'swimmerName' from heatsync.extractions"
    async with Mill(dsn, migrate=True, schemas=[HEATSYNC]) as mill:
        async with mill.transaction() as conn:
            stored = await keep(conn, KEY, EXTRACTION, "default/v")
        for visitor in ("default/v", "default/w"):
            again = await find(mill, KEY, visitor)
            assert again is not None and again.code == stored.code
    sql.execute("delete from heatsync.extraction_uses where tenant = 'default/v'")
    assert rows(sql, left) == [("Ada",)]
    sql.execute("delete from heatsync.extraction_uses where tenant = 'default/w'")
    assert rows(sql, left) == []


async def test_erasing_a_visitor_leaves_only_what_others_use_too(
    dsn: str, sql: psycopg.Connection[Any]
) -> None:
    own = KEY._replace(swimmer="grace")
    async with Mill(dsn, migrate=True, schemas=[HEATSYNC]) as mill:

        @mill.task
        async def read() -> None:
            pass

        sql.execute("insert into heatsync.visitors (network, tenant) values ('::1', 'default/v')")
        for visitor, key in (("default/v", KEY), ("default/w", KEY), ("default/v", own)):
            batch = await mill.submit(read, [None], tenant=visitor)
            async with mill.transaction() as conn:
                asker = {"user_agent": "curl", "referrer": "", "client_address": "::1"}
                await HEATSYNC.rows(conn, "keep_asker", batch=batch.id, **asker)
                await keep(conn, key, EXTRACTION, visitor)
        await mill.tenants.erase("default/v")
        assert await mill.tenants.remains("default/v") == {}
    assert rows(sql, "select swimmer from heatsync.extractions") == [("ada",)]
    assert rows(sql, "select tenant from heatsync.askers") == [("default/w",)]
    assert rows(sql, "select network from heatsync.visitors") == []


def test_a_result_has_the_field_that_the_migration_reads() -> None:
    result = Result(
        result_code="A", cached=False, filename="a", source_url=None, extraction=EXTRACTION
    )
    assert json.loads(result.model_dump_json(by_alias=True))["resultCode"] == "A"
