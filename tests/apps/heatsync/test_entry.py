"""Another tenant with a key of the engine's API cannot harm visitors."""

import hashlib
from typing import Any

import httpx
import pytest

from tests.apps.heatsync.conftest import Visitor
from tests.apps.heatsync.sheets import SHEETS, SWIMMER, fresh
from tests.library.tools import one
from tests.service.tools import finished, make_key

NAME, PDF = next(iter(SHEETS.items()))
INVENTED = "0" * 64
EXTRACTION = {
    "swimmerName": SWIMMER,
    "meetName": "A meet that never was",
    "sessionDate": None,
    "venue": None,
    "events": [],
}


def mallory(heatsync: Visitor) -> httpx.AsyncClient:
    """A client with the key of another tenant."""
    headers = {"Authorization": f"Bearer {make_key(heatsync.sql, 'mallory')}"}
    return heatsync.client(headers=headers)


async def upload(client: httpx.AsyncClient, content: bytes) -> dict[str, Any]:
    answer = await client.put("/mill/v1/artifacts", params={"name": "a.pdf"}, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.mark.parametrize(
    "task", ["heatsync.keep", "heatsync.extract", "heatsync.ask", "heatsync.download"]
)
async def test_no_tenant_can_submit_to_a_later_stage(heatsync: Visitor, task: str) -> None:
    """Otherwise an invented schedule would be shown to every visitor with that sheet."""
    async with mallory(heatsync) as client:
        file = await upload(client, b"anything")
        sheet = {
            "swimmer": SWIMMER,
            "filename": "a.pdf",
            "file": {"artifact": file["id"], "sha256": INVENTED},
            "extraction": EXTRACTION,
        }
        answer = await client.post("/mill/v1/batches", json={"task": task, "items": [sheet]})
    assert (answer.status_code, answer.json()["code"]) == (403, "not_an_entry_point")


async def test_a_checksum_in_the_payload_is_ignored(heatsync: Visitor) -> None:
    """It can neither be used to read a visitor's extraction nor to replace it."""
    pdf = fresh(PDF)
    batch = await heatsync.batch(SWIMMER, (NAME, pdf))
    events = (await heatsync.results(batch))["events"]
    async with mallory(heatsync) as client:
        file = await upload(client, b"%PDF-1.7 something else %%EOF")
        stored = "select sha256 from heatsync.extractions order by created_at desc limit 1"
        (checksum,) = one(heatsync.sql, stored)
        assert checksum == hashlib.sha256(pdf).hexdigest()
        count = "select count(*) from heatsync.extractions"
        extractions = one(heatsync.sql, count)
        given = {
            "swimmer": SWIMMER,
            "filename": "a.pdf",
            "file": {"artifact": file["id"], "sha256": checksum},
            "extraction": EXTRACTION,
        }
        body = {"task": "heatsync.receive", "items": [given]}
        made = (await client.post("/mill/v1/batches", json=body)).json()
        await finished(client, made)
        results = (await client.get(f"/mill/v1/batches/{made['id']}/results")).json()
    assert results["results"] == []
    assert [each["code"] for each in results["failed"]] == ["INVALID_PDF"]
    again = await heatsync.batch(SWIMMER, (NAME, pdf))
    assert (await heatsync.results(again))["events"] == events
    assert one(heatsync.sql, count) == extractions


async def test_a_tenant_that_uploads_the_same_file_gets_the_stored_extraction(
    heatsync: Visitor,
) -> None:
    pdf = fresh(PDF)
    await heatsync.results(await heatsync.batch(SWIMMER, (NAME, pdf)))
    async with mallory(heatsync) as client:
        file = await upload(client, pdf)
        given = {"swimmer": SWIMMER, "filename": "a.pdf", "file": {"artifact": file["id"]}}
        body = {"task": "heatsync.receive", "items": [given]}
        made = (await client.post("/mill/v1/batches", json=body)).json()
        await finished(client, made)
        results = (await client.get(f"/mill/v1/batches/{made['id']}/results")).json()
        assert results["results"][0]["result"]["cached"]
        # It is not a visitor's batch, so its link does not show it.
        answer = await client.get(f"/api/batch/{made['id']}")
    assert answer.status_code == 404
