"""Ambiguous requests, text that Postgres cannot store, and headers of answers."""

import json
from typing import Any

import pytest

from tests.service.operations import BODIES, DESCRIPTION, GUARDED, OPERATIONS
from tests.service.tools import UNKNOWN_ID, SharedService, Tenant, problem

NUL, SURROGATE = "a\0b@example.com", "a\ud800b@example.com"


@pytest.mark.parametrize(
    "body",
    [
        {"task": "by_club", "items": [{}]},
        {"task": "by_club", "items": [{"club": "a"}, {"other": "b"}]},
        {"task": "by_club", "items": [{"club": ""}]},
        {"task": "by_club", "jobs": [{"payload": {}}]},
        {"task": "elsewhere", "items": [{}]},
        {"task": "elsewhere", "jobs": [{"payload": {"club": "a"}}]},
    ],
)
async def test_a_submit_without_the_key_of_a_keyed_task_is_refused(body: Any, ada: Tenant) -> None:
    """The task `elsewhere` is registered only in the database, as if by another process."""
    ada.service.sql.execute(
        "insert into batchmill.tasks (name, retry, keyed, payload_limit, registered_at, entry) "
        "select 'elsewhere', retry, true, payload_limit, registered_at, true from batchmill.tasks "
        "where name = 'by_club' on conflict do nothing"
    )
    answer = await ada.client.post("/v1/batches", json=body)
    assert problem(answer)[0] == 422, answer.text
    payload = (body.get("items") or [body.get("jobs", [{}])[0].get("payload")])[-1]
    schedule = {"cron": "0 3 * * *", "task": body["task"], "payload": payload}
    answer = await ada.client.put("/v1/schedules/x", json=schedule)
    assert problem(answer)[0] == 422, answer.text
    assert ada.has_nothing
    ada.service.sql.execute("delete from batchmill.tasks where name = 'elsewhere'")


@pytest.mark.parametrize(
    "id", ["1.0", "+1", "%201", "1_0", "01e1", "0x1", "\u0661", "1.", "-1", ""]
)
async def test_numbers_in_urls_must_be_plain_digits(id: str, ada: Tenant) -> None:
    batch = await ada.batch("hold", [1])
    (job,) = (await ada.client.get(batch["links"]["jobs"])).json()["jobs"]
    written = id.replace("1", str(job["id"]), 1)
    assert (await ada.client.get(f"/v1/jobs/{job['id']}")).status_code == 200
    assert (await ada.client.get(f"/v1/jobs/{written}")).status_code in (404, 422)
    answer = await ada.client.get("/v1/batches", params={"size": id})
    assert answer.status_code == 422


async def test_a_signed_link_in_another_encoding_is_refused(
    service: SharedService, ada: Tenant
) -> None:
    file = await ada.file()
    link = (await ada.client.post(f"/v1/artifacts/{file['id']}/link")).json()["url"]
    path, _, query = link.partition("?")
    async with service.client() as client:
        assert (await client.get(link)).status_code == 200
        for other in (
            path.replace("/v1/", "/v1%2f"),
            path.replace("/content", "%2Fcontent"),
            path.replace("/artifacts", "/%61rtifacts"),
            path.replace("-", "%2D", 1),
        ):
            answer = await client.get(f"{other}?{query}")
            assert answer.status_code in (403, 404), other


@pytest.mark.parametrize(
    "name",
    ["Origin", "Idempotency-Key", "Authorization", "Content-Type", "Last-Event-ID", "Range",
     "If-Range", "Sec-Fetch-Site"],
)  # fmt: skip
async def test_a_duplicate_header_is_refused(name: str, ada: Tenant) -> None:
    values = [ada.client.headers.get(name, "x"), "y"]
    headers = [*ada.client.headers.raw, *((name.encode(), each.encode()) for each in values)]
    if name in ada.client.headers:
        headers.pop(-2)
    answer = await ada.client.post("/v1/batches", json=BODIES["/v1/batches"], headers=headers)
    assert answer.status_code == 400, answer.text
    assert ada.has_nothing


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
async def test_answers_are_sent_with_nosniff_and_no_store(
    operation: Any, service: SharedService, ada: Tenant, operator: Tenant
) -> None:
    tenant = operator if operation.needs_operator else ada
    arguments = operation.request(id=UNKNOWN_ID, name="task:double")
    async with service.client() as stranger:
        for client in (tenant.client, stranger):
            answer = await client.request(**arguments)
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Cache-Control"] == "no-store", answer.text


async def test_files_can_be_cached_and_must_be_revalidated(ada: Tenant) -> None:
    file = await ada.file()
    answer = await ada.client.get(f"/v1/artifacts/{file['id']}/content")
    assert answer.headers["Cache-Control"] == "private, no-cache"
    again = {"If-None-Match": answer.headers["ETag"]}
    answer = await ada.client.get(f"/v1/artifacts/{file['id']}/content", headers=again)
    assert answer.status_code == 304
    assert answer.headers.get("Cache-Control") != "no-store"


def with_texts(schema: Any, text: str, root: Any) -> list[Any]:
    """Returns values that fit the schema, each with the text in a different place."""
    if "$ref" in schema:
        return with_texts(
            root["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], text, root
        )
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return [value for each in schema[name] for value in with_texts(each, text, root)]
    match schema.get("type"):
        case "array":
            return [[value] for value in with_texts(schema["items"], text, root)]
        case "object" if "properties" in schema:
            return [
                {name: value}
                for name, each in schema["properties"].items()
                for value in with_texts(each, text, root)
            ]
        case "object":
            values = with_texts(schema.get("additionalProperties") or {}, text, root)
            return [{text: "x"}, *({"x": value} for value in values)]
        case "string" | None:
            return [text]
        case _:
            return []


BROKEN = [
    (operation, value)
    for operation in GUARDED
    for content in [operation.about.get("requestBody", {}).get("content", {})]
    if "application/json" in content
    for text in (NUL, SURROGATE)
    for value in with_texts(content["application/json"]["schema"], text, DESCRIPTION)
]


async def test_text_that_postgres_cannot_store_is_refused(ada: Tenant, operator: Tenant) -> None:
    assert len(BROKEN) > 30
    for operation, value in BROKEN:
        tenant = operator if operation.needs_operator else ada
        arguments = operation.request(id=UNKNOWN_ID, name="task:double")
        # `json.dumps` escapes the text. Other tests send bytes that are not UTF-8.
        arguments["content"] = json.dumps({**arguments.pop("json"), **value})
        answer = await tenant.client.request(**arguments)
        assert answer.status_code in (400, 422), (str(operation), value, answer.text)
        problem(answer)


@pytest.mark.parametrize("text", ["%00", "%ed%a0%80", "%ff", "a%00b"])
async def test_a_url_that_postgres_cannot_store_causes_no_server_error(
    text: str, ada: Tenant, operator: Tenant
) -> None:
    for operation in GUARDED:
        tenant = operator if operation.needs_operator else ada
        arguments = operation.request(id=text, name=text)
        answer = await tenant.client.request(**arguments)
        assert answer.status_code < 500, (str(operation), answer.text)
    for name in ("task", "state", "cursor", "size"):
        answer = await ada.client.get(f"/v1/batches?{name}={text}")
        assert answer.status_code < 500
