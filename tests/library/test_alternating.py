"""Tenants that share one connection."""

import asyncio

import pytest

from batchmill import Mill, NotFound
from tests.library.tools import echo_on
from tests.postgres import Server, start_pgbouncer, with_database

TURNS = 500


async def test_tenants_that_share_one_connection_see_only_their_own_batches(
    server: Server, dsn: str, mill: Mill
) -> None:
    """PgBouncer runs the transactions of all tenants in one session."""
    echo = echo_on(mill)
    batches = {
        tenant: await mill.submit(echo, [tenant], tenant=tenant) for tenant in ("ada", "bob")
    }
    bouncer = start_pgbouncer(server.dsn, pool_size=1)
    if bouncer is None:
        pytest.skip("Debian's pgbouncer is not installed.")
    with bouncer:
        async with Mill(with_database(bouncer.dsn, dsn.rsplit("/", 1)[1])) as shared:

            async def check(tenant: str, other: str) -> None:
                own = shared.as_tenant(tenant)
                (batch,) = await own.batches()
                assert batch.id == batches[tenant].id
                assert (await own.batch(batches[tenant].id).get()).total == 1
                with pytest.raises(NotFound):
                    await own.batch(batches[other].id).get()

            for _ in range(TURNS // 50):
                await asyncio.gather(
                    *(check(*pair) for pair in [("ada", "bob"), ("bob", "ada")] * 25)
                )
