"""The service while Postgres is stopped, or while the storage of files fails."""

import asyncio
from pathlib import Path

import pytest

from batchmill import ConfigurationError, Mill
from batchmill.service import create_app
from batchmill.service.problems import problem_of
from batchmill.store import pool
from tests.postgres import Server, packaged_server
from tests.service.conftest import OPTIONS, running
from tests.service.shop import shop_on
from tests.service.tools import Tenant, finished, problem, submitted


@pytest.fixture
def own_server() -> Server:
    return packaged_server()


async def test_the_service_answers_503_without_postgres_and_recovers(
    own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_server as server:
        async with Mill(server.dsn, migrate=True):
            pass
        async with running(create_app(shop_on(server.dsn, tmp_path), worker=OPTIONS)) as client:
            client.timeout = 60  # type: ignore[assignment]
            before = await submitted(client, "double", [1])
            assert (await client.get("/readyz")).json() == {"status": "ok"}
            await asyncio.to_thread(server.stop)
            with monkeypatch.context() as patch:
                # Several times 10 seconds otherwise.
                patch.setattr(pool, "WAIT_SECONDS", 1)
                answers = await asyncio.gather(
                    client.get("/v1/batches"),
                    client.post("/v1/batches", json={"task": "double", "items": [1]}),
                    client.put("/v1/artifacts?name=a", content=b"ann"),
                    client.get("/readyz"),
                )
            for answer in answers:
                assert problem(answer) == (503, "database_unavailable")
                assert answer.headers["Retry-After"] == "5"
                assert str(server.port) not in answer.text
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            await asyncio.to_thread(server.start)
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.05)
            batch = await submitted(client, "double", [2])
            assert (await finished(client, batch))[-1] == "batch_completed"
            listed = (await client.get("/v1/batches")).json()["batches"]
            assert [each["id"] for each in listed] == [batch["id"], before["id"]]


async def test_a_storage_failure_returns_503_and_leaves_nothing(ada: Tenant, bob: Tenant) -> None:
    await bob.file()
    folder = ada.service.files
    moved = folder.rename(folder.with_name("moved"))
    folder.write_text("in the way")
    try:
        answer = await ada.client.put("/v1/artifacts?name=a", content=b"ann")
        assert problem(answer) == (503, "storage")
        assert "Retry-After" in answer.headers
        assert str(folder) not in answer.text
    finally:
        folder.unlink()
        moved.rename(folder)
    assert ada.has_nothing


def test_messages_of_postgres_are_logged_but_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    problem = problem_of(ConfigurationError("permission denied for table api_keys"))
    assert (problem.status, problem.code) == (500, "configuration")
    assert "api_keys" not in problem.detail
    assert "api_keys" in caplog.text
