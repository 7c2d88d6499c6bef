"""Clients that nobody knows yet: requests without end, connections without requests, and too many."""

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
        """The status of the next answer, whose body is read too."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        if found := re.search(rb"content-length: (\d+)", head):
            await self._reader.readexactly(int(found[1]))
        return int(head.split()[1])

    async def first_answer(self, request: bytes) -> int | None:
        """The status, or None if the connection was refused without one."""
        self._writer.write(request)
        try:
            return await self.answer()
        except (ConnectionError, asyncio.IncompleteReadError):
            return None

    async def end(self) -> bytes:
        """What comes until the server closes the connection."""
        found = b""
        try:
            while some := await self._reader.read(MEGABYTE):
                found += some
        except ConnectionError:
            pass
        return found

    async def some(self) -> bytes:
        """The next megabyte, or what is left."""
        try:
            return await self._reader.readexactly(MEGABYTE)
        except asyncio.IncompleteReadError as error:
            return error.partial

    def take_little(self) -> None:
        """Leaves the kernel little room for what is not read here."""
        at = self._writer.get_extra_info("socket")
        at.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)

    async def first_byte(self) -> None:
        """Waits for an answer to begin. Asyncio takes a little more, and then reads no more."""
        await self._reader.readexactly(1)

    async def statuses(self) -> list[int]:
        """Of all answers until the server closes the connection."""
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", await self.end())]

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
        "the extension of a chunk": (CHUNKED + b"1;", b"x"),
        "a trailer": (CHUNKED + b"0\r\nX: ", b"x"),
        "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n"),
        "the size of a chunk": (CHUNKED, b"0"),
    }.values(),
)
async def test_what_has_no_end_is_refused(start: bytes, more: bytes) -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(start + more * (3 * MEGABYTE // len(more)))
        (status,) = await connection.statuses()
        assert status in (400, 431)


async def test_headers_have_a_size_and_a_number() -> None:
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


async def test_large_headers_do_not_count_what_comes_before_them() -> None:
    async with serving() as connect:
        connection = await connect()
        large = GET[:-2] + b"X: " + b"x" * 60_000 + b"\r\n\r\n"
        body = START + b"Content-Length: 300000\r\n\r\n" + b"x" * 300_000
        for _ in range(3):
            connection.write(large + body)
            assert [await connection.answer(), await connection.answer()] == [200, 200]


@pytest.mark.parametrize("begin", [b"", b"\r\n", b"GET / HTT", START, START + b"Content-Length: 5"])
async def test_headers_that_do_not_come_are_not_waited_for(begin: bytes) -> None:
    async with serving(header_seconds=0.2) as connect:
        connection = await connect()
        connection.write(begin)
        # Nobody who has asked for nothing gets an answer.
        assert await connection.statuses() == ([408] if begin.strip() else [])


async def test_headers_that_come_byte_by_byte_are_not_waited_for() -> None:
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
async def test_a_body_that_does_not_come_is_not_waited_for(begin: bytes) -> None:
    async with serving(body_seconds=0.2, body_rate=10_000) as connect:
        connection = await connect()
        connection.write(begin)
        assert await connection.statuses() == [408]


@pytest.mark.parametrize("more", [b"1\r\nx\r\n", b"1;" + b"x" * 200 + b"\r\nx\r\n"])
async def test_a_body_that_comes_byte_by_byte_is_not_waited_for(more: bytes) -> None:
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


async def test_a_slow_body_that_comes_on_is_taken() -> None:
    async with serving(body_seconds=0.5, body_rate=1_000) as connect:
        connection = await connect()
        connection.write(SIZED)
        # Three periods and more, at several times the rate that there has to be.
        for _ in range(20):
            await connection.send(b"x" * 5_000)
            await asyncio.sleep(0.1)
        assert await connection.answer() == 200


async def test_a_body_that_the_server_has_not_asked_for_is_not_late() -> None:
    async with serving(body_seconds=0.1) as connect:
        connection = await connect()
        held = b"GET /hold HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        connection.write(held)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await connection.end()


async def test_a_body_that_nobody_reads_ends_the_connection() -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(SIZED.replace(b"POST / ", b"POST /refuse ") + b"x")
        assert await connection.answer() == 200
        connection.write(b"x" * 99_999 + GET)
        assert await connection.answer() == 200


async def test_an_idle_connection_is_closed_whatever_dribbles_in() -> None:
    async with serving(idle_seconds=0.3, header_seconds=0.3) as connect:
        connection = await connect()
        connection.write(GET)
        assert await connection.answer() == 200
        rest = asyncio.create_task(connection.end())
        while not rest.done():
            connection.write(b"\r\n")
            await asyncio.wait([rest], timeout=0.02)
        assert await rest == b""


LONG = b"GET /long HTTP/1.1\r\nHost: a\r\n"
UNREAD = {
    "one answer, kept open": LONG + b"\r\n",
    "one answer, then closed": LONG + b"Connection: close\r\n\r\n",
    "answers behind one another": (LONG + b"\r\n").replace(b"/long", b"/some") * 15,
    "small answers behind one another": (LONG + b"\r\n").replace(b"/long", b"/small") * 15,
    "an answer before its body is sent": b"POST /early HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked"
    b"\r\n\r\n" + b"186a0\r\n" + b"x" * 100_000 + b"\r\n",
}


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
async def test_a_client_that_reads_no_answer_is_dropped(
    text: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        async with serving(patience=1, idle_seconds=600, body_seconds=600) as connect:
            for _ in range(4):
                connection = await connect()
                connection.take_little()
                connection.write(text)
                await connection.first_byte()
            await until(lambda: caplog.text.count("did not read: dropped") == 4)


async def test_a_client_that_reads_slowly_is_served_to_the_end() -> None:
    async with serving(patience=1) as connect:
        connection = await connect()
        connection.write(LONG + b"\r\n")
        size = 0
        # Three times as long as a client may read nothing.
        while size < 12 * MEGABYTE:
            size += len(await connection.some())
            await asyncio.sleep(0.25)


AMBIGUOUS = {
    "two kinds of length": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "the other way round": b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "the same length twice": b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "lengths in a list": b"Content-Length: 5, 5\r\n\r\nhello",
    "a length with a sign": b"Content-Length: +5\r\n\r\nhello",
    "a length below nothing": b"Content-Length: -5\r\n\r\nhello",
    "a length beyond all": b"Content-Length: 99999999999999999999999\r\n\r\nhello",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two codings in two": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a vertical tab": b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"Content-Length : 5\r\n\r\nhello",
    "a folded line": b"X: a\r\n b\r\n\r\n",
    "a folded coding": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "lines that end in LF": b"X: a\nY: b\r\n\r\n",
    "a bare CR": b"X: a\rY: b\r\n\r\n",
    "NUL": b"X: a\0b\r\n\r\n",
    "two hosts": b"Host: b\r\n\r\n",
    "chunks that end in LF": b"Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n",
    "a chunk of hexadecimal size": b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    "a chunk below nothing": b"Transfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n",
    "a chunk that is longer": b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    "a chunk beyond all": b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\na\r\n",
    "an extension over two lines": b"Transfer-Encoding: chunked\r\n\r\n1;a\nb\r\na\r\n0\r\n\r\n",
    "an upgrade with a body": b"Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello",
}


@pytest.mark.parametrize("rest", AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_requests_that_can_be_read_in_two_ways_are_refused(rest: bytes) -> None:
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
async def test_what_is_no_request_is_refused(text: bytes) -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(text)
        assert await connection.statuses() == [400]


async def test_an_old_client_and_one_that_would_upgrade_are_served_once() -> None:
    async with serving() as connect:
        for text in (
            b"GET / HTTP/1.0\r\n\r\n",
            GET[:-2] + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            GET[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n",
        ):
            connection = await connect()
            connection.write(text + GET)
            assert await connection.statuses() == [200]


async def test_what_comes_after_a_request_does_not_change_its_answer() -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(GET + b"\0" * 1_000)
        assert await connection.statuses() == [200]
        connection = await connect()
        connection.write(GET * 3 + b"GET / HTTP/1.1\r\n\r\n" + GET)
        assert await connection.statuses() == [200] * 3


async def test_a_trailer_is_no_header() -> None:
    async with serving() as connect:
        connection = await connect()
        text = CHUNKED.replace(b"POST", b"GET") + b"1\r\nx\r\n0\r\nAuthorization: x\r\n\r\n"
        connection.write(text + GET[:-2] + b"Connection: close\r\n\r\n")
        found = await connection.end()
        assert b'["host","transfer-encoding"]' in found
        assert b'["host","connection"]' in found


async def test_requests_that_wait_behind_others_are_bounded() -> None:
    async with serving() as connect:
        connection = await connect()
        connection.write(GET * 16)
        assert [await connection.answer() for _ in range(16)] == [200] * 16
        connection.write(GET * 10_000)
        assert len(await connection.statuses()) < 100


async def test_an_address_has_so_many_connections_and_idle_ones_make_room() -> None:
    async with serving(connections_per_address=3) as connect:
        idle = [await connect() for _ in range(3)]
        for each in idle:
            each.write(GET)
            assert await each.answer() == 200
        held = [await connect() for _ in range(3)]
        for each in held:
            each.write(GET.replace(b"/", b"/hold", 1))
        for each in idle:
            assert await each.end() == b""
        fourth = await connect()
        assert await fourth.statuses() == [503]
        held[0].close()
        while await (again := await connect()).first_answer(GET) != 200:
            again.close()


async def test_a_trusted_proxy_has_as_many_connections_as_it_needs() -> None:
    async with serving(connections_per_address=3, trusted_proxies=("127.0.0.0/8",)) as connect:
        for _ in range(10):
            each = await connect()
            each.write(GET)
            assert await each.answer() == 200


async def test_there_are_so_many_connections_in_all() -> None:
    async with serving(connections=20, trusted_proxies=("127.0.0.0/8",)) as connect:
        for _ in range(20):
            (await connect()).write(GET.replace(b"/", b"/hold", 1))
        assert await (await connect()).statuses() == [503]


class With256Handles(Program):
    before = ("prlimit", "--nofile=256")


class With80Handles(Program):
    before = ("prlimit", "--nofile=80")


@asynccontextmanager
async def limited(
    kind: type[Program], dsn: str, files: Path
) -> AsyncIterator[tuple[Program, httpx.AsyncClient]]:
    settings = {"DATABASE_URL": dsn, "BATCHMILL_ARTIFACTS": str(files)}
    with kind("serve", "--port", "0", **settings) as server:
        async with await server.client() as client:
            yield server, client


async def test_health_is_told_when_more_connect_than_there_are_handles(
    dsn: str, tmp_path: Path
) -> None:
    async with limited(With256Handles, dsn, tmp_path) as (server, client):
        url = client.base_url
        idle = []
        for _ in range(400):
            idle.append(await asyncio.open_connection(url.host, url.port))
        # Each on a connection of its own, as health checks do it.
        for path in ("/healthz", "/readyz", "/v1/batches"):
            answer = await client.get(path, headers={"Connection": "close"}, timeout=5)
            assert answer.status_code == 200, answer.text
        handles = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
        assert handles < 200
        for _, writer in idle:
            writer.close()
        assert "out of system resource" not in server.said


async def is_healthy(client: httpx.AsyncClient) -> bool:
    try:
        answer = await client.get("/healthz", headers={"Connection": "close"}, timeout=5)
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


async def test_handles_that_ran_out_come_back(dsn: str, tmp_path: Path) -> None:
    """Whatever used them up: here they are too few for any limit to help."""
    async with limited(With80Handles, dsn, tmp_path) as (_, client):
        url = client.base_url
        idle = [await asyncio.open_connection(url.host, url.port) for _ in range(100)]

        while not await is_healthy(client):
            pass
        for _, writer in idle:
            writer.close()
