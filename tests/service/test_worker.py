"""Running due jobs inside a request, without a process that runs all the time."""

import asyncio

from batchmill import Mill
from batchmill.config import ServiceSettings
from batchmill.service import create_app
from tests.service.conftest import running
from tests.service.tools import submitted


async def test_an_operator_runs_due_jobs_in_a_request(shop: Mill) -> None:
    async with running(create_app(shop, settings=ServiceSettings())) as client:
        batch = await submitted(client, "double", [1, 2])
        assert (await client.get(batch["links"]["self"])).json()["state"] == "pending"
        answer = await client.post("/v1/worker/run", json={"seconds": 30})
        assert answer.json() == {"empty": True}
        assert (await client.get(batch["links"]["self"])).json()["state"] == "completed"


async def test_a_stopping_service_ends_the_run(shop: Mill) -> None:
    app = create_app(shop, settings=ServiceSettings())
    started = asyncio.Event()

    @shop.task(name="endless", entry=True)
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    async with running(app) as client:
        await submitted(client, "endless", [None])
        run = asyncio.create_task(client.post("/v1/worker/run", json={"seconds": 60, "grace": 0}))
        await started.wait()
        app.state.batchmill.stop()
        assert (await run).status_code == 200
