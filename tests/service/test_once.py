"""Fifty concurrent callers of every operation that may succeed only once."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import psycopg
import pytest

from batchmill import Mill
from tests.invariants import violations
from tests.library.tools import nothing_is_left, one
from tests.service.tools import finished, submitted

CALLERS = 50


@pytest.fixture(autouse=True)
async def check(client: httpx.AsyncClient, sql: psycopg.Connection[Any]) -> AsyncIterator[None]:
    """Checks the invariants of the database after each test."""
    yield
    assert violations(sql) == []


async def at_once(call: Callable[[], Awaitable[httpx.Response]]) -> list[httpx.Response]:
    return await asyncio.gather(*(call() for _ in range(CALLERS)))


def statuses(answers: list[httpx.Response]) -> Counter[int]:
    return Counter(answer.status_code for answer in answers)


async def test_submits_with_one_idempotency_key_create_one_batch(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any]
) -> None:
    body = {"task": "double", "items": [1, 2, 3]}
    headers = {"Idempotency-Key": "order-7"}
    answers = await at_once(lambda: client.post("/v1/batches", json=body, headers=headers))
    assert statuses(answers) == {202: CALLERS}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert one(sql, "select count(*) from batchmill.batches") == (1,)


async def test_a_batch_is_cancelled_once(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any]
) -> None:
    batch = await submitted(client, "double", [1] * 100, delay=3_600)
    path = f"/v1/batches/{batch['id']}/cancel"
    answers = await at_once(lambda: client.post(path))
    assert statuses(answers) == {200: CALLERS}
    events = await finished(client, batch)
    assert events.count("batch_cancelled") == 1
    assert events.count("job_cancelled") == 100


async def test_only_one_caller_cancels_a_job(client: httpx.AsyncClient) -> None:
    batch = await submitted(client, "double", [1], delay=3_600)
    (job,) = (await client.get(f"/v1/batches/{batch['id']}/jobs")).json()["jobs"]
    answers = await at_once(lambda: client.post(f"/v1/jobs/{job['id']}/cancel"))
    assert statuses(answers) == {200: CALLERS}
    assert Counter(answer.json()["jobs"] for answer in answers) == {1: 1, 0: CALLERS - 1}


async def test_only_one_caller_retries_a_failed_batch(client: httpx.AsyncClient) -> None:
    batch = await failed(client, 3)
    answers = await at_once(lambda: client.post(f"/v1/batches/{batch['id']}/retry"))
    assert statuses(answers).keys() <= {200, 409}
    assert [
        answer.json()["jobs"] for answer in answers if answer.is_success and answer.json()["jobs"]
    ] == [3]
    await run_again(client, batch)


async def test_only_one_caller_retries_a_failed_job(client: httpx.AsyncClient) -> None:
    batch = await failed(client, 1)
    (job,) = (await client.get(f"/v1/batches/{batch['id']}/jobs")).json()["jobs"]
    answers = await at_once(lambda: client.post(f"/v1/jobs/{job['id']}/retry"))
    assert statuses(answers) == {200: 1, 409: CALLERS - 1}
    await run_again(client, batch)


async def failed(client: httpx.AsyncClient, jobs: int) -> Any:
    """Submits a batch whose jobs fail. Pauses the task, so that retried jobs do not run yet."""
    batch = await submitted(client, "double", [13] * jobs)
    await finished(client, batch)
    assert (await client.post("/v1/tasks/double/pause")).is_success
    return batch


async def run_again(client: httpx.AsyncClient, batch: Any) -> None:
    assert (await client.post("/v1/tasks/double/resume")).is_success
    assert (await finished(client, batch)).count("batch_completed") == 2


async def test_only_one_caller_deletes_a_finished_batch(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any]
) -> None:
    batch = await submitted(client, "double", [1, 2])
    await finished(client, batch)
    answers = await at_once(lambda: client.delete(f"/v1/batches/{batch['id']}"))
    assert statuses(answers) == {204: 1, 404: CALLERS - 1}
    assert nothing_is_left(sql)


async def test_only_one_caller_deletes_a_file(client: httpx.AsyncClient) -> None:
    file = (await client.put("/v1/artifacts?name=a", content=b"text")).json()
    answers = await at_once(lambda: client.delete(f"/v1/artifacts/{file['id']}"))
    assert statuses(answers) == {204: 1, 404: CALLERS - 1}


async def test_only_one_caller_deletes_a_webhook(client: httpx.AsyncClient) -> None:
    hook = await webhook(client)
    answers = await at_once(lambda: client.delete(f"/v1/webhooks/{hook['id']}"))
    assert statuses(answers) == {204: 1, 404: CALLERS - 1}


async def test_a_webhook_is_registered_once(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any]
) -> None:
    hooks = await asyncio.gather(*(webhook(client) for _ in range(CALLERS)))
    assert len({(hook["id"], hook["secret"]) for hook in hooks}) == 1
    assert one(sql, "select count(*) from batchmill.webhooks") == (1,)


async def test_one_of_many_rotated_secrets_is_stored(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any]
) -> None:
    hook = await webhook(client)
    answers = await at_once(lambda: client.post(f"/v1/webhooks/{hook['id']}/rotate"))
    assert statuses(answers) == {200: CALLERS}
    secrets = {answer.json()["secret"] for answer in answers}
    assert len(secrets) == CALLERS
    (kept,) = one(sql, "select secret from batchmill.webhooks")
    assert kept in secrets


async def test_only_one_caller_deletes_a_schedule(
    client: httpx.AsyncClient, sql: psycopg.Connection[Any]
) -> None:
    body = {"cron": "0 3 * * *", "task": "double", "payload": 1}
    answers = await at_once(lambda: client.put("/v1/schedules/nightly", json=body))
    assert statuses(answers) == {200: CALLERS}
    assert one(sql, "select count(*) from batchmill.schedules") == (1,)
    answers = await at_once(lambda: client.delete("/v1/schedules/nightly"))
    assert statuses(answers) == {204: 1, 404: CALLERS - 1}


async def webhook(client: httpx.AsyncClient) -> Any:
    answer = await client.post("/v1/webhooks", json={"url": "https://93.184.216.34/hook"})
    assert answer.is_success, answer.text
    return answer.json()


async def test_a_key_is_revoked_once(mill: Mill) -> None:
    _, key = await mill.keys.create("door")
    revoked = await asyncio.gather(*(mill.keys.revoke(key.id) for _ in range(CALLERS)))
    assert len({record.revoked_at for record in revoked}) == 1


async def test_jobs_with_one_dedup_key_are_one_job(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    @mill.task
    async def echo(n: int) -> int:
        return n

    jobs = await asyncio.gather(*(mill.enqueue(echo, 1, dedup_key="a") for _ in range(CALLERS)))
    assert len({job.id for job in jobs}) == 1
    assert one(sql, "select count(*) from batchmill.jobs") == (1,)
