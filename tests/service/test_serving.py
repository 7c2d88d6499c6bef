"""`batchmill serve` as a process."""

import asyncio
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.library.tools import one
from tests.postgres import Server, free_port, start_pgbouncer, with_database
from tests.service.processes import Program, serve
from tests.service.tools import finished, make_key, submitted


async def test_serve_includes_a_worker(dsn: str, tmp_path: Path) -> None:
    with serve(dsn, tmp_path) as server:
        async with await server.client() as client:
            batch = await submitted(client, "double", [1, 2])
            assert (await finished(client, batch))[-1] == "batch_completed"
        assert await server.end() == 0
        assert "Traceback" not in server.stderr


async def test_serve_works_with_a_separate_worker(dsn: str, tmp_path: Path) -> None:
    with serve(dsn, tmp_path, "--no-worker") as server:
        async with await server.client() as client:
            batch = await submitted(client, "shout", [await sheet(client)])
            with Program("worker", DATABASE_URL=dsn, BATCHMILL_ARTIFACTS=str(tmp_path)) as worker:
                assert (await finished(client, batch))[-1] == "batch_completed"
                assert await worker.end() == 0
            results = (await client.get(batch["links"]["results"])).json()["results"]
            at = f"/v1/artifacts/{results[0]['result']['artifact']}/content"
            assert (await client.get(at)).text == "ANN"
        assert await server.end() == 0


async def sheet(client: Any) -> dict[str, Any]:
    file = (await client.put("/v1/artifacts?name=a.txt", content=b"ann")).json()
    return {"file": {"artifact": file["id"]}}


async def test_sigterm_ends_streams_and_releases_jobs(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    with serve(dsn, tmp_path, "--grace", "0.2") as server:
        async with await server.client() as client:
            batch = await submitted(client, "hold", [1])
            async with client.stream("GET", batch["links"]["events"]) as stream:
                lines = stream.aiter_lines()
                while await anext(lines) != "event: job_started":
                    pass
                assert await server.end(signal.SIGTERM) == 0
                rest = [line async for line in lines]
        assert not [line for line in rest if line.startswith("event: batch_")]
        assert "Traceback" not in server.stderr
    assert one(sql, "select state, attempt from batchmill.jobs") == ("ready", 0)


async def test_a_port_in_use_is_reported_without_a_traceback(dsn: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with serve(dsn, tmp_path, "--port", port) as server:
            assert await server.end(None) == 2
            assert f"cannot listen on 127.0.0.1:{port}: Address already in use." in one_line(server)


async def test_a_port_that_is_taken_during_the_start_is_reported_without_a_traceback() -> None:
    port = str(free_port())
    words = ("--app", "tests.service.eager:app", "serve", "--port", port)
    with Program(*words, PORT=port, RIVAL="1") as server:
        assert await server.end(None) == 2
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use." in one_line(server)


async def test_clients_can_connect_when_the_log_says_so_and_not_before() -> None:
    port = str(free_port())
    words = ("--app", "tests.service.eager:app", "serve", "--port", port)
    with Program(*words, PORT=port) as server:
        await server.wait_for_stderr("serving: ")
        assert "starting: refused" in server.stderr
        assert "serving: connected" in server.stderr
        await server.wait_for_stderr("answer: HTTP/1.1 200")
        assert await server.end() == 0


def one_line(program: Program) -> str:
    assert "Traceback" not in program.stderr
    return " ".join(program.stderr.split())


async def test_other_machines_are_served_only_if_a_key_exists(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    with serve(dsn, tmp_path, "--host", "0.0.0.0") as server:
        assert await server.end(None) == 2
        assert "Without keys, the service accepts only requests from this machine" in one_line(
            server
        )
    make_key(sql, "ada")
    with serve(dsn, tmp_path, "--host", "0.0.0.0") as server:
        await server.wait_for_stderr("Serving on http://0.0.0.0:")
        assert await server.end() == 0


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        ({"DATABASE_URL": "postgresql://x@127.0.0.1:1/x"}, 4, "does not answer"),
        (
            {"BATCHMILL_TRUSTED_PROXIES": "everyone"},
            2,
            "BATCHMILL_TRUSTED_PROXIES must be networks",
        ),
    ],
)
async def test_errors_at_startup_are_reported_without_a_traceback(
    settings: dict[str, str], code: int, message: str, dsn: str, tmp_path: Path
) -> None:
    environment = {"DATABASE_URL": dsn, "BATCHMILL_ARTIFACTS": str(tmp_path)} | settings
    with Program("serve", "--port", "0", **environment) as server:
        assert await server.end(None) == code, server.stderr
        assert message in one_line(server)


async def test_serve_works_behind_pgbouncer(server: Server, dsn: str, tmp_path: Path) -> None:
    bouncer = start_pgbouncer(server.dsn, pool_size=3)
    if bouncer is None:
        pytest.skip("Debian's pgbouncer is not installed.")
    name = str(conninfo_to_dict(dsn)["dbname"])
    with bouncer, serve(with_database(bouncer.dsn, name), tmp_path) as service:
        with psycopg.connect(dsn, autocommit=True) as sql:
            keys = [make_key(sql, tenant) for tenant in ("ada", "bob")]
        clients = [await service.client(headers={"Authorization": f"Bearer {key}"}) for key in keys]
        ids = await asyncio.gather(*(run_ten_batches(client) for client in clients))
        for client, own in zip(clients, ids, strict=True):
            listed = (await client.get("/v1/batches", params={"size": 50})).json()["batches"]
            assert {batch["id"] for batch in listed} == own
            await client.aclose()
        assert await service.end() == 0


async def run_ten_batches(client: Any) -> set[str]:
    batches = await asyncio.gather(*(submitted(client, "double", [n]) for n in range(10)))
    await asyncio.gather(*(finished(client, batch) for batch in batches))
    return {batch["id"] for batch in batches}


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that the unprivileged user of PostgreSQL can enter."""
    path = Path(tempfile.mkdtemp(prefix="batchmill-", dir="/tmp"))
    path.chmod(0o711)
    yield path / "home"
    shutil.rmtree(path)


async def test_serve_starts_and_stops_an_embedded_database(home: Path) -> None:
    with serve(None, home / "files", BATCHMILL_HOME=str(home)) as server:
        async with await server.client() as client:
            batch = await submitted(client, "double", [1])
            assert (await finished(client, batch))[-1] == "batch_completed"
        assert await server.end() == 0, server.stderr
    assert not list(home.rglob("postmaster.pid"))


async def test_serve_applies_its_limits_to_a_users_application(dsn: str, tmp_path: Path) -> None:
    settings = {"DATABASE_URL": dsn, "BATCHMILL_ARTIFACTS": str(tmp_path)}
    words = ("--app", "tests.service.web:app", "serve", "--port", "0")
    with Program(*words, **settings) as server:
        async with await server.client() as client:
            assert (await client.get("/own")).json() == "own"
            batch = (
                await client.post("/mill/v1/batches", json={"task": "double", "items": [1]})
            ).json()
            assert (await finished(client, batch))[-1] == "batch_completed"
            answer = await client.get("/own", headers={"X": "x" * 70_000})
            assert answer.status_code == 431
        assert await server.end() == 0, server.stderr
    assert "Traceback" not in server.stderr
