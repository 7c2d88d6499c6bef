"""Usage over HTTP: of a batch, of a tenant, and of all tenants for operators."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.service.tools import UNKNOWN_ID, Tenant, problem


async def totals(caller: Tenant, /, **asked: Any) -> Any:
    answer = await caller.client.get("/v1/usage", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()["totals"]


async def read_pages(tenant: Tenant, *pages: int) -> Any:
    batch = await tenant.batch("read_pages", pages)
    await tenant.finished(batch)
    return batch


async def test_a_batch_shows_what_it_used_as_exact_decimals(ada: Tenant) -> None:
    batch = await read_pages(ada, 1, 2, 3)
    shown = (await ada.client.get(batch["links"]["self"])).json()
    assert shown["usage"] == {"eur": "0.6", "pages": "6"}
    unused = await ada.batch("double", [1])
    assert (await ada.client.get(unused["links"]["self"])).json()["usage"] == {}


async def test_a_tenant_sees_its_own_totals_in_groups(ada: Tenant, bob: Tenant) -> None:
    batch = await read_pages(ada, 4)
    await read_pages(ada, 5)
    await read_pages(bob, 100)
    nothing = {"day": None, "tenant": None, "task": None}
    assert await totals(ada) == [
        nothing | {"name": "eur", "amount": "0.9"},
        nothing | {"name": "pages", "amount": "9"},
    ]
    (eur, _) = await totals(ada, by=["day", "task"])
    today = datetime.now(UTC).date()
    assert eur == nothing | {
        "day": str(today),
        "task": "read_pages",
        "name": "eur",
        "amount": "0.9",
    }
    assert await totals(ada, until=str(today - timedelta(days=1))) == []
    assert await totals(ada, task="double") == []
    assert [each["amount"] for each in await totals(ada, batch=batch["id"])] == ["0.4", "4"]


async def test_only_operators_see_other_tenants(ada: Tenant, bob: Tenant, operator: Tenant) -> None:
    await read_pages(ada, 1)
    await read_pages(bob, 2)
    seen = await totals(operator, tenant="*", by=["tenant"])
    pages = {each["tenant"]: each["amount"] for each in seen if each["name"] == "pages"}
    assert (pages[ada.name], pages[bob.name]) == ("1", "2")
    assert [each["amount"] for each in await totals(operator, tenant=bob.name)] == ["0.2", "2"]
    assert await totals(ada, tenant=ada.name) == await totals(ada)
    for tenant in ("*", bob.name):
        answer = await ada.client.get("/v1/usage", params={"tenant": tenant})
        assert problem(answer) == (403, "forbidden")


async def test_the_batch_of_another_tenant_is_not_found(ada: Tenant, bob: Tenant) -> None:
    theirs = await read_pages(bob, 1)
    for id in (theirs["id"], UNKNOWN_ID):
        answer = await ada.client.get("/v1/usage", params={"batch": id})
        assert problem(answer) == (404, "not_found")


@pytest.mark.parametrize(
    "query", ["by=week", "since=yesterday", "since=2030-02-31", f"batch={UNKNOWN_ID}&by=day"]
)
async def test_an_invalid_question_is_refused(query: str, ada: Tenant) -> None:
    assert (await ada.client.get(f"/v1/usage?{query}")).status_code == 422
