"""What holds for every operation there is: keys, scopes, tenants, ids, and its description."""

from typing import Any

import pytest

from tests.library.tools import rows
from tests.service.operations import DESCRIPTION, GUARDED, OPERATIONS, SYSTEM, Operation
from tests.service.tools import NOBODY, House, Tenant, problem

# Tasks and limits are everybody's; a schedule is made by its name.
OF_SOMEONE = [
    each
    for each in GUARDED
    if "{" in each.path
    and not each.path.startswith(("/v1/tasks", "/v1/limits"))
    and not (each.method == "PUT" and "/schedules/" in each.path)
]


async def things_of(tenant: Tenant) -> dict[str, str]:
    """One thing of each kind, by how its paths begin."""
    batch = await tenant.batch("hold", [1])
    jobs = (await tenant.client.get(batch["links"]["jobs"])).json()["jobs"]
    schedule = {"cron": "0 3 * * *", "task": "double", "payload": 1}
    answer = await tenant.client.put("/v1/schedules/nightly", json=schedule)
    assert answer.status_code == 200, answer.text
    webhook = await tenant.client.post("/v1/webhooks", json={"url": "https://192.0.2.1/hook"})
    assert webhook.status_code == 422, "No address in these tests is public."
    return {
        "batches": batch["id"],
        "jobs": str(jobs[0]["id"]),
        "artifacts": (await tenant.file())["id"],
        "schedules": "nightly",
        "webhooks": await webhook_of(tenant),
    }


async def webhook_of(tenant: Tenant) -> str:
    """Made beside the service, which takes no address of this machine."""
    ((id,),) = rows(
        tenant.house.sql,
        "insert into batchmill.webhooks (tenant, url, secret, created_at) "
        "values (%s, 'https://example.com/', 'whsec_', now()) returning id",
        tenant.name,
    )
    return str(id)


def thing(operation: Operation, things: dict[str, str]) -> str:
    return things[operation.path.split("/")[2]]


async def test_without_a_key_nothing_is_served(house: House, ada: Tenant) -> None:
    async with house.client() as client:
        for operation in GUARDED:
            answer = await client.request(**operation.request(id=NOBODY, name="double"))
            assert problem(answer) == (401, "not_authenticated"), str(operation)
            assert answer.headers["www-authenticate"] == "Bearer"
        for path in SYSTEM:
            assert (await client.get(path)).status_code == 200, path


@pytest.mark.parametrize("key", ["bm_", "bm_00000000_" + "x" * 43, "x" * 9_000, "bm_\xe9", "ключ"])
async def test_a_key_that_is_none_is_refused(house: House, key: str) -> None:
    async with house.client() as client:
        for operation in GUARDED:
            answer = await client.request(
                **operation.request(id=NOBODY, name="double"),
                headers={b"Authorization": b"Bearer " + key.encode()},
            )
            assert problem(answer) == (401, "not_authenticated"), str(operation)


@pytest.mark.parametrize("tenant", ["default", "customer"])
@pytest.mark.parametrize("scopes", [("read",), ("submit",), ("read", "submit"), ("admin",)])
async def test_a_key_does_what_its_scopes_say_and_no_more(
    scopes: tuple[str, ...], tenant: str, house: House
) -> None:
    async with house.client(house.key(tenant, scopes)) as client:
        for operation in GUARDED:
            refused = operation.scope not in scopes and "admin" not in scopes
            refused |= operation.concerns_all and tenant != "default"
            answer = await client.request(**operation.request(id=NOBODY, name="no-such-thing"))
            said = str(operation), answer.text
            assert (answer.status_code == 403) == refused, said
            if refused:
                assert problem(answer) == (403, "forbidden"), said


async def test_nobody_reaches_what_is_another_tenants(ada: Tenant, bob: Tenant) -> None:
    his = await things_of(bob)
    before = await state_of(bob, his)
    for operation in OF_SOMEONE:
        given = thing(operation, his)
        answer = await ada.client.request(**operation.request(id=given, name=given))
        assert problem(answer) == (404, "not_found"), str(operation)
    assert await state_of(bob, his) == before
    assert ada.has_nothing


async def state_of(tenant: Tenant, things: dict[str, str]) -> list[Any]:
    found = [
        (await tenant.client.get(f"/v1/{kind}/{id}")).json()
        for kind, id in things.items()
        if kind != "schedules"
    ]
    for each in found:
        assert "status" not in each, each
        for moving in ("state", "running", "waiting", "attempt", "started_at", "last_event"):
            each.pop(moving, None)
    return [*found, (await tenant.client.get("/v1/schedules")).json()]


async def test_what_there_is_not_is_not_found(ada: Tenant) -> None:
    for operation in OF_SOMEONE:
        absent = "999999999" if operation.path.startswith("/v1/jobs") else NOBODY
        answer = await ada.client.request(**operation.request(id=absent, name="absent"))
        assert problem(answer) == (404, "not_found"), str(operation)


@pytest.mark.parametrize("id", ["x", "-1", "1e5", "9" * 30, "٣", "a b", "%00", "%ff", "x" * 3_000])
async def test_an_id_that_is_none_is_not_found(id: str, ada: Tenant) -> None:
    for operation in OF_SOMEONE:
        if "{id}" in operation.path:
            answer = await ada.client.request(**operation.request(id=id))
            assert answer.status_code in (400, 404), (str(operation), answer.text)
            problem(answer)


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/nothing", "/v1/batches/", "//v1/batches", "/v1/../x"]
)
async def test_a_path_that_is_none_is_a_problem_too(path: str, ada: Tenant) -> None:
    assert problem(await ada.client.get(path)) == (404, "not_found")


async def test_a_method_that_is_none_is_a_problem_too(ada: Tenant) -> None:
    for operation in OPERATIONS:
        for method in ("PATCH", "TRACE"):
            url = operation.path.replace("{id}", NOBODY).replace("{name}", "double")
            answer = await ada.client.request(method, url)
            assert problem(answer) == (405, "method_not_allowed"), str(operation)
            there = {each.method for each in OPERATIONS if each.path == operation.path}
            assert there <= set(answer.headers["allow"].split(", "))


def test_every_operation_is_described() -> None:
    for operation in OPERATIONS:
        about = operation.about
        said = str(operation)
        assert about["operationId"] and about["tags"], said
        assert about["summary"].replace(" ", "").isalpha(), said
        good = [status for status in about["responses"] if status[0] in "23"]
        assert good and {"4XX", "5XX"} <= about["responses"].keys(), said
        for status, answer in about["responses"].items():
            assert answer["description"], said
            if status[0] in "45":
                assert list(answer["content"]) == ["application/problem+json"], said
        assert bool(about.get("security")) == (operation.path not in SYSTEM), said
    assert DESCRIPTION["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"


def test_names_of_operations_are_distinct() -> None:
    names = [each.about["operationId"] for each in OPERATIONS]
    assert len(names) == len(set(names)) > 30
