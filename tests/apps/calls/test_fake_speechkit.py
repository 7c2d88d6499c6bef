"""The fake server as another process, as tests with killed servers use it."""

import httpx

from tests.apps.calls.fake_speechkit import KEY, FakeProcess

START = "/speech/stt/v2/longRunningRecognize"


async def test_another_process_counts_what_is_paid() -> None:
    async with FakeProcess(idempotent=0, looks=1) as server:
        body = {
            "config": {"specification": {"languageCode": "en-US", "audioEncoding": "OGG_OPUS"}},
            "audio": {"uri": "http://127.0.0.1:9/none"},
        }
        headers = {"Authorization": f"Api-Key {KEY}", "Idempotency-Key": "1"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers) as client:
            ids = [(await client.post(START, json=body)).json()["id"] for _ in range(2)]
            assert len(set(ids)) == 2
            assert not (await client.get(f"/operations/{ids[0]}")).json()["done"]
            assert (await client.get(f"/operations/{ids[0]}")).json()["error"]["code"] == 3
        assert server.paid == 2
        assert server.environment["SPEECHKIT_BASE_URL"] == server.url
        server.fail("start", "broken")
        assert httpx.post(f"{server.url}{START}", json=body).status_code == 503
        assert server.counts["requests"] == {"start": 3, "look": 2}
