"""Metrics over HTTP, and in the `worker` command."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from batchmill import ConfigurationError, Mill
from batchmill.telemetry import endpoint
from batchmill.telemetry.endpoint import serving
from tests.cli.conftest import SHOP, Programs
from tests.cli.conftest import start as start
from tests.telemetry.scrape import Scrape

Address = tuple[str, int]


@pytest.fixture
async def address(mill: Mill) -> AsyncIterator[Address]:
    async with serving(mill.metrics, "127.0.0.1", 0) as url:
        yield address_of(url)


def address_of(url: str) -> Address:
    match = re.fullmatch(r"http://(.+):(\d+)/metrics", url)
    assert match
    return match[1], int(match[2])


async def ask(address: Address, request: str) -> tuple[str, str]:
    """The head and the body of the answer."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request.encode())
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return head, body


async def test_metrics_are_served_in_the_prometheus_format(address: Address) -> None:
    head, body = await ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    assert "Content-Type: text/plain; version=0.0.4; charset=utf-8" in head
    assert f"Content-Length: {len(body.encode())}" in head
    assert Scrape(body).value("up") == 1


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET / HTTP/1.1", "404 Not Found"),
        ("GET /metrics/more HTTP/1.1", "404 Not Found"),
        ("POST /metrics HTTP/1.1", "405 Method Not Allowed"),
        ("nonsense", "404 Not Found"),
        ("", "404 Not Found"),
    ],
)
async def test_other_paths_and_methods_are_refused(
    address: Address, request_line: str, status: str
) -> None:
    head, _ = await ask(address, f"{request_line}\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status}\r\n")


async def test_an_endless_request_is_disconnected(address: Address) -> None:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET /metrics HTTP/1.1\r\n" + b"x" * endpoint.MOST_BYTES * 4)
    with suppress(ConnectionResetError):
        assert await reader.read() == b""
    writer.close()


async def test_a_client_that_sends_nothing_is_disconnected(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "PATIENCE", 0.01)
    async with serving(mill.metrics, "127.0.0.1", 0) as url:
        reader, writer = await asyncio.open_connection(*address_of(url))
        assert await reader.read() == b""
        writer.close()


async def test_a_port_in_use_is_a_configuration_error(mill: Mill, address: Address) -> None:
    with pytest.raises(ConfigurationError, match="Choose another port"):
        async with serving(mill.metrics, *address):
            pass


async def test_a_worker_serves_metrics_on_its_metrics_port(start: Programs, dsn: str) -> None:
    worker = start("worker", "--app", SHOP, "--metrics-port", "0", dsn=dsn)
    assert worker.stderr
    url = ""
    while not (match := re.search(r"Metrics are at (\S+)", url)):
        url = await asyncio.to_thread(worker.stderr.readline)
        assert url, "The worker ended."
    host, port = address_of(match[1])
    assert host == "127.0.0.1"
    _, body = await ask((host, port), "GET /metrics HTTP/1.1\r\n\r\n")
    assert Scrape(body).value("up") == 1
    worker.send_signal(signal.SIGTERM)
    await asyncio.to_thread(worker.communicate)
    assert worker.returncode == 0
