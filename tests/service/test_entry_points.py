"""Tenants can submit to entry points only: over HTTP, through the library, and with SQL."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from batchmill import Mill, NotAnEntryPoint, NotFound
from tests.service.tools import SharedService, Tenant, problem

REFUSED = (403, "not_an_entry_point")
SCHEDULE = {"cron": "0 3 * * *", "payload": 1}


async def test_a_task_that_is_not_an_entry_point_is_refused(ada: Tenant, operator: Tenant) -> None:
    body = {"task": "inner", "items": [1]}
    for tenant in (ada, operator):
        answer = await tenant.client.post("/v1/batches", json=body)
        assert problem(answer) == REFUSED
        assert "@mill.task(entry=True)" in answer.json()["detail"]
    assert ada.has_nothing


async def test_files_of_a_refused_submit_are_deleted(ada: Tenant) -> None:
    fields = {"task": "inner"}
    answer = await ada.client.post(
        "/v1/batches", data=fields, files={"file": ("a.txt", b"text", "text/plain")}
    )
    assert problem(answer) == REFUSED
    assert ada.has_nothing


async def test_a_tenant_can_schedule_entry_points_only(ada: Tenant) -> None:
    answer = await ada.client.put("/v1/schedules/nightly", json=SCHEDULE | {"task": "inner"})
    assert problem(answer) == REFUSED
    answer = await ada.client.put("/v1/schedules/nightly", json=SCHEDULE | {"task": "double"})
    assert answer.status_code == 200
    answer = await ada.client.put("/v1/schedules/nightly", json=SCHEDULE | {"task": "inner"})
    assert problem(answer) == REFUSED


async def test_only_entry_points_are_listed(ada: Tenant) -> None:
    tasks = (await ada.client.get("/v1/tasks")).json()["tasks"]
    assert {task["name"] for task in tasks} == {
        *("double", "shout", "keep", "hold", "by_club", "read_pages")
    }


@pytest.fixture
def as_ada(service: SharedService) -> Iterator[psycopg.Connection[Any]]:
    """A transaction with the role of a tenant, directly on Postgres."""
    with psycopg.connect(service.dsn) as conn:
        conn.execute(
            "select set_config('role', 'batchmill_tenant', true), "
            "set_config('batchmill.tenant', 'ada', true)"
        )
        yield conn
        conn.rollback()


@pytest.mark.parametrize(
    "statement",
    [
        """select batchmill.submit('inner', '[{"payload": 1}]')""",
        """select batchmill.submit('inner', '[1]', '{"bare": true, "checked": true}')""",
        """select batchmill.submit('double', '[{"payload": 1}]', '{"on_finish": "inner"}')""",
        """select batchmill.enqueue('inner', '1')""",
        """insert into batchmill.schedules (name, task, payload, key, tenant, cron, timezone,
            missed, next_at, priority)
        values ('n', 'inner', '1', '', 'ada', '* * * * *', 'UTC', 'once', now(), 0)""",
    ],
)
def test_postgres_refuses_tasks_that_are_not_entry_points(
    as_ada: psycopg.Connection[Any], statement: str
) -> None:
    with pytest.raises(psycopg.Error) as refused:
        as_ada.execute(statement.encode())
    assert refused.value.sqlstate in ("BM014", "42501")


async def test_a_tenant_submits_to_entry_points_only_and_the_mill_to_any_task(
    shop: Mill,
) -> None:
    async with shop, shop.running():
        ada = shop.as_tenant("ada")
        for refused in (
            ada.submit("inner", [1]),
            ada.submit("double", [1], on_finish="inner"),
            ada.enqueue("inner", 1),
            ada.schedules.save("nightly", "0 3 * * *", "inner", 1),
        ):
            with pytest.raises(NotAnEntryPoint):
                await refused
        assert await (await ada.enqueue("double", 1)).result(timeout=30) == 2
        batch = await shop.submit("inner", [1], tenant="ada", on_finish="inner")
        assert (await batch.results(timeout=30)).values == [1]


async def test_a_mill_without_the_code_of_a_task_knows_if_it_is_an_entry_point(
    shop: Mill, dsn: str
) -> None:
    await shop.register_tasks()
    await shop.close()
    async with Mill(dsn) as other:
        ada = other.as_tenant("ada")
        with pytest.raises(NotAnEntryPoint):
            await ada.submit("inner", [1])
        await ada.submit("double", [1])


async def test_registering_a_task_again_changes_whether_it_is_an_entry_point(dsn: str) -> None:
    for is_entry in (True, False, True):
        async with Mill(dsn) as mill:
            mill.task(name="changing", entry=is_entry)(lambda n: n)
            await mill.register_tasks()
        async with Mill(dsn) as other:
            if is_entry:
                await other.as_tenant("ada").submit("changing", [1])
            else:
                with pytest.raises(NotAnEntryPoint):
                    await other.as_tenant("ada").submit("changing", [1])


async def test_a_tenant_can_pause_and_delete_but_not_change_a_schedule_of_the_mill(
    shop: Mill,
) -> None:
    async with shop:
        await shop.schedules.save("nightly", "0 3 * * *", "inner", 1, tenant="ada")
        ada = shop.as_tenant("ada")
        assert (await ada.schedules.pause("nightly")).paused
        with pytest.raises(NotAnEntryPoint):
            await ada.schedules.save("nightly", "0 3 * * *", "inner", 2)
        await ada.schedules.delete("nightly")
        with pytest.raises(NotFound):
            await shop.schedules.pause("nightly", tenant="ada")
