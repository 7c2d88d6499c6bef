"""`tenants`: rows of a tenant, and erasing it."""

from batchmill import Mill
from tests.cli.conftest import Cli


async def test_erasing_asks_first(cli: Cli, shop_mill: Mill) -> None:
    await shop_mill.submit("send", [{"number": 1}], tenant="acme")
    for answer in ("n\n", ""):
        result = await cli("tenants", "erase", "acme", input=answer)
        assert (result.exit_code, "Nothing was deleted" in result.stderr) == (2, True)
    assert (await cli.json("tenants", "rows", "acme"))["batches"] == 1
    assert (await cli("tenants", "erase", "acme", input="y\n")).exit_code == 0
    assert await cli.lines("tenants", "rows", "acme") == ["No table has a row of acme."]


async def test_a_tenant_is_erased_without_a_question(cli: Cli, shop_mill: Mill) -> None:
    await shop_mill.submit("send", [{"number": 1}], tenant="acme")
    erased = await cli.json("tenants", "erase", "acme", "--yes")
    assert (erased["tenant"], erased["erased"]["jobs"]) == ("acme", 1)
    assert await cli.json("tenants") == []


async def test_erasures_that_are_not_finished_are_listed(cli: Cli, shop_mill: Mill) -> None:
    await shop_mill.tenants.begin_erasure("acme")
    (listed,) = await cli.json("tenants")
    assert listed["tenant"] == "acme"
