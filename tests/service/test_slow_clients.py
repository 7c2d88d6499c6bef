"""Large answers need little server memory, even if clients do not read them."""

import asyncio
import hashlib
import json
import socket
import sys
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.middleware.base import BaseHTTPMiddleware

from batchmill import Mill
from batchmill.config import ServiceSettings
from batchmill.service import service_router
from tests.library.tools import one, until
from tests.service.conftest import Served, running
from tests.service.large import downloaded, memory
from tests.service.processes import serve
from tests.service.tools import problem, submitted

LARGE = 900_000
BATCH = """
    with batch as (
        insert into batchmill.batches (id, tenant, task, state, total, completed, failed, created_at,
            started_at, finished_at, expires_at, expires_on)
        select gen_random_uuid(), 'default', 'keep', 'partial', %(count)s, %(count)s - 1, 1, now, now,
            now, now + interval '1 day', batchmill.day_of(now) + 1
        from batchmill.clock() now
        returning *
    ), jobs as (
        insert into batchmill.finished (id, batch_id, position, task, tenant, state, priority, run_at,
            attempt, snoozes, finished_at, payload, result, error, created_at, expires_on)
        select nextval(pg_get_serial_sequence('batchmill.jobs', 'id')), id, n, task, tenant,
            case n when 0 then 'failed' else 'completed' end::batchmill.job_state, 0, created_at, 1,
            0, created_at, to_json(repeat('p', %(size)s)),
            case when n > 0 then to_json(repeat('r', %(size)s)) end,
            case n when 0 then '{"code": "unlucky", "message": "No."}'::jsonb end, created_at,
            expires_on
        from batch cross join generate_series(0, %(count)s - 1) n
    )
    select id from batch"""
IN_TRANSACTION = """select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and state like 'idle in%%'"""

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Reads the server's memory in /proc.")


def batch_of(sql: psycopg.Connection[Any], count: int, size: int = LARGE) -> str:
    """Inserts a finished batch with large payloads and results. Its first job has failed."""
    row = sql.execute(BATCH.encode(), {"count": count, "size": size}).fetchone()
    assert row is not None
    return f"/v1/batches/{row[0]}"


@contextmanager
def not_reading(url: str, path: str) -> Iterator[socket.socket]:
    """Sends a request, and does not read the answer."""
    at = httpx.URL(url)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect((at.host, at.port))
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: {at.host}:{at.port}\r\n\r\n".encode())
        yield client


async def answered(client: socket.socket) -> None:
    """Waits for the start of the answer, and does not read it."""
    start = await asyncio.to_thread(client.recv, 12, socket.MSG_PEEK)
    assert start == b"HTTP/1.1 200"


@on_linux
async def test_a_large_answer_needs_little_memory(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """The results have 100 megabytes, and the archive has twice as much before compression."""
    path = batch_of(sql, 120)
    with serve(dsn, tmp_path) as server:
        async with await server.client() as client:
            await client.get("/v1/batches")
            before = memory(server.process.pid, "VmRSS")
            for what in ("results", "archive"):
                await downloaded(client, f"{path}/{what}")
                assert memory(server.process.pid, "VmHWM") - before < 60, what


@on_linux
async def test_clients_that_do_not_read_need_little_memory_and_are_disconnected(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    path = batch_of(sql, 60)
    with serve(dsn, tmp_path, BATCHMILL_PATIENCE="2") as server:
        async with await server.client() as client:
            await client.get("/v1/batches")
            before = memory(server.process.pid, "VmRSS")
            with ExitStack() as clients:
                for _ in range(40):
                    clients.enter_context(not_reading(await server.url(), f"{path}/results"))
                dropped = 0
                while dropped < 40:
                    dropped = server.stderr.count("did not read the response")
                    # Idle between two statements is normal, but not while a client does not read.
                    if one(sql, IN_TRANSACTION)[0]:
                        await until(lambda: not one(sql, IN_TRANSACTION)[0])
                    assert (await client.get("/v1/batches")).status_code == 200
            assert memory(server.process.pid, "VmHWM") - before < 100


async def test_a_client_that_does_not_read_a_large_result_is_disconnected(
    served: Served, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    batch = batch_of(sql, 2, 3_000_000)
    (job,) = one(sql, "select max(id) from batchmill.finished")
    with caplog.at_level("INFO"):
        async with served(patience=1) as client:
            answer = await client.get(f"/v1/jobs/{job}/result")
            assert answer.json() == "r" * 3_000_000
            with not_reading(str(client.base_url), f"/v1/jobs/{job}"):
                await until(lambda: "did not read the response" in caplog.text)
            assert (await client.get(batch)).status_code == 200


async def test_concurrent_downloads_are_limited(
    served: Served, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    batch = batch_of(sql, 20)
    async with served(downloads_per_tenant=2) as client:
        with ExitStack() as clients:
            for _ in range(2):
                waiting = clients.enter_context(
                    not_reading(str(client.base_url), f"{batch}/results")
                )
                await answered(waiting)
            for path in ("results", "archive"):
                answer = await client.get(f"{batch}/{path}")
                assert problem(answer) == (429, "too_many_downloads")
                assert answer.headers["Retry-After"] == "30"
        await until_served(client, batch)
    async with served(downloads_per_process=0) as client:
        answer = await client.get(f"{batch}/results")
        assert problem(answer) == (503, "server_full")


@pytest.mark.parametrize("is_ours", [True, False], ids=["batchmill serve", "another server"])
async def test_a_download_counts_as_long_as_its_connection_lasts(
    is_ours: bool, shop: Mill, sql: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """This middleware hides the connection. Only batchmill's own server can then close it."""
    batch = batch_of(sql, 20)
    settings = ServiceSettings(patience=1, downloads_per_tenant=1)
    app = FastAPI()
    app.include_router(service_router(shop, settings=settings))
    app.add_middleware(BaseHTTPMiddleware, dispatch=lambda request, call: call(request))
    other = None if is_ours else uvicorn.Config(app, log_config=None, ws="none")
    with caplog.at_level("INFO"):
        async with running(app, settings, other) as client:
            with not_reading(str(client.base_url), f"{batch}/results") as waiting:
                await answered(waiting)
                await until(lambda: "did not read the response" in caplog.text)
                if is_ours:
                    await until_served(client, batch)
                else:
                    answer = await client.get(f"{batch}/results")
                    assert problem(answer) == (429, "too_many_downloads")
            await until_served(client, batch)


async def until_served(client: httpx.AsyncClient, batch: str) -> None:
    while (await client.get(f"{batch}/results")).status_code != 200:
        pass


async def test_a_submit_is_answered_at_the_limit_of_downloads(
    served: Served,
) -> None:
    labels = {"é" * 490 + str(n): "é" * 500 for n in range(64)}
    async with served(downloads_per_process=0) as client:
        batch = await submitted(client, "hold", [1], labels=labels)
        answer = await client.get(batch["links"]["self"])
        assert problem(answer) == (503, "server_full")


@pytest.mark.parametrize(("count", "size"), [(30, 100_000), (2_500, 10), (3, 300_000)])
async def test_results_and_archives_contain_all_pages(
    count: int, size: int, served: Served, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    batch = batch_of(sql, count, size)
    async with served() as client:
        answer = (await client.get(f"{batch}/results")).json()
        expected = hashlib.sha256(b"r" * size).hexdigest()
        digests = [
            (each["position"], hashlib.sha256(each["result"].encode()).hexdigest())
            for each in answer["results"]
        ]
        assert digests == [(n, expected) for n in range(1, count)]
        assert [(each["position"], each["code"]) for each in answer["failed"]] == [(0, "unlucky")]
        assert answer["cancelled"] == []
        packed = tmp_path / "batch.zip"
        packed.write_bytes((await client.get(f"{batch}/archive")).content)
        manifest = json.loads(zipfile.ZipFile(packed).read("manifest.json"))
        assert [job["position"] for job in manifest["jobs"]] == list(range(count))
