"""Rules for every operation: keys, scopes, tenants, ids, and its description."""

from typing import Any

import pytest

from tests.library.tools import rows
from tests.service.operations import DESCRIPTION, GUARDED, OPERATIONS, SYSTEM, Operation
from tests.service.tools import UNKNOWN_ID, SharedService, Tenant, problem

# Tasks and limits belong to no tenant. PUT creates a schedule.
OWNED = [
    each
    for each in GUARDED
    if "{" in each.path
    and not each.path.startswith(("/v1/tasks", "/v1/limits", "/v1/tenants"))
    and not (each.method == "PUT" and "/schedules/" in each.path)
]


async def resources_of(tenant: Tenant) -> dict[str, str]:
    """Creates one resource of each kind. Returns the ids by the first part of their paths."""
    batch = await tenant.batch("hold", [1])
    jobs = (await tenant.client.get(batch["links"]["jobs"])).json()["jobs"]
    schedule = {"cron": "0 3 * * *", "task": "double", "payload": 1}
    answer = await tenant.client.put("/v1/schedules/nightly", json=schedule)
    assert answer.status_code == 200, answer.text
    webhook = await tenant.client.post("/v1/webhooks", json={"url": "https://192.0.2.1/hook"})
    assert webhook.status_code == 422, "192.0.2.1 is not a public address."
    return {
        "batches": batch["id"],
        "jobs": str(jobs[0]["id"]),
        "artifacts": (await tenant.file())["id"],
        "schedules": "nightly",
        "webhooks": await webhook_of(tenant),
    }


async def webhook_of(tenant: Tenant) -> str:
    """Inserts a webhook with SQL, because the service accepts public addresses only."""
    ((id,),) = rows(
        tenant.service.sql,
        "insert into batchmill.webhooks (tenant, url, secret, created_at) "
        "values (%s, 'https://example.com/', 'whsec_', now()) returning id",
        tenant.name,
    )
    return str(id)


def id_for(operation: Operation, resources: dict[str, str]) -> str:
    return resources[operation.path.split("/")[2]]


async def test_requests_without_a_key_are_refused(service: SharedService, ada: Tenant) -> None:
    async with service.client() as client:
        for operation in GUARDED:
            answer = await client.request(**operation.request(id=UNKNOWN_ID, name="double"))
            assert problem(answer) == (401, "not_authenticated"), str(operation)
            assert answer.headers["www-authenticate"] == "Bearer"
        for path in SYSTEM:
            assert (await client.get(path)).status_code == 200, path


@pytest.mark.parametrize("key", ["bm_", "bm_00000000_" + "x" * 43, "x" * 9_000, "bm_\xe9", "ключ"])
async def test_an_invalid_key_is_refused(service: SharedService, key: str) -> None:
    async with service.client() as client:
        for operation in GUARDED:
            answer = await client.request(
                **operation.request(id=UNKNOWN_ID, name="double"),
                headers={b"Authorization": b"Bearer " + key.encode()},
            )
            assert problem(answer) == (401, "not_authenticated"), str(operation)


@pytest.mark.parametrize("tenant", ["default", "customer"])
@pytest.mark.parametrize("scopes", [("read",), ("submit",), ("read", "submit"), ("admin",)])
async def test_a_key_is_limited_to_its_scopes(
    scopes: tuple[str, ...], tenant: str, service: SharedService
) -> None:
    async with service.client(service.key(tenant, scopes)) as client:
        for operation in GUARDED:
            refused = operation.scope not in scopes and "admin" not in scopes
            refused |= operation.needs_operator and tenant != "default"
            answer = await client.request(**operation.request(id=UNKNOWN_ID, name="no-such-thing"))
            message = str(operation), answer.text
            assert (answer.status_code == 403) == refused, message
            if refused:
                assert problem(answer) == (403, "forbidden"), message


async def test_resources_of_another_tenant_are_not_found(ada: Tenant, bob: Tenant) -> None:
    his = await resources_of(bob)
    before = await state_of(bob, his)
    for operation in OWNED:
        given = id_for(operation, his)
        answer = await ada.client.request(**operation.request(id=given, name=given))
        assert problem(answer) == (404, "not_found"), str(operation)
    assert await state_of(bob, his) == before
    assert ada.has_nothing


async def state_of(tenant: Tenant, resources: dict[str, str]) -> list[Any]:
    states = [
        (await tenant.client.get(f"/v1/{kind}/{id}")).json()
        for kind, id in resources.items()
        if kind != "schedules"
    ]
    for each in states:
        assert "status" not in each, each
        for moving in ("state", "running", "waiting", "attempt", "started_at", "last_event"):
            each.pop(moving, None)
    return [*states, (await tenant.client.get("/v1/schedules")).json()]


async def test_unknown_resources_are_not_found(ada: Tenant) -> None:
    for operation in OWNED:
        absent = "999999999" if operation.path.startswith("/v1/jobs") else UNKNOWN_ID
        answer = await ada.client.request(**operation.request(id=absent, name="absent"))
        assert problem(answer) == (404, "not_found"), str(operation)


@pytest.mark.parametrize("id", ["x", "-1", "1e5", "9" * 30, "٣", "a b", "%00", "%ff", "x" * 3_000])
async def test_an_invalid_id_is_refused(id: str, ada: Tenant) -> None:
    for operation in OWNED:
        if "{id}" in operation.path:
            answer = await ada.client.request(**operation.request(id=id))
            assert answer.status_code in (400, 404), (str(operation), answer.text)
            problem(answer)


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/nothing", "/v1/batches/", "//v1/batches", "/v1/../x"]
)
async def test_an_unknown_path_returns_a_problem(path: str, ada: Tenant) -> None:
    assert problem(await ada.client.get(path)) == (404, "not_found")


async def test_an_unsupported_method_returns_a_problem(ada: Tenant) -> None:
    for operation in OPERATIONS:
        for method in ("PATCH", "TRACE"):
            url = operation.path.replace("{id}", UNKNOWN_ID).replace("{name}", "double")
            answer = await ada.client.request(method, url)
            assert problem(answer) == (405, "method_not_allowed"), str(operation)
            allowed = {each.method for each in OPERATIONS if each.path == operation.path}
            assert allowed <= set(answer.headers["allow"].split(", "))


def test_every_operation_is_described() -> None:
    for operation in OPERATIONS:
        about = operation.about
        name = str(operation)
        assert about["operationId"] and about["tags"], name
        assert about["summary"].replace(" ", "").isalpha(), name
        good = [status for status in about["responses"] if status[0] in "23"]
        assert good and {"4XX", "5XX"} <= about["responses"].keys(), name
        for status, answer in about["responses"].items():
            assert answer["description"], name
            if status[0] in "45":
                assert list(answer["content"]) == ["application/problem+json"], name
        assert bool(about.get("security")) == (operation.path not in SYSTEM), name
    assert DESCRIPTION["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"


def test_names_of_operations_are_distinct() -> None:
    names = [each.about["operationId"] for each in OPERATIONS]
    assert len(names) == len(set(names)) > 30
