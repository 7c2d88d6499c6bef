"""What operators see over HTTP: pools, workers and statistics."""

from batchmill import Mill
from batchmill.config import ServiceSettings
from batchmill.service import create_app
from tests.service.conftest import OPTIONS, running
from tests.service.tools import problem, submitted


async def test_operators_see_pools_workers_and_statistics(shop: Mill) -> None:
    app = create_app(shop, settings=ServiceSettings(), worker=OPTIONS)
    async with running(app) as client:
        batch = await submitted(client, "hold", [1])
        async with client.stream("GET", batch["links"]["events"]) as stream:
            async for line in stream.aiter_lines():
                if line == "event: job_started":
                    break
        (pool,) = (await client.get("/v1/pools")).json()["pools"]
        assert (pool["size"], pool["idle"], pool["busy"], pool["broken"]) == (5, 4, 1, 0)
        held, *idle = pool["processors"]
        assert (held["name"], held["state"], held["task"]) == ("shared-processor-1", "busy", "hold")
        assert held["batch_id"] == batch["id"] and {each["state"] for each in idle} == {"idle"}

        (worker,) = (await client.get("/v1/workers")).json()["workers"]
        assert (worker["id"], worker["state"]) == (pool["worker_id"], "live")
        assert worker["running"] == 1

        statistics = (await client.get("/v1/statistics", params={"minutes": 5})).json()
        (task,) = [each for each in statistics["tasks"] if each["name"] == "hold"]
        assert (task["running"], statistics["total"]["running"]) == (1, 1)
        bad = await client.get("/v1/statistics", params={"minutes": 0})
        assert problem(bad) == (422, "invalid_request")
