"""Visitors of HeatSync that use up its slots."""

import asyncio
import json
import secrets
from functools import cache
from typing import ClassVar

from apps.heatsync.samples import Layout, draw, make_meet
from benchmarks.soak.abuser import Abuser
from benchmarks.soak.abusers.names import unresolvable_url

BOUNDARY = "here"
# The maximum number of sheets in a batch.
MOST = 15


class Visitor(Abuser):
    of_heatsync: ClassVar[bool] = True

    async def hand_in(self, fields: dict[str, str], files: list[bytes]) -> str:
        kind = f"multipart/form-data; boundary={BOUNDARY}"
        request = self.target.request(
            "POST", "/api/batch/extract", form(fields, files), Content_Type=kind
        )
        status, _ = await self.target.ask(request)
        return status


class SlowUrlSender(Visitor):
    """URLs of a server that sends one byte per second."""

    name: ClassVar[str] = "slow-urls"
    callers: ClassVar[int] = 4
    pause: ClassVar[float] = 20.0

    async def prepare(self) -> None:
        self._server = await asyncio.start_server(send_slowly, self.target.source, 0)
        self._port = self._server.sockets[0].getsockname()[1]

    async def abuse(self, caller: int) -> str:
        urls = [
            f"http://{self.target.source}:{self._port}/{secrets.token_hex(8)}.pdf"
            for _ in range(MOST)
        ]
        return await self.hand_in({"swimmer": "Slow, Sam", "urls": json.dumps(urls)}, [])


class HeavyPdfSender(Visitor):
    """Sheets with hundreds of pages."""

    name: ClassVar[str] = "heavy-pdfs"
    callers: ClassVar[int] = 1
    pause: ClassVar[float] = 60.0

    def build(self) -> None:
        heavy()

    async def abuse(self, caller: int) -> str:
        # A new name each time, so that nothing is cached.
        swimmer = f"Heavy, {secrets.token_hex(4)}"
        return await self.hand_in({"swimmer": swimmer}, [heavy()] * MOST)


class CodeGuesser(Visitor):
    name: ClassVar[str] = "share-codes"
    callers: ClassVar[int] = 5
    pause: ClassVar[float] = 0.5

    async def abuse(self, caller: int) -> str:
        path = f"/api/result/{secrets.token_hex(4)}"
        status, _ = await self.target.ask(self.target.request("GET", path))
        return status


class MeetDiscoverer(Visitor):
    """URLs of meets with host names for which no DNS server answers."""

    name: ClassVar[str] = "discover-names"
    callers: ClassVar[int] = 30
    pause: ClassVar[float] = 5.0

    async def abuse(self, caller: int) -> str:
        request = self.target.json("POST", "/api/meets/discover", {"url": unresolvable_url()})
        status, _ = await self.target.ask(request)
        return status


def form(fields: dict[str, str], files: list[bytes]) -> bytes:
    parts = [
        *(
            f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode()
            for name, value in fields.items()
        ),
        *(
            f'Content-Disposition: form-data; name="pdfs"; filename="{number}.pdf"\r\n'
            f"Content-Type: application/pdf\r\n\r\n".encode()
            + file
            for number, file in enumerate(files)
        ),
    ]
    line = f"--{BOUNDARY}".encode()
    return b"".join(line + b"\r\n" + part + b"\r\n" for part in parts) + line + b"--\r\n"


@cache
def heavy() -> bytes:
    return draw(make_meet(1, events=740), Layout(columns=1))


async def send_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 100000\r\n\r\n"
        writer.write(head + b"%PDF-")
        for _ in range(1_000):
            await asyncio.sleep(1)
            writer.write(b"1")
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()
