"""An application with its own tables, a tenant to erase, and a neighbour that must not notice."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batchmill import Artifact, Job, Mill, Permanent, Quota, Schema

TABLES = """
create table people (id bigint generated always as identity primary key, tenant text not null);
create table visits (
    person bigint not null references people, tenant text not null, note text not null);
create table rules (name text);
"""
QUERIES = """
-- name: add
with person as (insert into shop.people (tenant) values (%(tenant)s) returning id)
insert into shop.visits (person, tenant, note) select id, %(tenant)s, 'hello' from person
"""


def schema_in(folder: Path, tables: str) -> Schema:
    for part, name, text in (
        ("migrations", "0001_tables.sql", tables),
        ("queries", "shop.sql", QUERIES),
    ):
        (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / part / name).write_text(text)
    return Schema("shop", folder)


def shop_on(dsn: str, folder: Path, tables: str = TABLES) -> Mill:
    mill = Mill(
        dsn,
        migrate=True,
        artifacts=folder / "files",
        schemas=[schema_in(folder / "sql", tables)],
    )

    @mill.task(entry=True)
    async def double(n: int) -> int:
        return 2 * n

    @mill.task(entry=True)
    async def copy(job: Job, file: Artifact) -> Artifact:
        return await job.artifacts.save("out.txt", await job.artifacts.read(file))

    @mill.task(entry=True)
    async def note(summary: Mapping[str, Any]) -> None:
        pass

    @mill.task(entry=True)
    async def fail(n: int) -> None:
        raise Permanent(f"{n} is refused.")

    return mill


async def fill(mill: Mill, tenant: str, jobs: int = 20) -> None:
    """Rows of a tenant in every table that can have some."""
    client = mill.as_tenant(tenant)
    await mill.register_tasks(mill.engine.builtin_tasks)
    await mill.keys.create("web", tenant=tenant)
    await mill.keys.set_quota(Quota(tenant=tenant, active_jobs=1_000_000))
    file = (await client.artifacts.save("in.txt", b"hello")).reference
    await client.submit("double", range(jobs), idempotency_key="k", labels={"to": tenant})
    await client.submit("copy", [file] * 3, on_finish="note")
    await client.submit("double", [1], delay=3_600, notify=["https://1.1.1.1/"], on_finish="note")
    await client.enqueue("double", 1, delay=3_600)
    await client.enqueue("double", 2)
    await client.enqueue("fail", 3)
    await mill.schedules.save("nightly", "0 3 * * *", "double", 1, tenant=tenant)
    await mill.limits.set(f"tenant:{tenant}", slots=5)
    await mill.limits.set(f"task:double/tenant:{tenant}", slots=5)
    await mill.engine.schemas[0].rows(mill, "add", tenant=tenant)
    for feed in (client.feed(), client.feed("to", tenant)):
        await feed.position()
