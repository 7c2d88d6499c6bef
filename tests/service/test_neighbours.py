"""Operations of one tenant on large batches do not delay other tenants."""

import asyncio
from typing import Any

import psycopg
import pytest

from batchmill.store import jobs, shares
from batchmill.submission import CALL_JOBS
from tests.library.tools import one
from tests.service.tools import Tenant, problem

AT_ONCE = 30
JOBS = 20_000
WAITING = """select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and wait_event_type = 'Lock'"""


async def large_batch(tenant: Tenant) -> str:
    """Submits a batch whose jobs are not due yet. Returns its path."""
    batch = await tenant.batch("hold", [1] * JOBS, delay=3_600)
    return f"/v1/batches/{batch['id']}"


async def test_thirty_cancels_of_a_large_batch_do_not_delay_others(
    ada: Tenant, bob: Tenant
) -> None:
    batch = await large_batch(ada)
    mine = await bob.batch()
    cancelling = asyncio.gather(
        *(ada.client.post(f"{batch}/cancel") for _ in range(AT_ONCE)),
    )
    while not cancelling.done():
        assert (await bob.client.get(f"/v1/batches/{mine['id']}")).status_code == 200
        assert one(ada.service.sql, WAITING)[0] <= 3
    answers = await cancelling
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(answer.json()["jobs"] for answer in answers) == [0] * (AT_ONCE - 1) + [JOBS]
    after = (await ada.client.get(batch)).json()
    assert (after["state"], after["cancelled"], after["last_event"]) == (
        "cancelled",
        JOBS,
        JOBS + 1,
    )


async def test_large_submits_of_two_tenants_do_not_delay_small_submits(
    ada: Tenant, bob: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A locked row keeps the large submits in progress for as long as the test needs."""
    large = {"task": "double", "items": [1] * (CALL_JOBS + 1)}
    async with ada.service.tenant() as eve:
        for noisy in (ada, eve):
            noisy.quota(active_jobs=1_000_000)
            await noisy.batch()
        with psycopg.connect(ada.service.dsn) as blocking:
            blocking.execute(
                "select from batchmill.usage where tenant = any (%s) for update",
                [[ada.name, eve.name]],
            )
            stuck = asyncio.gather(
                *(each.client.post("/v1/batches", json=large) for each in (ada, eve) * 3)
            )
            while one(ada.service.sql, WAITING)[0] < shares.LARGE:
                await asyncio.sleep(0.01)
            async with asyncio.timeout(10):
                mine = await bob.batch("hold", [1] * CALL_JOBS, delay=3_600)
                cancelled = await bob.client.post(f"/v1/batches/{mine['id']}/cancel")
            assert cancelled.json()["jobs"] == CALL_JOBS
            assert one(ada.service.sql, WAITING) == (shares.LARGE,)
            with monkeypatch.context() as patch:
                patch.setattr(shares, "WAIT_SECONDS", 0.05)
                refused = await bob.client.post("/v1/batches", json=large)
            assert problem(refused) == (503, "server_busy")
            assert refused.headers["Retry-After"]
        assert {answer.status_code for answer in await stuck} == {202}


async def test_a_list_by_state_continues_after_an_empty_page(
    ada: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MOST_LISTED_OF_BATCH", 2)
    batch = await ada.batch("double", [13, 13, 13, 13, 13, 1, 13])
    await ada.finished(batch)
    path = batch["links"]["jobs"]

    async def pages(**which: Any) -> list[list[int]]:
        positions, cursor = [], None
        while True:
            params = which | ({"cursor": cursor} if cursor else {})
            page = (await ada.client.get(path, params=params)).json()
            positions.append([job["position"] for job in page["jobs"]])
            if (cursor := page["next"]) is None:
                return positions

    assert await pages(state="completed", size=1) == [[], [], [5], []]
    assert await pages(state="failed", size=3) == [[0, 1, 2], [3, 4, 6]]
    assert await pages(size=5) == [[0, 1, 2, 3, 4], [5, 6]]
    assert await pages(state="ready") == [[]]
