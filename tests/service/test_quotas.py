"""Quotas are exact, also for concurrent requests, and affect no other tenant."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from batchmill import Quota
from batchmill.service import create_app
from tests.library.test_schedules import run_upkeep
from tests.library.tools import one
from tests.service.conftest import running
from tests.service.shop import shop_on
from tests.service.tools import Tenant, make_key, problem

AT_ONCE = 20


async def at_once(tenant: Tenant, items: list[int], task: str = "hold") -> list[httpx.Response]:
    body = {"task": task, "items": items}
    return await asyncio.gather(
        *(tenant.client.post("/v1/batches", json=body) for _ in range(AT_ONCE))
    )


def refusals(answers: list[httpx.Response]) -> list[dict[str, Any]]:
    refused = [answer for answer in answers if answer.status_code != 202]
    assert {problem(answer) for answer in refused} <= {(429, "quota_exceeded")}
    return [answer.json() | {"header": answer.headers.get("Retry-After")} for answer in refused]


async def test_requests_per_minute_are_limited(ada: Tenant) -> None:
    ada.quota(requests_per_minute=5)
    # If a new minute begins in between, five more requests are allowed.
    answers = await asyncio.gather(*(ada.client.get("/v1/batches") for _ in range(AT_ONCE)))
    passed = [answer for answer in answers if answer.status_code == 200]
    assert len(passed) in (5, 10)
    refused = [answer for answer in answers if answer.status_code != 200]
    for answer in refused:
        assert problem(answer) == (429, "quota_exceeded")
        assert 1 <= int(answer.headers["Retry-After"]) <= 60
        assert answer.json()["limit"] == 5


async def test_a_new_minute_resets_the_count_of_requests(ada: Tenant) -> None:
    ada.quota(requests_per_minute=1)
    await ada.client.get("/v1/batches")
    ada.service.sql.execute(
        "update batchmill.usage set requests = 1, minute = minute - interval '1 min' "
        "where tenant = %s",
        [ada.name],
    )
    assert (await ada.client.get("/v1/batches")).status_code == 200


async def test_the_quota_of_active_jobs_is_exact(ada: Tenant) -> None:
    ada.quota(active_jobs=10)
    refused = refusals(await at_once(ada, [1, 2, 3]))
    assert len(refused) == AT_ONCE - 3
    assert {(each["limit"], each["header"]) for each in refused} == {(10, "30")}
    assert one(
        ada.service.sql, "select count(*) from batchmill.jobs where tenant = %s", ada.name
    ) == (9,)
    for batch in (await ada.client.get("/v1/batches")).json()["batches"]:
        await ada.client.post(f"{batch['links']['self']}/cancel")
        await ada.finished(batch)
    assert (await ada.batch("hold", range(10)))["total"] == 10


async def test_the_quota_of_jobs_per_day_is_exact(ada: Tenant) -> None:
    ada.quota(operations_per_day=10)
    refused = refusals(await at_once(ada, [1, 2, 3], "double"))
    assert len(refused) == AT_ONCE - 3
    assert all(1 <= int(each["header"]) <= 86_400 for each in refused)
    assert refused[-1]["limit"] == 10
    assert len((await ada.client.get("/v1/batches")).json()["batches"]) == 3
    assert (await ada.batch("double", [1]))["total"] == 1
    ada.service.sql.execute(
        "update batchmill.usage set day = day - 1 where tenant = %s", [ada.name]
    )
    assert (await ada.batch("double", range(10)))["total"] == 10


async def failed_batch(tenant: Tenant) -> tuple[str, str]:
    """Returns the paths that retry a batch with two failed jobs, and one of these jobs."""
    batch = await tenant.batch(items=[13, 13])
    await tenant.finished(batch)
    job = (await tenant.client.get(batch["links"]["jobs"])).json()["jobs"][0]["id"]
    return f"/v1/batches/{batch['id']}/retry", f"/v1/jobs/{job}/retry"


async def test_retried_jobs_count_towards_the_jobs_per_day(ada: Tenant) -> None:
    (first, _), (second, one_job) = await failed_batch(ada), await failed_batch(ada)
    ada.quota(operations_per_day=3)
    assert (await ada.client.post(first)).json() == {"jobs": 2}
    refused = await ada.client.post(second)
    assert problem(refused) == (429, "quota_exceeded")
    assert (refused.json()["used"], refused.json()["limit"]) == (2, 3)
    assert (await ada.client.post(one_job)).json() == {"jobs": 1}
    refused = await ada.client.post(second)
    assert (problem(refused), refused.json()["used"]) == ((429, "quota_exceeded"), 3)


async def test_retried_jobs_count_as_active_jobs(ada: Tenant) -> None:
    batch, one_job = await failed_batch(ada)
    ada.quota(active_jobs=2)
    await ada.batch("hold", [1])
    refused = await ada.client.post(batch)
    assert problem(refused) == (429, "quota_exceeded")
    assert (refused.json()["used"], refused.json()["limit"]) == (1, 2)
    assert (await ada.client.post(one_job)).json() == {"jobs": 1}


async def test_a_repeated_submit_does_not_count(ada: Tenant) -> None:
    ada.quota(operations_per_day=1)
    body, key = {"task": "double", "items": [1]}, {"Idempotency-Key": "once"}
    ids = {
        (await ada.client.post("/v1/batches", json=body, headers=key)).json()["id"]
        for _ in range(3)
    }
    assert len(ids) == 1


async def test_duplicates_and_cached_results_do_not_count(ada: Tenant) -> None:
    jobs = [{"payload": n, "cache_key": str(n)} for n in range(3)]
    first = (await ada.client.post("/v1/batches", json={"task": "double", "jobs": jobs})).json()
    await ada.finished(first)
    ada.quota(operations_per_day=2)
    held = [{"payload": 1, "dedup_key": "same"}]
    bodies = [{"task": "hold", "jobs": held}, *[{"task": "double", "jobs": jobs}] * 2]
    statuses = [
        (await ada.client.post("/v1/batches", json=body)).status_code
        for body in [*bodies, {"task": "hold", "jobs": held}, {"task": "double", "items": [1]}]
    ]
    assert statuses == [202] * 5
    assert refusals([await ada.client.post("/v1/batches", json={"task": "double", "items": [1]})])


async def test_a_batch_with_only_cached_results_counts_once_if_it_notifies(ada: Tenant) -> None:
    """It runs no job, but it may send twenty notifications when it has finished."""
    body = {"task": "double", "jobs": [{"payload": n, "cache_key": str(n)} for n in range(3)]}
    await ada.finished((await ada.client.post("/v1/batches", json=body)).json())
    ada.quota(operations_per_day=2)
    body["notify"] = ["https://1.1.1.1/"]
    ada.service.sql.execute(
        """insert into batchmill.webhooks (tenant, url, secret, created_at, disabled_at)
        values (%s, 'https://1.1.1.1/', '', now(), now())""",
        [ada.name],
    )
    statuses = [(await ada.client.post("/v1/batches", json=body)).status_code for _ in range(3)]
    assert statuses == [202, 202, 429]


async def test_a_refused_submit_does_not_count(ada: Tenant) -> None:
    ada.quota(operations_per_day=2)
    assert (
        await ada.client.post("/v1/batches", json={"task": "double", "items": [1, "x"]})
    ).is_error
    assert refusals(
        [await ada.client.post("/v1/batches", json={"task": "double", "items": [1] * 3})]
    )
    assert (await ada.batch("double", [1, 2]))["total"] == 2


async def test_the_storage_quota_is_checked_before_the_body_is_read(ada: Tenant) -> None:
    ada.quota(storage_bytes=1_000)
    answer = await ada.client.put("/v1/artifacts", params={"name": "a"}, content=b"x" * 1_001)
    assert problem(answer) == (507, "storage_exceeded")
    assert (answer.json()["used"], answer.json()["limit"]) == (0, 1_000)
    assert ada.has_nothing
    await ada.file(b"x" * 1_000)
    answer = await ada.client.put("/v1/artifacts", params={"name": "a"}, content=b"x")
    assert (answer.json()["used"], answer.json()["limit"]) == (1_000, 1_000)


async def test_the_storage_quota_is_checked_while_the_body_is_read(ada: Tenant) -> None:
    ada.quota(storage_bytes=100_000)

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 10_000

    answer = await ada.client.put("/v1/artifacts", params={"name": "a"}, content=chunks())
    assert problem(answer) == (507, "storage_exceeded")
    files = [("file", (f"{n}.txt", b"x" * 30_000)) for n in range(4)]
    answer = await ada.client.post("/v1/batches", data={"task": "shout"}, files=files)
    assert problem(answer) == (507, "storage_exceeded")
    assert ada.has_nothing


async def test_the_storage_quota_is_exact_for_concurrent_uploads(ada: Tenant) -> None:
    ada.quota(storage_bytes=1_000)
    answers = await asyncio.gather(
        *(
            ada.client.put("/v1/artifacts", params={"name": "a"}, content=b"x" * 300)
            for _ in range(AT_ONCE)
        )
    )
    stored = [answer for answer in answers if answer.status_code == 201]
    assert len(stored) == 3
    for answer in stored:
        await ada.client.delete(f"/v1/artifacts/{answer.json()['id']}")
    assert (await ada.file(b"x" * 1_000))["size"] == 1_000


async def test_a_tenant_at_its_limits_does_not_affect_others(ada: Tenant, bob: Tenant) -> None:
    ada.quota(requests_per_minute=1, active_jobs=1, operations_per_day=1, storage_bytes=1)
    answers = await asyncio.gather(
        *(ada.client.post("/v1/batches", json={"task": "hold", "items": [1]}) for _ in range(50)),
        *(bob.client.post("/v1/batches", json={"task": "double", "items": [1]}) for _ in range(20)),
    )
    assert {answer.status_code for answer in answers[50:]} == {202}
    assert sum(answer.status_code == 202 for answer in answers[:50]) <= 1


async def test_blocked_submits_of_one_tenant_do_not_delay_others(ada: Tenant, bob: Tenant) -> None:
    """Each submit in progress holds a connection, and there are few connections."""
    ada.quota(active_jobs=1_000)
    await ada.batch()
    with psycopg.connect(ada.service.dsn) as blocking:
        blocking.execute("select from batchmill.usage where tenant = %s for update", [ada.name])
        stuck = asyncio.gather(
            *(
                ada.client.post("/v1/batches", json={"task": "double", "items": [1]})
                for _ in range(AT_ONCE)
            )
        )
        waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%%batchmill.submit%%'"
        while one(ada.service.sql, waiting)[0] < 1:
            await asyncio.sleep(0.01)
        for _ in range(5):
            batch = await bob.batch()
            await bob.finished(batch)
    assert {answer.status_code for answer in await stuck} == {202}


@pytest.mark.parametrize("tenant", ["own", "*"])
async def test_the_default_quota_applies_to_tenants_without_their_own(
    tenant: str, ada: Tenant, bob: Tenant
) -> None:
    ada.quota(active_jobs=5)
    ada.service.sql.execute(
        "insert into batchmill.quotas (tenant, active_jobs) values ('*', 2) "
        "on conflict (tenant) do nothing"
    )
    try:
        submitter = ada if tenant == "own" else bob
        answers = [
            await submitter.client.post(
                "/v1/batches", json={"task": "hold", "items": list(range(n))}
            )
            for n in (6, 5, 3, 2)
        ]
        assert sum(answer.status_code == 202 for answer in answers) == 1
        accepted = next(answer for answer in answers if answer.status_code == 202)
        assert accepted.json()["total"] == (5 if tenant == "own" else 2)
    finally:
        ada.service.sql.execute("delete from batchmill.quotas where tenant = '*'")


SCHEDULE = {"cron": "* * * * *", "task": "double", "payload": 1}
ALL_JOBS = """select (select count(*) from batchmill.jobs where tenant = 'ada')
    + (select count(*) from batchmill.finished where tenant = 'ada')"""

COPIES_OF_SCHEDULE = """insert into batchmill.schedules
    select (jsonb_populate_record(s, jsonb_build_object('name', 's' || n))).*
    from batchmill.schedules s, generate_series(2, 300) n"""


@pytest.mark.parametrize("bounds", [{"active_jobs": 5}, {"operations_per_day": 5}])
async def test_schedules_fire_within_the_quota(
    bounds: dict[str, int], dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """300 schedules fire every second, and the quota allows five jobs."""
    quota = Quota(tenant="ada", schedules=300, schedule_seconds=1, **bounds)
    async with running(create_app(shop_on(dsn, tmp_path))) as client:
        client.headers["Authorization"] = f"Bearer {make_key(sql, 'ada')}"
        async with shop_on(dsn) as operator:
            await operator.keys.set_quota(quota)
        every_second = SCHEDULE | {"cron": "* * * * * *"}
        answer = await client.put("/v1/schedules/s1", json=every_second)
        assert answer.status_code == 200, answer.text
    # Copies, because 299 more requests take long.
    sql.execute(COPIES_OF_SCHEDULE)
    for second in (2, 4, 6, 8):
        await run_upkeep(dsn, f"{second}s")
    assert one(sql, ALL_JOBS) == (5,)
    stuck = "select count(*) from batchmill.schedules where error is null and last_at is null"
    refused = "select distinct error from batchmill.schedules where error is not null"
    assert one(sql, stuck) == (0,)
    what = "active jobs" if "active_jobs" in bounds else "jobs per day"
    assert one(sql, refused) == (f"The quota of this tenant is 5 {what}, and it already has 5.",)


async def test_schedules_of_a_tenant_without_a_quota_are_limited(ada: Tenant) -> None:
    async def save(name: str, cron: str = SCHEDULE["cron"]) -> httpx.Response:
        return await ada.client.put(f"/v1/schedules/{name}", json=SCHEDULE | {"cron": cron})

    for often in ("* * * * * *", "*/30 * * * * *", "0,2 0 0 1 1 *"):
        answer = await save("often", often)
        assert problem(answer) == (422, "invalid_input")
        assert "60 seconds" in answer.json()["detail"]
    answers = await asyncio.gather(*(save(f"s{n}") for n in range(105)))
    refused = [answer for answer in answers if answer.status_code != 200]
    assert {problem(answer) for answer in refused} == {(429, "quota_exceeded")}
    assert len(refused) == 5
    assert (refused[0].json()["used"], refused[0].json()["limit"]) == (100, 100)
    kept = next(answer for answer in answers if answer.status_code == 200).json()["name"]
    assert (await save(kept, "0 3 * * *")).status_code == 200
    await ada.client.delete(f"/v1/schedules/{kept}")
    assert (await save("another")).status_code == 200


async def test_webhooks_of_a_tenant_without_a_quota_are_limited(ada: Tenant) -> None:
    ada.service.sql.execute(
        """insert into batchmill.webhooks (tenant, url, secret, created_at)
        select %s, 'https://1.1.1.1/' || n, '', now() from generate_series(1, 98) n""",
        [ada.name],
    )

    async def save(n: int) -> httpx.Response:
        return await ada.client.post("/v1/webhooks", json={"url": f"https://1.1.1.1/new/{n}"})

    answers = await asyncio.gather(*(save(n) for n in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 201, 429, 429, 429]
    # A URL in `notify` creates a webhook too.
    body = {"task": "double", "items": [1], "notify": ["https://1.1.1.1/other"]}
    assert problem(await ada.client.post("/v1/batches", json=body)) == (429, "quota_exceeded")
    body["notify"] = ["https://1.1.1.1/1"]
    assert (await ada.client.post("/v1/batches", json=body)).status_code == 202


async def test_files_that_jobs_write_count_as_stored(ada: Tenant) -> None:
    ada.quota(storage_bytes=1_500)
    file = await ada.file(b"x" * 1_000)
    batch = await ada.batch("shout", [{"file": {"artifact": file["id"]}}])
    await ada.finished(batch)
    (job,) = (await ada.client.get(batch["links"]["jobs"])).json()["jobs"]
    assert (job["state"], job["code"]) == ("failed", "storage_exceeded")
    assert one(
        ada.service.sql, "select stored_bytes from batchmill.usage where tenant = %s", ada.name
    ) == (1_000,)


async def test_jobs_without_a_batch_and_callbacks_count_towards_quotas(ada: Tenant) -> None:
    ada.quota(active_jobs=3, operations_per_day=10)
    ada.service.sql.execute(
        """select batchmill.enqueue('hold', '1', jsonb_build_object('tenant', %s::text))
        from generate_series(1, 2)""",
        [ada.name],
    )
    body = {"task": "hold", "items": [1, 2]}
    refused = await ada.client.post("/v1/batches", json=body)
    assert problem(refused) == (429, "quota_exceeded")
    assert (refused.json()["used"], refused.json()["limit"]) == (2, 3)
    async with shop_on(ada.service.dsn, ada.service.files) as mill:
        await mill.as_tenant(ada.name).submit("double", [1], on_finish="keep")
    used = "select operations from batchmill.usage where tenant = %s"
    assert one(ada.service.sql, used, ada.name) == (2,)


def test_tenants_without_a_quota_have_the_defaults_of_a_new_quota(
    sql: psycopg.Connection[Any],
) -> None:
    names = "schedules, schedule_seconds, webhooks"
    quota = asdict(Quota(tenant="new"))
    expected = tuple(quota[name] for name in names.split(", "))
    assert one(sql, f"select {names} from batchmill.quota_of('nobody')") == expected
    sql.execute("insert into batchmill.quotas (tenant) values ('new')")
    assert one(sql, f"select {names} from batchmill.quota_of('new')") == expected
