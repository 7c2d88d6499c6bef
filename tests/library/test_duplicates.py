"""Items without a job of their own show the job that they duplicate, and its result."""

from typing import Any

import pytest

from batchmill import Batch, DuplicateRecord, Item, Mill, Permanent
from tests.library.tools import echo_on, one


@pytest.fixture
def failing(mill: Mill) -> Any:
    @mill.task
    async def failing(n: int) -> int:
        raise Permanent("This one cannot be made.", code="impossible")

    return failing


async def listed(batch: Batch) -> list[DuplicateRecord]:
    return [each async for each in batch.duplicates()]


async def test_a_duplicate_has_the_value_of_its_job_at_its_own_position(mill: Mill) -> None:
    echo = echo_on(mill)
    first = await mill.submit(echo, [Item("a", dedup_key="k")])
    second = await mill.submit(echo, ["x", Item("b", dedup_key="k"), "y"])
    (waiting,) = await listed(second)
    assert (waiting.position, waiting.batch_id, waiting.state) == (1, first.id, "ready")
    async with mill.running():
        await first.wait()
        results = await second.results()
    assert results.values == ["x", "a", "y"]
    assert (results.batch.total, results.batch.duplicates) == (2, 1)
    (ended,) = results.duplicates
    assert (ended.job_id, ended.state, ended.result) == (waiting.job_id, "completed", "a")
    assert await mill.job(ended.job_id).result() == "a"


async def test_a_duplicate_has_the_error_of_its_job(mill: Mill, failing: Any) -> None:
    job = await mill.enqueue(failing, 1, dedup_key="k")
    batch = await mill.submit(failing, [Item(2, dedup_key="k")])
    async with mill.running():
        with pytest.raises(Exception, match="cannot be made"):
            await job.result()
        results = await batch.results()
    (duplicate,) = results.duplicates
    assert duplicate.error and (duplicate.job_id, duplicate.error.code) == (job.id, "impossible")
    assert (results.values, results.failed, results.batch.state) == ([], [], "completed")


async def test_the_state_of_a_batch_shows_its_duplicates(mill: Mill) -> None:
    echo = echo_on(mill)
    live = await mill.enqueue(echo, "live", dedup_key="k", delay=60)
    batch = await mill.submit(echo, [Item(1, dedup_key="k"), 2])
    event = await anext(batch.events(after=1_000))
    shown = {"position": 0, "job_id": live.id, "batch_id": None, "state": "scheduled"}
    assert event.data["duplicates"] == [shown]
    assert (event.data["batch"]["duplicates"], event.data["truncated"]) == (1, False)


async def test_a_batch_without_duplicates_reads_none(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = echo_on(mill)

    async def refused(*_: Any) -> Any:
        raise AssertionError("This batch has no duplicates to read.")

    batch = await mill.submit(echo, [1, 2])
    monkeypatch.setattr(type(mill.store.duplicates), "_page", refused)
    async with mill.running():
        assert (await batch.results()).values == [1, 2]
    assert await listed(batch) == []


async def test_a_tenant_sees_only_its_own_duplicates(mill: Mill, sql: Any) -> None:
    echo = echo_on(mill)
    for tenant in ("ann", "bob"):
        await mill.enqueue(echo, 1, dedup_key="k", tenant=tenant, delay=60)
        await mill.submit(echo, [Item(1, dedup_key="k")], tenant=tenant)
    (anns,) = await mill.batches(tenant="ann")
    seen = mill.as_tenant("bob").store.duplicates
    assert await seen.page(anns.id, -1, 10) == []
    assert len(await mill.as_tenant("ann").store.duplicates.page(anns.id, -1, 10)) == 1
    assert one(sql, "select count(*) from batchmill.duplicates") == (2,)
