"""Tasks that enter a limit, and count in Postgres how many of them are inside."""

import asyncio

import psycopg

from batchmill import Job, Mill, SyncJob

mill = Mill("postgresql://unused")
TABLES = "create table public.inside (id bigint generated always as identity, change integer)"
CHANGE = "insert into public.inside (change) values (%s)"


def stay(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(CHANGE, [1])
        conn.execute("select pg_sleep(0.02)")
        conn.execute(CHANGE, [-1])


def highest(conn: psycopg.Connection) -> int:
    """The largest number of handlers that were inside at once."""
    row = conn.execute(
        "select max(n) from (select sum(change) over (order by id) as n from public.inside) counted"
    ).fetchone()
    assert row is not None
    return row[0]


@mill.task
async def on_loop(job: Job, dsn: str) -> None:
    async with job.limit("provider:api"):
        await asyncio.to_thread(stay, dsn)


@mill.task
def in_thread(job: SyncJob, dsn: str) -> None:
    with job.limit("provider:api"):
        stay(dsn)


@mill.task(process=True)
def in_process(job: SyncJob, dsn: str) -> None:
    with job.limit("provider:api"):
        stay(dsn)
