"""Bodies that are written while they are produced. Nothing is buffered for a client that does not
read: the producer waits, and holds no database connection meanwhile."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from batchmill.errors import QuotaExceeded
from batchmill.events.sharing import end
from batchmill.service.problems import ServerFull, answer

log = logging.getLogger("batchmill.service.streams")

# Answers a download that is over a limit.
Refused = Callable[[Exception], Response]

PIECE = 65_536
SMALL_PIECE = 16_384


class Stalled(Exception):
    """The client has not read for too long."""


class Streamed(Response, ABC):
    """Ends when the client disconnects. Drops a client that reads nothing for `patience` seconds,
    if the server supports it. The response lasts, and counts, as long as the connection."""

    def __init__(
        self,
        patience: float,
        headers: Mapping[str, str] | None = None,
        status_code: int = 200,
        media_type: str | None = None,
        ends_at: float | None = None,
    ):
        self.status_code = status_code
        self.background = None
        self.media_type = media_type or self.media_type
        self.init_headers(headers)
        self.patience = patience
        self._open_until = asyncio.timeout_at(ends_at)
        self._is_gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.create_task(self._watch(receive))
        try:
            await self._send_all(send)
        except Stalled:
            log.info(
                "Closed a connection for %s: the client did not read the response.",
                scope.get("path"),
            )
            hang_up(receive)
            await watching
        except OSError:
            # Some servers raise this when the client has disconnected.
            pass
        finally:
            await end(watching)

    @abstractmethod
    async def _send_all(self, send: Send) -> None:
        """Sends headers and body. Raises `Stalled` if the client reads nothing for too long."""

    def end(self) -> None:
        # It may be ending already.
        with suppress(RuntimeError):
            self._open_until.reschedule(0)

    @asynccontextmanager
    async def _until_ended(self) -> AsyncIterator[None]:
        """Interrupts what runs in it when the response has to end."""
        try:
            async with self._open_until:
                yield
        except TimeoutError:
            if not self._open_until.expired():
                raise

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._is_gone = True
        self.end()

    def _start(self) -> MutableMapping[str, Any]:
        return {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }


class InPieces(Response):
    """A body that all clients share. A client that does not read it costs the buffer of its
    connection, not a copy of the whole body."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **head})
        for place in range(0, len(self.body), SMALL_PIECE):
            piece = self.body[place : place + SMALL_PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class TooManyDownloads(QuotaExceeded):
    """The caller has reached its limit of simultaneous downloads."""

    code = "too_many_downloads"


@dataclass(frozen=True, slots=True)
class DownloadOptions:
    patience: float = 30.0
    per_process: int = 200
    per_tenant: int = 50


class Downloads:
    """Limits the number of bodies that a process writes at once, except streams of events."""

    def __init__(self, options: DownloadOptions):
        self._options = options
        self._of_tenants: Counter[str | None] = Counter()

    def response(
        self,
        tenant: str | None,
        chunks: AsyncIterator[bytes],
        *,
        headers: Mapping[str, str] | None = None,
        status: int = 200,
        media_type: str | None = None,
    ) -> Response:
        return Download(self, tenant, chunks, self._options.patience, headers, status, media_type)

    def patient(self, response: Response, tenant: str | None, refused: Refused) -> Response:
        """Writes and counts a large, complete answer like a download. The download may be refused,
        so the request must not have changed anything."""
        body = getattr(response, "body", b"")
        if isinstance(response, Streamed) or len(body) <= PIECE:
            return response
        written = Download(self, tenant, once(body), self._options.patience, refused=refused)
        written.status_code, written.raw_headers = response.status_code, response.raw_headers
        return written

    def check_room(self, tenant: str | None) -> None:
        if self._of_tenants.total() >= self._options.per_process:
            raise ServerFull(
                f"This server has reached its limit of {self._options.per_process} downloads. "
                "Try again later."
            )
        if self._of_tenants[tenant] >= self._options.per_tenant:
            raise TooManyDownloads(
                f"This tenant has reached its limit of {self._options.per_tenant} downloads. "
                "End one first."
            )

    @contextmanager
    def entered(self, tenant: str | None) -> Iterator[None]:
        self.check_room(tenant)
        self._of_tenants[tenant] += 1
        try:
            yield
        finally:
            self._of_tenants[tenant] -= 1
            if not self._of_tenants[tenant]:
                del self._of_tenants[tenant]


class Download(Streamed):
    def __init__(
        self,
        downloads: Downloads,
        tenant: str | None,
        chunks: AsyncIterator[bytes],
        patience: float,
        headers: Mapping[str, str] | None = None,
        status: int = 200,
        media_type: str | None = None,
        refused: Refused = answer,
    ):
        super().__init__(patience, headers, status, media_type)
        self._downloads = downloads
        self._refused = refused
        self._tenant = tenant
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._chunks):  # type: ignore[type-var]
            try:
                with self._downloads.entered(self._tenant):
                    await super().__call__(scope, receive, send)
            except (ServerFull, TooManyDownloads) as error:
                # Nothing has been sent yet, because the room is taken first.
                await self._refused(error)(scope, receive, send)

    async def _send_all(self, send: Send) -> None:
        async with self._until_ended():
            await send(self._start())
            async for piece in pieces_of(self._chunks):
                await write(send, piece, self.patience)
            await write(send, b"", self.patience)


async def write(send: Send, body: bytes, patience: float) -> None:
    """Sends a piece of the body; an empty piece ends the body."""
    try:
        async with asyncio.timeout(patience):
            await send({"type": "http.response.body", "body": body, "more_body": bool(body)})
    except TimeoutError:
        raise Stalled from None


async def once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def pieces_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Joins small chunks and splits large ones, because a server holds each piece in memory."""
    gathered: list[bytes] = []
    size = 0
    async for chunk in chunks:
        if size + len(chunk) < PIECE:
            gathered.append(chunk)
            size += len(chunk)
            continue
        gathered.append(chunk[: PIECE - size])
        yield b"".join(gathered)
        place = PIECE - size
        while place + PIECE <= len(chunk):
            yield chunk[place : place + PIECE]
            place += PIECE
        gathered, size = [chunk[place:]], len(chunk) - place
    if size:
        yield b"".join(gathered)


def pieces(frames: Iterable[bytes]) -> Iterator[bytes]:
    """Joins frames into large pieces, because each send is copied for each client."""
    gathered: list[bytes] = []
    size = 0
    for each in frames:
        gathered.append(each)
        size += len(each)
        if size >= PIECE:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def hang_up(receive: Receive) -> None:
    """Aborts the connection. ASGI can only close it, which waits for a client that does not read.
    Uvicorn's `receive` gives access to the transport, unless a middleware wraps it."""
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
