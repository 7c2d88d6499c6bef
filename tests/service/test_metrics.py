"""Metrics for Prometheus over HTTP."""

import httpx

from tests.service.tools import finished, submitted


async def test_metrics_include_attempts_and_stream_clients(client: httpx.AsyncClient) -> None:
    batch = await submitted(client, "double", [1, 2])
    await finished(client, batch)
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "batchmill_up 1.0" in answer.text
    assert 'batchmill_attempts_total{outcome="completed",task="double"} 2.0' in answer.text
    assert "batchmill_stream_clients 0.0" in answer.text
