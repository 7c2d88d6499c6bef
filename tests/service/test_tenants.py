"""Operators erase tenants over HTTP."""

import asyncio

from tests.service.tools import Tenant, problem


async def test_an_operator_erases_a_tenant(operator: Tenant, ada: Tenant, bob: Tenant) -> None:
    for tenant in (ada, bob):
        await tenant.batch("hold", [1, 2])
        await tenant.file()
    path = f"/v1/tenants/{ada.name}"
    assert (await operator.client.get(path)).json()["rows"]["batches"] == 1
    answer = await operator.client.delete(path)
    assert (answer.status_code, answer.json()["tenant"]) == (202, ada.name)
    while (found := (await operator.client.get(path)).json())["erasing_since"]:
        await asyncio.sleep(0.05)
    assert found == {"tenant": ada.name, "erasing_since": None, "rows": {}}
    assert problem(await ada.client.get("/v1/batches")) == (401, "not_authenticated")
    assert len((await bob.client.get("/v1/batches")).json()["batches"]) == 1


async def test_the_tenant_of_the_operator_cannot_be_erased(operator: Tenant) -> None:
    answer = await operator.client.delete("/v1/tenants/default")
    assert problem(answer) == (422, "invalid_input")
