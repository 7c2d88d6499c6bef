"""Batches over HTTP, from submit to results."""

import httpx

from tests.service.tools import finished, problem, submitted


async def test_a_batch_streams_events_and_returns_merged_results(client: httpx.AsyncClient) -> None:
    batch = await submitted(client, "double", [1, 13, 3])
    assert batch["total"] == 3
    assert (await finished(client, batch))[-1] == "batch_completed"
    results = (await client.get(batch["links"]["results"])).json()
    assert [each["result"] for each in results["results"]] == [2, 6]
    assert [(each["position"], each["code"]) for each in results["failed"]] == [(1, "unlucky")]
    assert results["batch"]["state"] == "partial"


async def test_files_in_a_form_create_jobs_and_a_zip_has_their_results(
    client: httpx.AsyncClient,
) -> None:
    files = [("file", ("a.txt", b"ann", "text/plain")), ("file", ("b.txt", b"bob", "text/plain"))]
    answer = await client.post("/v1/batches", data={"task": "shout"}, files=files)
    assert answer.status_code == 202, answer.text
    batch = answer.json()
    await finished(client, batch)
    results = (await client.get(batch["links"]["results"])).json()
    contents = []
    for each in results["results"]:
        content = await client.get(f"/v1/artifacts/{each['result']['artifact']}/content")
        contents.append(content.text)
    assert contents == ["ANN", "BOB"]
    archive = await client.get(batch["links"]["archive"])
    assert archive.content.startswith(b"PK")


async def test_a_payload_of_the_wrong_type_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/batches", json={"task": "double", "items": [1, "x"]})
    assert problem(answer) == (422, "invalid_payload")
    assert (await client.get("/v1/batches")).json() == {"batches": [], "next": None}
