"""Clients without a key: endless requests, idle connections, and too many connections."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from batchmill.config import ServiceSettings
from batchmill.service.protocol import MOST_HEADER_BYTES, MOST_HEADERS
from tests.library.tools import until
from tests.service.conftest import running
from tests.service.processes import Program

MEGABYTE = 1_048_576
START = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"
SIZED = START + b"Content-Length: 100000\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._reader = reader
        self._writer = writer

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> int:
        """Reads the next answer with its body. Returns its status."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        if length := re.search(rb"content-length: (\d+)", head):
            await self._reader.readexactly(int(length[1]))
        return int(head.split()[1])

    async def try_request(self, request: bytes) -> int | None:
        """Returns the status, or None if the server closes the connection without an answer."""
        self._writer.write(request)
        try:
            return await self.answer()
        except (ConnectionError, asyncio.IncompleteReadError):
            return None

    async def read_to_end(self) -> bytes:
        """Reads until the server closes the connection."""
        data = b""
        try:
            while more := await self._reader.read(MEGABYTE):
                data += more
        except ConnectionError:
            pass
        return data

    async def next_megabyte(self) -> bytes:
        """Reads the next megabyte, or less at the end."""
        try:
            return await self._reader.readexactly(MEGABYTE)
        except asyncio.IncompleteReadError as error:
            return error.partial

    def shrink_receive_buffer(self) -> None:
        """Lets the kernel buffer little of the data that this client does not read."""
        at = self._writer.get_extra_info("socket")
        at.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)

    async def first_byte(self) -> None:
        """Waits for an answer to begin. Asyncio buffers a little more, and then stops reading."""
        await self._reader.readexactly(1)

    async def statuses(self) -> list[int]:
        """Returns the statuses of all answers until the server closes the connection."""
        return [
            int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", await self.read_to_end())
        ]

    def close(self) -> None:
        self._writer.close()


Connect = Callable[[], Awaitable[Connection]]


def application(released: asyncio.Event) -> FastAPI:
    app = FastAPI()

    @app.post("/")
    async def count(request: Request) -> int:
        return len(await request.body())

    @app.get("/")
    async def names(request: Request) -> list[str]:
        return [name.decode() for name, _ in request.headers.raw]

    @app.get("/long")
    async def long() -> str:
        return "x" * 12 * MEGABYTE

    @app.get("/small")
    async def small() -> str:
        return "x" * 60_000

    @app.get("/some")
    async def some() -> str:
        return "x" * 400_000

    @app.post("/early")
    async def early() -> StreamingResponse:
        return StreamingResponse(b"x" * 60_000 for _ in range(200))

    @app.get("/hold")
    async def hold() -> None:
        await released.wait()

    @app.post("/refuse")
    async def refuse() -> None:
        pass

    return app


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[Connect]:
    made: list[Connection] = []
    released = asyncio.Event()
    async with running(application(released), ServiceSettings(**settings)) as client:

        async def connect() -> Connection:
            url = client.base_url
            made.append(Connection(*await asyncio.open_connection(url.host, url.port)))
            return made[-1]

        try:
            yield connect
        finally:
            released.set()
            for each in made:
                each.close()


@pytest.mark.parametrize(
    ("start", "more"),
    {
        "a header": (START + b"X: ", b"x"),
        "headers": (START, b"X: y\r\n"),
        "a path": (b"GET /", b"x"),
        "a query": (b"GET /?", b"x"),
        "a method": (b"", b"G"),
        "empty lines": (b"", b"\r\n"),
        "a chunk extension": (CHUNKED + b"1;", b"x"),
        "a trailer": (CHUNKED + b"0\r\nX: ", b"x"),
        "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n"),
        "a chunk size": (CHUNKED, b"0"),
    }.values(),
)
async def test_an_endless_request_is_refused(start: bytes, more: bytes) -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(start + more * (3 * MEGABYTE // len(more)))
        (status,) = await connection.statuses()
        assert status in (400, 431)


async def test_headers_over_the_limit_of_bytes_or_number_are_refused() -> None:
    async with serving() as connect:
        connection = await connect()
        room = MOST_HEADER_BYTES - len(b"GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n")
        connection.write(GET[:-2] + b"X: " + b"x" * room + b"\r\n\r\n")
        assert await connection.answer() == 200
        connection.write(GET[:-2] + b"X: " + b"x" * (room + 1) + b"\r\n\r\n")
        assert await connection.statuses() == [431]
        connection = await connect()
        connection.write(GET[:-2] + b"X: y\r\n" * (MOST_HEADERS - 1) + b"\r\n")
        assert await connection.answer() == 200
        connection.write(GET[:-2] + b"X: y\r\n" * MOST_HEADERS + b"\r\n")
        assert await connection.statuses() == [431]


async def test_the_header_limit_applies_to_each_request_separately() -> None:
    async with serving() as connect:
        connection = await connect()
        large = GET[:-2] + b"X: " + b"x" * 60_000 + b"\r\n\r\n"
        body = START + b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000
        for _ in range(3):
            connection.write(large + body)
            assert [await connection.answer(), await connection.answer()] == [200, 200]


@pytest.mark.parametrize("begin", [b"", b"\r\n", b"GET / HTT", START, START + b"Content-Length: 5"])
async def test_a_client_that_does_not_send_headers_is_disconnected(begin: bytes) -> None:
    async with serving(header_seconds=0.2) as connect:
        connection = await connect()
        connection.write(begin)
        # A client that has sent no request gets no answer.
        assert await connection.statuses() == ([408] if begin.strip() else [])


async def test_a_client_that_sends_headers_byte_by_byte_is_disconnected() -> None:
    async with serving(header_seconds=0.5) as connect:
        connection = await connect()
        answers = asyncio.create_task(connection.statuses())
        for byte in START + b"X: " + b"x" * 1_000:
            connection.write(bytes([byte]))
            await asyncio.wait([answers], timeout=0.01)
            if answers.done():
                break
        assert await answers == [408]


@pytest.mark.parametrize("begin", [SIZED, SIZED + b"x" * 1_000, CHUNKED, CHUNKED + b"5\r\nhel"])
async def test_a_client_that_does_not_send_its_body_is_disconnected(begin: bytes) -> None:
    async with serving(body_seconds=0.2, body_rate=10_000) as connect:
        connection = await connect()
        connection.write(begin)
        assert await connection.statuses() == [408]


@pytest.mark.parametrize("more", [b"1\r\nx\r\n", b"1;" + b"x" * 200 + b"\r\nx\r\n"])
async def test_a_client_that_sends_its_body_byte_by_byte_is_disconnected(more: bytes) -> None:
    async with serving(body_seconds=0.5, body_rate=1_000) as connect:
        connection = await connect()
        connection.write(CHUNKED)
        answers = asyncio.create_task(connection.statuses())
        for _ in range(1_000):
            connection.write(more)
            await asyncio.wait([answers], timeout=0.01)
            if answers.done():
                break
        assert await answers == [408]


async def test_a_slow_body_above_the_minimum_rate_is_accepted() -> None:
    async with serving(body_seconds=0.5, body_rate=1_000) as connect:
        connection = await connect()
        connection.write(SIZED)
        # Four periods of `body_seconds`, at far more than the minimum rate.
        for _ in range(20):
            await connection.send(b"x" * 5_000)
            await asyncio.sleep(0.1)
        assert await connection.answer() == 200


async def test_the_body_timeout_does_not_start_before_100_continue() -> None:
    async with serving(body_seconds=0.1) as connect:
        connection = await connect()
        held = b"GET /hold HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        connection.write(held)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await connection.read_to_end()


async def test_a_connection_serves_another_request_after_an_unread_body() -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(SIZED.replace(b"POST / ", b"POST /refuse ") + b"x")
        assert await connection.answer() == 200
        connection.write(b"x" * 99_999 + GET)
        assert await connection.answer() == 200


async def test_an_idle_connection_that_sends_only_empty_lines_is_closed() -> None:
    async with serving(idle_seconds=0.3, header_seconds=0.3) as connect:
        connection = await connect()
        connection.write(GET)
        assert await connection.answer() == 200
        rest = asyncio.create_task(connection.read_to_end())
        while not rest.done():
            connection.write(b"\r\n")
            await asyncio.wait([rest], timeout=0.02)
        assert await rest == b""


LONG = b"GET /long HTTP/1.1\r\nHost: a\r\n"
UNREAD = {
    "one answer, kept open": LONG + b"\r\n",
    "one answer, then closed": LONG + b"Connection: close\r\n\r\n",
    "pipelined answers": (LONG + b"\r\n").replace(b"/long", b"/some") * 15,
    "small pipelined answers": (LONG + b"\r\n").replace(b"/long", b"/small") * 15,
    "an answer to half a request": b"POST /early HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked"
    b"\r\n\r\n" + b"186a0\r\n" + b"x" * 100_000 + b"\r\n",
}


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
async def test_a_client_that_does_not_read_its_answer_is_disconnected(
    text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        async with serving(patience=1, idle_seconds=600, body_seconds=600) as connect:
            for _ in range(4):
                connection = await connect()
                connection.shrink_receive_buffer()
                connection.write(text)
                await connection.first_byte()
            await until(lambda: caplog.text.count("did not read the response") == 4)


async def test_a_client_that_reads_slowly_gets_the_whole_answer() -> None:
    async with serving(patience=1) as connect:
        connection = await connect()
        connection.write(LONG + b"\r\n")
        size = 0
        # This takes three times as long as the server's patience.
        while size < 12 * MEGABYTE:
            size += len(await connection.next_megabyte())
            await asyncio.sleep(0.25)


AMBIGUOUS = {
    "length, then chunked": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked, then length": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two different lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "the same length twice": b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "lengths in a list": b"Content-Length: 5, 5\r\n\r\nhello",
    "a length with a sign": b"Content-Length: +5\r\n\r\nhello",
    "a negative length": b"Content-Length: -5\r\n\r\nhello",
    "a huge length": b"Content-Length: 99999999999999999999999\r\n\r\nhello",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two coding headers": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a vertical tab": b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Content-Length : 5\r\n\r\nhello",
    "a folded line": b"X: a\r\n b\r\n\r\n",
    "a folded coding": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "lines that end in LF": b"X: a\nY: b\r\n\r\n",
    "a bare CR": b"X: a\rY: b\r\n\r\n",
    "NUL": b"X: a\0b\r\n\r\n",
    "two hosts": b"Host: b\r\n\r\n",
    "chunks that end in LF": b"Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n",
    "a chunk size that begins with 0x": b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    "a negative chunk size": b"Transfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n",
    "a chunk over its size": b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    "a huge chunk size": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\na\r\n",
    "a chunk extension with LF": b"Transfer-Encoding: chunked\r\n\r\n1;a\nb\r\na\r\n0\r\n\r\n",
    "an upgrade with a body": b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello",
}


@pytest.mark.parametrize("rest", AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_ambiguous_requests_are_refused(rest: bytes) -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(START + rest + GET)
        assert await connection.statuses() == [400]


@pytest.mark.parametrize(
    "text",
    [
        b"POST / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET \xff HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        bytes.fromhex("1603010200010001fc0303"),
        b"\0" * 1_000,
    ],
)
async def test_an_invalid_request_is_refused(text: bytes) -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(text)
        assert await connection.statuses() == [400]


async def test_http_1_0_and_upgrade_requests_get_one_answer() -> None:
    async with serving() as connect:
        for text in (
            b"GET / HTTP/1.0\r\n\r\n",
            GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            GET[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
        ):
            connection = await connect()
            connection.write(text + GET)
            assert await connection.statuses() == [200]


async def test_invalid_data_after_a_request_does_not_change_its_answer() -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(GET + b"\0" * 1_000)
        assert await connection.statuses() == [200]
        connection = await connect()
        connection.write(GET * 3 + b"GET / HTTP/1.1\r\n\r\n" + GET)
        assert await connection.statuses() == [200] * 3


async def test_a_trailer_is_not_a_header() -> None:
    async with serving() as connect:
        connection = await connect()
        text = CHUNKED.replace(b"POST", b"GET") + b"1\r\nx\r\n0\r\nAuthorization: x\r\n\r\n"
        connection.write(text + GET[:-2] + b"Connection: close\r\n\r\n")
        answers = await connection.read_to_end()
        assert b'["host","transfer-encoding"]' in answers
        assert b'["host","connection"]' in answers


async def test_pipelined_requests_are_limited() -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(GET * 16)
        assert [await connection.answer() for _ in range(16)] == [200] * 16
        connection.write(GET * 10_000)
        assert len(await connection.statuses()) < 100


async def test_connections_per_address_are_limited_and_idle_ones_are_closed_first() -> None:
    async with serving(connections_per_address=3) as connect:
        idle = [await connect() for _ in range(3)]
        for each in idle:
            each.write(GET)
            assert await each.answer() == 200
        held = [await connect() for _ in range(3)]
        for each in held:
            each.write(GET.replace(b"/", b"/hold", 1))
        for each in idle:
            assert await each.read_to_end() == b""
        fourth = await connect()
        assert await fourth.statuses() == [503]
        held[0].close()
        while await (again := await connect()).try_request(GET) != 200:
            again.close()


async def test_the_limit_per_address_does_not_apply_to_trusted_proxies() -> None:
    async with serving(connections_per_address=3, trusted_proxies=("127.0.0.0/8",)) as connect:
        for _ in range(10):
            each = await connect()
            each.write(GET)
            assert await each.answer() == 200


async def test_the_total_number_of_connections_is_limited() -> None:
    async with serving(connections=20, trusted_proxies=("127.0.0.0/8",)) as connect:
        for _ in range(20):
            (await connect()).write(GET.replace(b"/", b"/hold", 1))
        assert await (await connect()).statuses() == [503]


class With256Descriptors(Program):
    prefix = ("prlimit", "--nofile=256")


class With80Descriptors(Program):
    prefix = ("prlimit", "--nofile=80")


@asynccontextmanager
async def limited(
    kind: type[Program], dsn: str, files: Path
) -> AsyncIterator[tuple[Program, httpx.AsyncClient]]:
    settings = {"DATABASE_URL": dsn, "BATCHMILL_ARTIFACTS": str(files)}
    with kind("serve", "--port", "0", **settings) as server:
        async with await server.client() as client:
            yield server, client


async def test_health_checks_succeed_with_more_clients_than_file_descriptors(
    dsn: str, tmp_path: Path
) -> None:
    async with limited(With256Descriptors, dsn, tmp_path) as (server, client):
        url = client.base_url
        idle = []
        for _ in range(400):
            idle.append(await asyncio.open_connection(url.host, url.port))
        # Each request uses a new connection, as health checks do.
        for path in ("/healthz", "/readyz", "/v1/batches"):
            answer = await client.get(path, headers={"Connection": "close"}, timeout=5)
            assert answer.status_code == 200, answer.text
        descriptors = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
        assert descriptors < 200
        for _, writer in idle:
            writer.close()
        assert "out of system resource" not in server.stderr


async def is_healthy(client: httpx.AsyncClient) -> bool:
    try:
        answer = await client.get("/healthz", headers={"Connection": "close"}, timeout=5)
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


async def test_the_server_recovers_after_it_runs_out_of_file_descriptors(
    dsn: str, tmp_path: Path
) -> None:
    """80 file descriptors are too few for the connection limits to help."""
    async with limited(With80Descriptors, dsn, tmp_path) as (_, client):
        url = client.base_url
        idle = [await asyncio.open_connection(url.host, url.port) for _ in range(100)]

        while not await is_healthy(client):
            pass
        for _, writer in idle:
            writer.close()
