"""A web server on the loopback interface, for PDFs, pages of meets and the model."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = bytes | int | Callable[[bytes], Awaitable[bytes | int]]


@dataclass
class Web:
    """`answers` by path: a body, a status, or a function that gets the body of the request."""

    answers: Mapping[str, Answer]
    port: int = 0
    requested: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = next(
            (
                int(line.split(":")[1])
                for line in head.lower().splitlines()
                if "content-length" in line
            ),
            0,
        )
        body = await reader.readexactly(length)
        path = head.split()[1]
        self.requested.append(path)
        answer = self.answers.get(path, 404)
        if callable(answer):
            answer = await answer(body)
        status, content = (answer, b"") if isinstance(answer, int) else (200, answer)
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode()
        )
        writer.write(content)
        await writer.drain()
        writer.close()


@asynccontextmanager
async def serving(answers: Mapping[str, Answer], port: int = 0) -> AsyncIterator[Web]:
    web = Web(answers)
    server = await asyncio.start_server(web.handle, "127.0.0.1", port)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        await server.wait_closed()
