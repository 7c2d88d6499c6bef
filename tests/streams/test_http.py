"""The log of a batch over HTTP, with several kinds of clients."""

import asyncio
import json
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from batchmill import Batch, Event, Mill
from batchmill.domain.event import STATE_SYNC
from batchmill.service.sse import frame
from tests.library.tools import echo_on, until_event
from tests.streams.clients import Client, Log
from tests.streams.processes import ServerProcess
from tests.streams.work import log_of, working

BEGIN = b"retry: 2000\n\n"


@pytest.fixture
async def service(dsn: str) -> AsyncIterator[ServerProcess]:
    async with ServerProcess(dsn) as service:
        yield service
        assert not service.troubles


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=30) as http:
        yield http


@asynccontextmanager
async def finished_batch(mill: Mill, jobs: int = 5) -> AsyncIterator[Batch]:
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(jobs))
        gate.release(jobs)
        await batch.wait()
    async with mill:
        yield batch


def body_of(events: list[Event]) -> bytes:
    return BEGIN + b"".join(map(frame, events))


# Content


async def test_the_stream_contains_the_log_and_ends_with_it(
    mill: Mill, service: ServerProcess, http: httpx.AsyncClient
) -> None:
    async with finished_batch(mill) as batch:
        log = await log_of(batch)
        answer = await http.get(service.events_of(batch.id))
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "content-length" not in answer.headers
        assert answer.content == body_of(log)


async def test_a_frame_has_number_type_and_the_event_on_one_line(
    mill: Mill, service: ServerProcess, http: httpx.AsyncClient
) -> None:
    async with working(mill) as gate:
        gate.message = "two\nlines\r\n\u2028 and é"
        batch = await mill.submit(gate.task, [1])
        gate.release(1)
        log = await log_of(batch)
        answer = await http.get(service.events_of(batch.id))
    frames = answer.text.split("\n\n")[1:-1]
    assert len(frames) == len(log)
    for text, event in zip(frames, log, strict=True):
        number, type, data = text.split("\n")
        assert (number, type) == (f"id: {event.number}", f"event: {event.type}")
        sent = json.loads(data.removeprefix("data: "))
        about = ("number", "type", "job_id", "position", "data")
        assert all(sent[name] == getattr(event, name) for name in about)
        assert (sent["batch_id"], len(sent)) == (str(batch.id), 7)


async def test_a_stream_can_start_after_any_number(
    mill: Mill, service: ServerProcess, http: httpx.AsyncClient
) -> None:
    async with finished_batch(mill) as batch:
        log, url = await log_of(batch), service.events_of(batch.id)
        for number in range(len(log)):
            by_header = await http.get(url, headers={"Last-Event-ID": str(number)})
            by_query = await http.get(url, params={"after": number})
            assert by_header.content == by_query.content == body_of(log[number:])
        both = await http.get(url, params={"after": 1}, headers={"Last-Event-ID": "7"})
        assert both.content == body_of(log[7:])
        empty = await http.get(url, params={"after": 3}, headers={"Last-Event-ID": ""})
        assert empty.content == body_of(log[3:])


async def test_a_client_that_has_the_whole_log_of_a_finished_batch_gets_204(
    mill: Mill, service: ServerProcess, http: httpx.AsyncClient
) -> None:
    async with finished_batch(mill) as batch:
        last = (await batch.get()).last_event
        answer = await http.get(service.events_of(batch.id), params={"after": last})
        assert (answer.status_code, answer.content) == (204, b"")


async def test_a_number_beyond_the_log_gets_the_state(
    mill: Mill, service: ServerProcess, http: httpx.AsyncClient
) -> None:
    async with finished_batch(mill) as batch:
        last = (await batch.get()).last_event
        answer = await http.get(service.events_of(batch.id), params={"after": last + 1})
    _, text, end = answer.text.split("\n\n")
    number, type, data = text.split("\n")
    assert (number, type, end) == (f"id: {last}", f"event: {STATE_SYNC}", "")
    state = json.loads(data.removeprefix("data: "))["data"]
    assert state["batch"]["state"] == "completed" and len(state["jobs"]) == 5


async def test_a_quiet_stream_sends_keep_alives(mill: Mill, dsn: str) -> None:
    batch = await mill.submit(echo_on(mill), [1], delay=3600)
    async with ServerProcess(dsn, keep_alive=0.05) as service, httpx.AsyncClient() as http:
        async with http.stream("GET", service.events_of(batch.id)) as answer:
            got = b""
            async for piece in answer.aiter_bytes():
                got += piece
                if got.count(b":\n\n") >= 3:
                    break
        assert got.replace(b":\n\n", b"") == BEGIN
        await service.until_clients(0)


# Refused requests


async def test_an_invalid_number_is_refused(
    mill: Mill, service: ServerProcess, http: httpx.AsyncClient
) -> None:
    batch = await mill.submit(echo_on(mill), [1], delay=3600)
    url = service.events_of(batch.id)
    for text in ("x", "-1", "1.5", "1e3", "0x1", "1 2", "9" * 19, "٣", "1\x00"):
        answer = await http.get(url, params={"after": text})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
        if text.isascii() and text.isprintable():
            answer = await http.get(url, headers={"Last-Event-ID": text})
            assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


async def test_unknown_batches_and_those_of_other_tenants_are_not_found(
    mill: Mill, service: ServerProcess, http: httpx.AsyncClient
) -> None:
    hers = await mill.as_tenant("ada").submit(echo_on(mill), [1], delay=3600)
    for batch_id, tenant in ((uuid4(), None), ("nonsense", None), (hers.id, "bob")):
        headers = {"X-Tenant": tenant} if tenant else {}
        answer = await http.get(service.events_of(batch_id), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    own = http.stream("GET", service.events_of(hers.id), headers={"X-Tenant": "ada"})
    async with own as answer:
        assert answer.status_code == 200


async def test_streams_are_limited_per_process_and_per_tenant(mill: Mill, dsn: str) -> None:
    echo = echo_on(mill)
    batches = {name: await mill.as_tenant(name).submit(echo, [1], delay=3600) for name in "ab"}
    async with (
        ServerProcess(dsn, streams_per_process=3, streams_per_tenant=2) as service,
        httpx.AsyncClient() as http,
    ):

        def stream(name: str) -> Any:
            headers = {"X-Tenant": name}
            return http.stream("GET", service.events_of(batches[name].id), headers=headers)

        async def refused(name: str) -> tuple[int, str]:
            async with stream(name) as answer:
                await answer.aread()
                return answer.status_code, answer.json()["code"]

        async with stream("a"):
            async with stream("a"):
                assert await refused("a") == (429, "too_many_streams")
                async with stream("b"):
                    assert await refused("b") == (503, "server_full")
            await service.until_clients(1)
            async with stream("a") as answer:
                assert answer.status_code == 200
        await service.until_clients(0)


# Clients


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed.")
async def test_curl_follows_a_batch_to_its_end(
    mill: Mill, service: ServerProcess, tmp_path: Path
) -> None:
    got = tmp_path / "events"
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(20))
        curl = await asyncio.create_subprocess_exec(
            *("curl", "-sSN", "-o", str(got), service.events_of(batch.id))
        )
        await service.until_clients(1)
        for turn in range(20):
            gate.release(1)
            await until_event(batch, "job_completed", count=turn + 1)
        assert await asyncio.wait_for(curl.wait(), 30) == 0
        assert got.read_bytes() == body_of(await log_of(batch))


async def test_a_client_that_reconnects_after_every_chunk_misses_nothing(
    mill: Mill, service: ServerProcess, http: httpx.AsyncClient
) -> None:
    got = b""
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(30))
        last, status = 0, 200
        while status == 200:
            gate.release(3)
            headers = {"Last-Event-ID": str(last)}
            async with http.stream("GET", service.events_of(batch.id), headers=headers) as answer:
                status = answer.status_code
                async for piece in answer.aiter_raw():
                    if b"id: " in piece:
                        got += piece.removeprefix(BEGIN)
                        last = int(piece.rsplit(b"id: ", 1)[1].split(b"\n")[0])
                        break
        assert status == 204
        assert got == b"".join(map(frame, await log_of(batch)))


async def test_two_server_processes_send_the_same_events(mill: Mill, dsn: str) -> None:
    async with ServerProcess(dsn) as one, ServerProcess(dsn) as other, working(mill) as gate:
        batch = await mill.submit(gate.task, range(40))
        clients = [Client((one, other)[n % 2].port, batch.id) for n in range(20)]
        following = [asyncio.create_task(client.run()) for client in clients]
        for service in (one, other):
            await service.until_clients(10)
        gate.release(40)
        await asyncio.gather(*following)
        log = Log(await log_of(batch))
        for client in clients:
            client.check(log)


async def test_deleting_a_batch_ends_its_streams(
    mill: Mill, service: ServerProcess, http: httpx.AsyncClient
) -> None:
    batch = await mill.submit(echo_on(mill), [1], delay=3600)
    async with http.stream("GET", service.events_of(batch.id)) as answer:
        reading = asyncio.create_task(answer.aread())
        await service.until_clients(1)
        async with mill.database.connection() as conn:
            await conn.execute("delete from batchmill.batches")
        assert await reading == BEGIN
    assert (await http.get(service.events_of(batch.id))).status_code == 404


# Clients that do not read


# More data than the buffers between a server and its client hold, which is 4 MB here.
LONG, MANY = "\N{SNAIL}" * 1_000, 6_000


class StalledClient:
    """Requests a stream and never reads it."""

    def __init__(self, port: int, batch: Batch):
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.connect(("127.0.0.1", port))
        path = f"/v1/batches/{batch.id}/events"
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    def close(self) -> None:
        self._socket.close()


async def test_a_client_that_does_not_read_is_disconnected_and_others_continue(
    mill: Mill, dsn: str
) -> None:
    async with ServerProcess(dsn, patience=0.5) as service, working(mill) as gate:
        gate.message = LONG
        batch = await mill.submit(gate.task, range(MANY))
        stalled = [StalledClient(service.port, batch) for _ in range(3)]
        client = Client(service.port, batch.id)
        following = asyncio.create_task(client.run())
        await service.until_clients(4)
        gate.release(MANY - 1)
        await service.until_clients(1)
        assert not following.done()
        gate.release(1)
        await following
        client.check(Log(await log_of(batch)))
        for each in stalled:
            each.close()
        assert await service.end(signal.SIGTERM) in (0, -signal.SIGTERM)
        assert not service.troubles


async def test_a_server_that_is_terminated_ends_its_streams_and_exits(
    mill: Mill, dsn: str, http: httpx.AsyncClient
) -> None:
    async with ServerProcess(dsn) as service, working(mill) as gate:
        gate.message = LONG
        batch = await mill.submit(gate.task, range(MANY))
        quiet = await mill.submit(echo_on(mill), [1], delay=3600)
        stalled = StalledClient(service.port, batch)
        await service.until_clients(1)
        gate.release(MANY - 1)
        await until_event(batch, "job_completed", count=MANY - 1)
        async with http.stream("GET", service.events_of(quiet.id)) as answer:
            await service.until_clients(2)
            # httpx raises if the body is cut off.
            reading = asyncio.create_task(answer.aread())
            assert await service.end(signal.SIGTERM) in (0, -signal.SIGTERM)
            assert await reading == BEGIN
        stalled.close()
        gate.release(1)
        assert not service.troubles
