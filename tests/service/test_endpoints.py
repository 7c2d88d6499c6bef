"""The endpoints of the service, with valid requests and with invalid parameters."""

import json
from typing import Any

import httpx
import pytest

from batchmill import Mill
from batchmill.service import create_app
from tests.service.tools import Tenant, problem


async def test_jobs_are_listed_and_shown(ada: Tenant) -> None:
    batch = await ada.batch(items=[1, 13])
    await ada.finished(batch)
    listed = (await ada.client.get(batch["links"]["jobs"])).json()["jobs"]
    assert [(job["position"], job["state"], job["code"]) for job in listed] == [
        (0, "completed", None),
        (1, "failed", "unlucky"),
    ]
    good, bad = [(await ada.client.get(f"/v1/jobs/{job['id']}")).json() for job in listed]
    assert (good["result"], good["error"]) == (2, None)
    assert (bad["attempts"][0]["code"], bad["error"]["message"]) == (
        "unlucky",
        "Thirteen is not served.",
    )
    assert (await ada.client.get(f"/v1/jobs/{good['id']}/result")).json() == 2
    assert problem(await ada.client.get(f"/v1/jobs/{bad['id']}/result")) == (409, "conflict")


async def test_a_failed_job_is_retried_and_a_completed_one_is_not(ada: Tenant) -> None:
    batch = await ada.batch(items=[1, 13])
    await ada.finished(batch)
    good, bad = (await ada.client.get(batch["links"]["jobs"])).json()["jobs"]
    assert (await ada.client.post(f"/v1/jobs/{bad['id']}/retry")).json() == {"jobs": 1}
    assert problem(await ada.client.post(f"/v1/jobs/{good['id']}/retry")) == (409, "conflict")
    await ada.finished(batch)
    assert (await ada.client.get(batch["links"]["self"])).json()["generation"] == 2
    assert (await ada.client.post(f"/v1/batches/{batch['id']}/retry")).json() == {"jobs": 1}


async def test_batches_and_jobs_are_cancelled_and_deleted(ada: Tenant) -> None:
    batch = await ada.batch("hold", [1, 2, 3])
    at = batch["links"]["self"]
    assert problem(await ada.client.delete(at)) == (409, "conflict")
    job = (await ada.client.get(f"{at}/jobs")).json()["jobs"][2]["id"]
    assert (await ada.client.post(f"/v1/jobs/{job}/cancel")).json() == {"jobs": 1}
    assert (await ada.client.post(f"{at}/cancel")).json()["jobs"] == 2
    await ada.finished(batch)
    assert (await ada.client.get(at)).json()["state"] == "cancelled"
    results = (await ada.client.get(f"{at}/results")).json()
    assert [each["position"] for each in results["cancelled"]] == [0, 1, 2]
    assert (await ada.client.delete(at)).status_code == 204
    assert problem(await ada.client.get(at)) == (404, "not_found")
    assert problem(await ada.client.get(f"/v1/jobs/{job}")) == (404, "not_found")


async def test_jobs_have_separate_options(ada: Tenant) -> None:
    jobs = [
        {"payload": 1, "priority": 5, "delay": 600},
        {"payload": 2, "dedup_key": "same"},
        {"payload": 3, "dedup_key": "same"},
        {"payload": 4, "run_at": "2100-01-01T00:00:00+02:00"},
    ]
    answer = await ada.client.post("/v1/batches", json={"task": "hold", "jobs": jobs})
    assert (answer.status_code, answer.json()["total"], answer.json()["duplicates"]) == (202, 3, 1)
    listed = (await ada.client.get(answer.json()["links"]["jobs"])).json()["jobs"]
    assert listed[0]["priority"] == 5
    assert listed[-1]["run_at"].startswith("2099-12-31T22:00")


async def test_duplicates_name_the_job_and_the_batch_that_they_duplicate(
    ada: Tenant, bob: Tenant
) -> None:
    live = {"task": "hold", "jobs": [{"payload": 0, "dedup_key": "k"}]}
    first = (await ada.client.post("/v1/batches", json=live)).json()
    (job,) = (await ada.client.get(first["links"]["jobs"])).json()["jobs"]
    jobs = [{"payload": n, "dedup_key": "k"} for n in range(3)]
    batch = (await ada.client.post("/v1/batches", json={"task": "hold", "jobs": jobs})).json()
    assert (batch["state"], batch["total"], batch["duplicates"]) == ("completed", 0, 3)
    named = {(each["job_id"], each["batch_id"]) for each in batch["first_duplicates"]}
    assert named == {(job["id"], first["id"])}

    at = batch["links"]["duplicates"]
    page = (await ada.client.get(at, params={"size": 2})).json()
    rest = (await ada.client.get(at, params={"size": 2, "cursor": page["next"]})).json()
    listed = page["duplicates"] + rest["duplicates"]
    assert [each["position"] for each in listed] == [0, 1, 2] and rest["next"] is None
    assert problem(await bob.client.get(at)) == (404, "not_found")

    await ada.client.post(first["links"]["self"] + "/cancel")
    await ada.finished(first)
    results = (await ada.client.get(batch["links"]["results"])).json()
    assert [each["state"] for each in results["duplicates"]] == ["cancelled"] * 3
    assert (results["results"], results["cancelled"]) == ([], [])
    await ada.client.delete(first["links"]["self"])
    gone = (await ada.client.get(at)).json()["duplicates"]
    assert {each["state"] for each in gone} == {"gone"}


async def test_results_have_those_of_duplicates_in_order(ada: Tenant) -> None:
    numbers = (4, 4, 13, 13, 5)
    jobs = [{"payload": n, "dedup_key": str(n), "delay": 0.2} for n in numbers]
    batch = (await ada.client.post("/v1/batches", json={"task": "double", "jobs": jobs})).json()
    await ada.finished(batch)
    results = (await ada.client.get(batch["links"]["results"])).json()
    values = [(each["position"], each["result"]) for each in results["results"]]
    assert values == [(0, 8), (1, 8), (4, 10)]
    assert [each["position"] for each in results["failed"]] == [2]
    states = [(each["position"], each["state"], each["code"]) for each in results["duplicates"]]
    assert states == [(1, "completed", None), (3, "failed", "unlucky")]


async def test_the_same_idempotency_key_returns_the_same_batch(ada: Tenant, bob: Tenant) -> None:
    body, key = {"task": "double", "items": [1]}, {"Idempotency-Key": "once"}
    first = await ada.client.post("/v1/batches", json=body, headers=key)
    again = await ada.client.post("/v1/batches", json=body, headers=key)
    assert first.json()["id"] == again.json()["id"]
    other = await ada.client.post("/v1/batches", json=body | {"items": [2]}, headers=key)
    assert problem(other) == (422, "idempotency_conflict")
    his = await bob.client.post("/v1/batches", json=body, headers=key)
    assert his.json()["id"] != first.json()["id"]
    for bad in ("", "x" * 501):
        answer = await ada.client.post("/v1/batches", json=body, headers={"Idempotency-Key": bad})
        assert problem(answer) == (422, "invalid_request")
    assert len((await ada.client.get("/v1/batches")).json()["batches"]) == 1


async def test_tasks_are_listed_paused_and_resumed(ada: Tenant, operator: Tenant) -> None:
    listed = (await ada.client.get("/v1/tasks")).json()["tasks"]
    assert {"double", "shout", "keep", "hold"} <= {task["name"] for task in listed}
    assert (await operator.client.post("/v1/tasks/shout/pause")).json()["paused"] is True
    assert (await operator.client.post("/v1/tasks/shout/resume")).json()["paused"] is False
    assert problem(await operator.client.post("/v1/tasks/nothing/pause")) == (404, "not_found")


async def test_the_priority_of_a_task_is_set_and_restored(ada: Tenant, operator: Tenant) -> None:
    at = "/v1/tasks/shout/priority"
    assert (await operator.client.put(at, json={"priority": 5})).json() == {"priority": 5}
    listed = (await ada.client.get("/v1/tasks")).json()["tasks"]
    assert {task["name"]: task["priority"] for task in listed}["shout"] == 5
    assert (await operator.client.put(at, json={"priority": None})).json() == {"priority": 0}
    assert problem(await operator.client.put(at, json={"priority": 40_000})) == (
        422,
        "invalid_request",
    )
    unknown = await operator.client.put("/v1/tasks/nothing/priority", json={"priority": 1})
    assert problem(unknown) == (404, "not_found")


@pytest.mark.parametrize("name", ["task:keep/tenant:ada", "provider:api.example.com/v1"])
async def test_limits_are_set_paused_and_reset(operator: Tenant, name: str) -> None:
    at = f"/v1/limits/{name}"
    limit = (await operator.client.put(at, json={"slots": 3, "rate": 5, "period": 60})).json()
    assert (limit["slots"], limit["rate"], limit["period"], limit["is_set"]) == (3, 5, 60, True)
    assert (await operator.client.post(f"{at}/pause")).json()["paused"] is True
    assert (await operator.client.post(f"{at}/resume")).json()["paused"] is False
    assert (await operator.client.put(at, json={"slots": "unlimited"})).json()["slots"] is None
    names = [each["name"] for each in (await operator.client.get("/v1/limits")).json()["limits"]]
    assert name in names
    assert (await operator.client.put(at, json={"reset": True})).json()["is_set"] is False
    absent = await operator.client.put("/v1/limits/tenant:nobody", json={"reset": True})
    assert problem(absent) == (404, "not_found")


async def test_schedules_are_created_changed_and_deleted(ada: Tenant, bob: Tenant) -> None:
    body = {"cron": "0 3 * * *", "task": "double", "payload": 1, "timezone": "Europe/Vienna"}
    for cron in ("0 3 * * *", "0 4 * * *"):
        answer = await ada.client.put("/v1/schedules/every night", json=body | {"cron": cron})
        assert (answer.status_code, answer.json()["cron"]) == (200, cron)
    assert (await bob.client.get("/v1/schedules")).json() == {"schedules": [], "next": None}
    (only,) = (await ada.client.get("/v1/schedules")).json()["schedules"]
    assert (only["name"], only["timezone"]) == ("every night", "Europe/Vienna")
    for action, paused in (("pause", True), ("resume", False)):
        answer = await ada.client.post(f"/v1/schedules/every night/{action}")
        assert (answer.status_code, answer.json()["paused"]) == (200, paused)
        assert problem(await bob.client.post(answer.request.url)) == (404, "not_found")
    assert (await ada.client.delete("/v1/schedules/every night")).status_code == 204
    assert problem(await ada.client.delete("/v1/schedules/every night")) == (404, "not_found")


async def test_stored_json_is_sent_without_parsing_it(ada: Tenant) -> None:
    """Parsing and encoding large values would block the event loop."""
    batch = await ada.batch("keep", [1])
    await ada.finished(batch)
    (job,) = (await ada.client.get(batch["links"]["jobs"])).json()["jobs"]
    ada.service.sql.execute(
        """update batchmill.finished set payload = '[1,  2 ]', result = '{"a":  3 }' where id = %s""",
        [job["id"]],
    )
    answer = await ada.client.get(f"/v1/jobs/{job['id']}")
    assert '"payload":[1,  2 ],"result":{"a":  3 }}' in answer.text
    assert (answer.json()["task"], answer.json()["labels"]) == ("keep", {})
    assert (await ada.client.get(f"/v1/jobs/{job['id']}/result")).text == '{"a":  3 }'
    body = {"cron": "0 3 * * *", "task": "keep", "payload": 1}
    assert (await ada.client.put("/v1/schedules/nightly", json=body)).status_code == 200
    ada.service.sql.execute("update batchmill.schedules set payload = '[4,  5 ]'")
    answer = await ada.client.get("/v1/schedules")
    assert '"payload":[4,  5 ]' in answer.text
    assert answer.json()["schedules"][0]["cron"] == "0 3 * * *"


async def test_payloads_and_pages_of_schedules_are_limited_in_bytes(ada: Tenant) -> None:
    body = {"cron": "0 3 * * *", "task": "keep", "payload": "x" * 65_534}
    for n in range(9):
        assert (await ada.client.put(f"/v1/schedules/{n}", json=body)).status_code == 200
    for size, code in ((65_535, "payload_too_large"), (150_000, "too_large")):
        body["payload"] = "x" * size
        answer = await ada.client.put("/v1/schedules/large", json=body)
        assert problem(answer) == (413, code)
    first = (await ada.client.get("/v1/schedules")).json()
    assert len(first["schedules"]) == 4
    listed = await pages(ada, "/v1/schedules", "schedules", 100)
    assert [each["name"] for each in listed] == [str(n) for n in range(9)]


async def test_pages_of_batches_are_limited_in_bytes(ada: Tenant) -> None:
    labels = {f"{n:02}" + "x" * 498: "y" * 500 for n in range(64)}
    batches = [(await ada.batch(items=[1], labels=labels))["id"] for _ in range(7)]
    first = (await ada.client.get("/v1/batches?size=1000")).json()["batches"]
    assert len(first) == 5
    listed = await pages(ada, "/v1/batches", "batches", 1_000)
    assert [each["id"] for each in listed] == batches[::-1]


async def test_the_description_is_rendered_once_and_sent_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It needs no key, so a client that does not read it must need little memory."""
    app = create_app(Mill("postgresql://nowhere"))
    rendered: list[Any] = []
    described = app.openapi
    monkeypatch.setattr(app, "openapi", lambda: rendered.append(described()) or rendered[-1])
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/openapi.json", "query_string": b""}
    for _ in range(3):
        sent.clear()
        await app({**scope, "headers": [], "http_version": "1.1"}, None, send)  # type: ignore[arg-type]
    assert len(rendered) == 1
    bodies = [each["body"] for each in sent if each["type"] == "http.response.body"]
    assert max(map(len, bodies)) <= 16_384
    assert json.loads(b"".join(bodies)) == rendered[0]
    assert int(dict(sent[0]["headers"])[b"content-length"]) == len(b"".join(bodies))


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/docs/swagger-ui/swagger-ui.css"])
async def test_the_description_is_sent_with_nosniff_and_no_cache(path: str, ada: Tenant) -> None:
    answer = await ada.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"


async def test_the_version_and_the_description_need_no_key(ada: Tenant) -> None:
    async with httpx.AsyncClient(base_url=ada.service.url) as client:
        assert (await client.get("/v1/version")).json()["schema_version"] > 3
        assert (await client.get("/openapi.json")).json()["info"]["title"] == "batchmill"


async def test_cursors_return_all_pages_in_order(ada: Tenant) -> None:
    batches = [(await ada.batch(items=range(3)))["id"] for _ in range(5)]
    assert [each["id"] for each in await pages(ada, "/v1/batches", "batches", 2)] == batches[::-1]
    jobs = await pages(ada, f"/v1/batches/{batches[0]}/jobs", "jobs", 1)
    assert [job["position"] for job in jobs] == [0, 1, 2]
    done = await pages(ada, "/v1/batches", "batches", 2, task="keep")
    assert done == []
    for n in range(3):
        body = {"cron": "0 3 * * *", "task": "double", "payload": n}
        assert (await ada.client.put(f"/v1/schedules/s{n}", json=body)).status_code == 200
        url = {"url": f"https://example.com/{n}"}
        assert (await ada.client.post("/v1/webhooks", json=url)).status_code == 201
    schedules = await pages(ada, "/v1/schedules", "schedules", 2)
    assert [each["payload"] for each in schedules] == [0, 1, 2]
    webhooks = await pages(ada, "/v1/webhooks", "webhooks", 2)
    assert [each["url"][-1] for each in webhooks] == ["0", "1", "2"]
    files = [{"file": {"artifact": (await ada.file())["id"]}} for _ in range(3)]
    at = f"/v1/batches/{(await ada.batch('shout', files))['id']}/artifacts"
    listed = await pages(ada, at, "artifacts", 2, kind="input")
    assert sorted(each["id"] for each in listed) == sorted(
        each["file"]["artifact"] for each in files
    )


async def pages(tenant: Tenant, path: str, name: str, size: int, **more: str) -> list[dict]:
    listed, cursor = [], {}
    while True:
        answer = await tenant.client.get(path, params={"size": size, **cursor, **more})
        page = answer.json()
        assert len(page[name]) <= size
        listed += page[name]
        if page["next"] is None:
            return listed
        cursor = {"cursor": page["next"]}


async def test_a_cursor_that_was_tampered_with_is_refused(ada: Tenant, bob: Tenant) -> None:
    for tenant in (ada, ada, bob):
        await tenant.batch(items=[1, 2])
    batch = await bob.batch(items=[1, 2])
    page = {"size": 1}
    mine, his = [
        (await each.client.get("/v1/batches", params=page)).json()["next"] for each in (ada, bob)
    ]
    jobs = (await bob.client.get(f"/v1/batches/{batch['id']}/jobs", params=page)).json()["next"]
    flipped = [
        mine[:at] + ("A" if mine[at] != "A" else "B") + mine[at + 1 :] for at in range(len(mine))
    ]
    for cursor in [
        his,
        jobs,
        "",
        "x",
        "....",
        mine[:-1],
        mine + "A",
        "é",
        "x" * 999,
        *flipped[::7],
    ]:
        answer = await ada.client.get("/v1/batches", params=page | {"cursor": cursor})
        assert problem(answer) == (400, "bad_request"), cursor
    good = await ada.client.get("/v1/batches", params=page | {"cursor": mine})
    assert good.status_code == 200


@pytest.mark.parametrize(
    "query",
    ["size=0", "size=1001", "size=x", "size=1e3", "size=99999999999999999999", "state=lost",
     "state=", "task=", "task=" + "x" * 501, "cursor=" + "x" * 1_001],
)  # fmt: skip
async def test_an_invalid_filter_is_refused(query: str, ada: Tenant) -> None:
    assert problem(await ada.client.get(f"/v1/batches?{query}")) == (422, "invalid_request")


@pytest.mark.parametrize("query", ["task=%00", "cursor=%00", "state=%00", "size=%00", "x=%00"])
async def test_nul_in_a_query_is_refused(query: str, ada: Tenant) -> None:
    assert problem(await ada.client.get(f"/v1/batches?{query}")) == (400, "bad_request")


@pytest.mark.parametrize("task", ["'; drop table batches --", "%ff", "\u202e", "../", "%s", "{0}"])
async def test_a_filter_is_a_parameter_and_not_part_of_the_query(task: str, ada: Tenant) -> None:
    await ada.batch()
    answer = await ada.client.get("/v1/batches", params={"task": task})
    assert answer.json() == {"batches": [], "next": None}


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "٣", "9" * 19, "1\n2"])
async def test_an_invalid_event_number_is_refused(after: str, ada: Tenant) -> None:
    batch = await ada.batch()
    answer = await ada.client.get(batch["links"]["events"], params={"after": after})
    assert problem(answer) == (400, "bad_request")


async def test_invalid_notification_targets_are_refused(ada: Tenant) -> None:
    batch = await ada.batch("hold", [1])
    at = f"{batch['links']['self']}/notifications"
    for targets in ([], ["nobody"], ["http://127.0.0.1/"], "a@example.com"):
        answer = await ada.client.post(at, json={"targets": targets})
        assert answer.status_code == 422, answer.text
        problem(answer)
    assert (await ada.client.get(at)).json() == {"notifications": []}
