"""The attacked server. Callers send raw bytes on a socket."""

import asyncio
import json
import select
import socket
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

PATIENCE = 60.0


class Refused(Exception):
    """The server answered with this status, which is not a success."""


@dataclass(frozen=True)
class Target:
    """`source` is the address of the callers, which differs from the address of the normal tenant.
    `key` and `second_key` are keys of two tenants."""

    host: str
    port: int
    source: str
    key: str = ""
    second_key: str = ""

    @property
    def with_second_key(self) -> "Target":
        """The same target with the key of another tenant."""
        return replace(self, key=self.second_key)

    def request(
        self, method: str, path: str, body: bytes = b"", length: int | None = None, **headers: str
    ) -> bytes:
        """The bytes of a request. `length` replaces the true length of the body."""
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            *([f"Authorization: Bearer {self.key}"] if self.key else []),
            *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
            f"Content-Length: {len(body) if length is None else length}",
            "Connection: close",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body

    def json(self, method: str, path: str, body: Any, **headers: str) -> bytes:
        written = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request(method, path, written, None, Content_Type="application/json", **headers)

    async def ask(self, request: bytes) -> tuple[str, bytes]:
        """The status and the body of the answer. Without an answer, the status says why."""
        async with Connection(self) as connection:
            return await connection.ask(request)

    async def answer(self, request: bytes) -> Any:
        """The JSON of the answer, which must be a success."""
        status, body = await self.ask(request)
        if not status.startswith("2"):
            raise Refused(status)
        return json.loads(body)


class Connection:
    """One connection. Its receive buffer is small, so the server notices if nothing is read."""

    def __init__(self, target: Target):
        self._target = target
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        try:
            self._socket.bind((self._target.source, 0))
            await loop.sock_connect(self._socket, (self._target.host, self._target.port))
        except BaseException:
            self._socket.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._socket.close()

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def ask(self, request: bytes) -> tuple[str, bytes]:
        try:
            async with asyncio.timeout(PATIENCE):
                # The server may answer before it has read everything.
                with suppress(ConnectionError):
                    await self.send(request)
                return await self._read()
        except TimeoutError:
            return "no answer", b""
        except ConnectionError:
            return "cut", b""

    async def _read(self) -> tuple[str, bytes]:
        received = bytearray()
        while part := await asyncio.get_running_loop().sock_recv(self._socket, 65_536):
            received += part
        head, _, body = bytes(received).partition(b"\r\n\r\n")
        status = head.split(b" ", 2)[1].decode() if head.startswith(b"HTTP/") else "cut"
        return status, body

    async def until_closed(self, most: float) -> bool:
        """Whether the server closes the connection within that time, while nothing is read."""
        events = select.poll()
        events.register(self._socket, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
        deadline = asyncio.get_running_loop().time() + most
        while asyncio.get_running_loop().time() < deadline:
            if events.poll(0):
                return True
            await asyncio.sleep(0.5)
        return False
