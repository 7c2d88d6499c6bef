"""Merged results list every finished job once, even if its state changes during the download."""

import json

import pytest

from batchmill import Mill, Permanent
from batchmill.service import schemas
from batchmill.service.results import merged
from batchmill.store import jobs


async def test_a_job_that_is_retried_between_two_pages_is_listed_once(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill, is_broken = Mill(dsn), True

    @mill.task
    async def work(n: int) -> int:
        if is_broken and n % 3 == 0:
            raise Permanent("It is broken.", code="broken")
        return n

    async with mill.running():
        batch = await mill.submit(work, range(12))
        await batch.wait()
        monkeypatch.setattr(jobs, "PAGE", 4)
        pieces = merged(mill.store, schemas.Batch.model_construct(id=batch.id, duplicates=0))
        document = await anext(pieces) + await anext(pieces)
        is_broken = False
        await batch.retry()
        await batch.wait()
        document += b"".join([piece async for piece in pieces])
    results = json.loads(document)
    assert [job["position"] for job in results["failed"]] == [0, 3]
    assert [job["position"] for job in results["results"]] == [1, 2, *range(4, 12)]
    assert results["cancelled"] == []


async def test_lists_that_do_not_fit_into_memory_are_complete(dsn: str) -> None:
    mill = Mill(dsn)

    @mill.task
    async def fail(n: int) -> None:
        raise Permanent("x" * 900, code="broken")

    async with mill.running():
        batch = await mill.submit(fail, range(300))
        await batch.wait()
        body = schemas.Batch.model_construct(id=batch.id, duplicates=0)
        results = json.loads(b"".join([piece async for piece in merged(mill.store, body)]))
    assert [job["position"] for job in results["failed"]] == list(range(300))
    assert (results["results"], results["cancelled"]) == ([], [])
