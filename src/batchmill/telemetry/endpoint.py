"""Serves metrics over HTTP: one page, and nothing else."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus

from batchmill.errors import ConfigurationError
from batchmill.telemetry.metrics import Metrics

log = logging.getLogger("batchmill.metrics")

MOST_BYTES = 16_384
PATIENCE = 10.0


@asynccontextmanager
async def serving(metrics: Metrics, host: str, port: int) -> AsyncIterator[str]:
    """Serves while the block runs, and yields the address. Port 0 chooses a free port."""
    try:
        server = await asyncio.start_server(partial(_serve, metrics), host, port, limit=MOST_BYTES)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot serve metrics on {host}, port {port}: {error.strerror}. Choose another port."
        ) from error
    address = _address(server)
    log.info("Metrics are at %s", address)
    try:
        yield address
    finally:
        server.close()


def _address(server: asyncio.Server) -> str:
    host, port, *_ = server.sockets[0].getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"


async def _serve(
    metrics: Metrics, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """One request per connection. A client that sends no complete request in time is dropped."""
    try:
        with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            async with asyncio.timeout(PATIENCE):
                request = await reader.readuntil(b"\r\n\r\n")
                writer.write(await _response(metrics, request))
                await writer.drain()
    finally:
        writer.close()


async def _response(metrics: Metrics, request: bytes) -> bytes:
    method, target, *_ = [*request.split(b"\r\n", 1)[0].split(b" "), b"", b""]
    if target.partition(b"?")[0] != b"/metrics":
        return _message(HTTPStatus.NOT_FOUND, b"Metrics are at /metrics.\n")
    if method != b"GET":
        return _message(HTTPStatus.METHOD_NOT_ALLOWED, b"Use GET.\n", "Allow: GET")
    type_of_it = f"Content-Type: {metrics.content_type}"
    return _message(HTTPStatus.OK, await metrics.render(), type_of_it)


def _message(status: HTTPStatus, body: bytes, *headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join([*lines, "\r\n"]).encode() + body
