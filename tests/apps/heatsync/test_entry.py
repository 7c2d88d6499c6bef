"""What somebody with a key of the engine's API can do to visitors: nothing."""

from typing import Any

import httpx
import psycopg
import pytest

from tests.apps.heatsync.conftest import HeatSync
from tests.apps.heatsync.sheets import SHEETS, SWIMMER
from tests.service.tools import finished, make_key

FIRST = next(iter(SHEETS.items()))
MADE_UP = "0" * 64
EXTRACTION = {
    "swimmerName": SWIMMER,
    "meetName": "A meet that never was",
    "sessionDate": None,
    "venue": None,
    "events": [],
}


def mallory(heatsync: HeatSync, sql: psycopg.Connection[Any]) -> httpx.AsyncClient:
    """Another tenant, who has a key."""
    headers = {"Authorization": f"Bearer {make_key(sql, 'mallory')}"}
    return heatsync.client(headers=headers)


async def upload(client: httpx.AsyncClient, content: bytes) -> dict[str, Any]:
    answer = await client.put("/mill/v1/artifacts", params={"name": "a.pdf"}, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.mark.parametrize(
    "task", ["heatsync.keep", "heatsync.extract", "heatsync.ask", "heatsync.download"]
)
async def test_nobody_begins_with_a_later_stage(
    heatsync: HeatSync, sql: psycopg.Connection[Any], task: str
) -> None:
    """A made-up schedule would be given to every visitor who has that sheet."""
    async with mallory(heatsync, sql) as client:
        file = await upload(client, b"anything")
        sheet = {
            "swimmer": SWIMMER,
            "filename": "a.pdf",
            "file": {"artifact": file["id"], "sha256": MADE_UP},
            "extraction": EXTRACTION,
        }
        answer = await client.post("/mill/v1/batches", json={"task": task, "items": [sheet]})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_an_entry_point")


async def test_a_checksum_that_is_made_up_is_not_believed(
    heatsync: HeatSync, sql: psycopg.Connection[Any]
) -> None:
    """Nor can it be used to read what a visitor's sheet said, or to answer for that sheet."""
    batch = await heatsync.batch(SWIMMER, FIRST)
    said = (await heatsync.results(batch))["events"]
    async with mallory(heatsync, sql) as client:
        file = await upload(client, b"%PDF-1.7 something else %%EOF")
        found = sql.execute("select sha256 from heatsync.extractions").fetchone()
        assert found is not None
        given = {
            "swimmer": SWIMMER,
            "filename": "a.pdf",
            "file": {"artifact": file["id"], "sha256": found[0]},
            "extraction": EXTRACTION,
        }
        body = {"task": "heatsync.receive", "items": [given]}
        made = (await client.post("/mill/v1/batches", json=body)).json()
        await finished(client, made)
        results = (await client.get(f"/mill/v1/batches/{made['id']}/results")).json()
    assert results["results"] == []
    assert [each["code"] for each in results["failed"]] == ["INVALID_PDF"]
    again = await heatsync.batch(SWIMMER, FIRST)
    assert (await heatsync.results(again))["events"] == said
    count = sql.execute("select count(*) from heatsync.extractions").fetchone()
    assert count == (1,)


async def test_who_brings_the_same_file_gets_what_it_says(
    heatsync: HeatSync, sql: psycopg.Connection[Any]
) -> None:
    await heatsync.results(await heatsync.batch(SWIMMER, FIRST))
    async with mallory(heatsync, sql) as client:
        file = await upload(client, FIRST[1])
        given = {"swimmer": SWIMMER, "filename": "a.pdf", "file": {"artifact": file["id"]}}
        body = {"task": "heatsync.receive", "items": [given]}
        made = (await client.post("/mill/v1/batches", json=body)).json()
        await finished(client, made)
        results = (await client.get(f"/mill/v1/batches/{made['id']}/results")).json()
        assert results["results"][0]["result"]["cached"]
        # It is not a visitor's batch, so nobody sees it by its link.
        answer = await client.get(f"/api/batch/{made['id']}")
    assert answer.status_code == 404
