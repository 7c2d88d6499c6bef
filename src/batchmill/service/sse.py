"""A batch's log as Server-Sent Events: https://html.spec.whatwg.org/#server-sent-events"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, Self
from uuid import UUID

from fastapi import Depends, Header, Query
from pydantic_core import to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from batchmill.client import Client
from batchmill.domain.event import Event
from batchmill.errors import ErasureInProgress, NotFound, QuotaExceeded
from batchmill.events.entry import Entry
from batchmill.events.follower import Follower
from batchmill.events.sharing import end
from batchmill.feed import Feed
from batchmill.mill import Mill
from batchmill.service.problems import BadRequest, ServerFull
from batchmill.service.streaming import Streamed, pieces, write

log = logging.getLogger("batchmill.service.streams")

# Proxies must neither buffer nor cache events.
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
# The delay before an EventSource reconnects, in milliseconds.
BEGIN = b"retry: 2000\n\n"
KEEP_ALIVE = b":\n\n"
FAREWELL_SECONDS = 1.0
DIGITS = 18

# The name and the data of an event in an application's own format. An event may also be shown as
# several, or be left out.
Shown = tuple[str, Any]
Show = Callable[[Event], Awaitable[Shown | list[Shown] | None]]


class Viewing(Protocol):
    """Who reads: a client with its read access, the key that the access depends on, and the time of
    the event loop's clock at which the access ends."""

    @property
    def client(self) -> Client: ...
    @property
    def key(self) -> str | None: ...
    @property
    def ends_at(self) -> float | None: ...


def last_event_id(
    after: Annotated[
        str | None, Query(description="The id of the last event that the client has.")
    ] = None,
    last_event_id: Annotated[
        str | None, Header(description="The same, as an EventSource sends it. It takes precedence.")
    ] = None,
) -> str | None:
    return last_event_id or after


LastEventId = Annotated[str | None, Depends(last_event_id)]


class TooManyStreams(QuotaExceeded):
    """The caller has reached its limit of simultaneous streams."""

    code = "too_many_streams"


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The server drops a client that does not read for `patience` seconds."""

    keep_alive: float = 15.0
    patience: float = 30.0
    per_process: int = 10_000
    per_tenant: int = 5_000


class Streams:
    """The streams of a process. Limits their number, ends all of them when the process stops, and
    ends the streams of a key soon after the key becomes invalid. A stream also ends when the
    session or link that opened it expires."""

    def __init__(self, mill: Mill, stopping: asyncio.Event, options: StreamOptions | None = None):
        self.options = options or StreamOptions()
        self._mill = mill
        self._stopping = stopping
        self._open: set[EventStream] = set()
        self._of_tenants: Counter[str | None] = Counter()

    async def __aenter__(self) -> Self:
        await self._mill.open()
        self._watching = [
            asyncio.create_task(self._end_all(), name="batchmill.streams"),
            asyncio.create_task(self._end_lapsed(), name="batchmill.streams.keys"),
        ]
        return self

    async def __aexit__(self, *exc: object) -> None:
        await end(*self._watching)

    @property
    def clients(self) -> int:
        return len(self._open)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    async def follow(
        self,
        viewer: Viewing,
        source: UUID | Feed,
        after: str | None = None,
        *,
        show: Show | None = None,
        whole: bool = False,
        until: Callable[[], bool] | None = None,
    ) -> Response:
        """Streams the events of a batch or a feed after the id `after` to a caller or viewer.

        Answers 204 if the batch is over and the client has all its events: an EventSource then
        stops reconnecting. A feed has the access of its own tenant: take it from the viewer's
        client. `show` returns the name and the data of an event in another format, a list of
        several, or None to leave the event out. It is called for each client and must give the same
        answer for the same event. Ids, replay and keep-alives are the same in every format.

        With `whole`, `show` first sees all events that the client already has, so that its answers
        may depend on the log so far. The stream ends after the event at which `until` becomes true;
        if it is true before the stream starts, the answer is 204.
        """
        client = viewer.client
        self.check_room(client.tenant)
        if isinstance(source, Feed):
            follower = await source.follow(after)
        else:
            follower = await client.engine.hub.follow(
                source, number_in(after), client.store.batches
            )
        if follower.is_over:
            return Response(status_code=204)
        if whole and show is not None:
            with follower:
                async for entry in follower.passed():
                    await show(entry.event)
        if until is not None and until():
            return Response(status_code=204)
        return EventStream(self, follower, show, until, viewer)

    def check_room(self, tenant: str | None) -> None:
        if self.clients >= self.options.per_process:
            raise ServerFull(
                f"This server has reached its limit of {self.options.per_process} streams. Try "
                "again later."
            )
        if self._of_tenants[tenant] >= self.options.per_tenant:
            raise TooManyStreams(
                f"This tenant has reached its limit of {self.options.per_tenant} streams. "
                "Close one first."
            )

    @contextmanager
    def entered(self, stream: "EventStream", tenant: str | None) -> Iterator[None]:
        self.check_room(tenant)
        self._open.add(stream)
        self._of_tenants[tenant] += 1
        try:
            yield
        finally:
            self._open.remove(stream)
            self._of_tenants[tenant] -= 1
            if not self._of_tenants[tenant]:
                del self._of_tenants[tenant]

    async def _end_all(self) -> None:
        await self._stopping.wait()
        for stream in self._open:
            stream.end()

    async def _end_lapsed(self) -> None:
        while True:
            await asyncio.sleep(self.options.keep_alive)
            try:
                lapsed = await self._lapsed()
            except Exception as error:
                log.warning(
                    "Cannot check whether the keys of open streams are still valid: %s", error
                )
                continue
            for stream in self._open:
                if stream.key in lapsed:
                    stream.end()

    async def _lapsed(self) -> set[str]:
        keys = {stream.key for stream in self._open if stream.key}
        return await self._mill.engine.store.keys.lapsed(keys) if keys else set()


class EventStream(Streamed):
    """Sends all available events together. Buffers nothing for a client that does not read: its
    position in the log stays the same, and it is dropped after a while."""

    media_type = "text/event-stream"

    def __init__(
        self,
        streams: Streams,
        follower: Follower[Any],
        show: Show | None,
        until: Callable[[], bool] | None,
        viewer: Viewing,
    ):
        super().__init__(streams.options.patience, HEADERS, ends_at=viewer.ends_at)
        self._streams = streams
        self._follower = follower
        self._show = show
        self._until = until
        self._tenant = viewer.client.tenant
        self.key = viewer.key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.entered(self, self._tenant), self._follower:
            await super().__call__(scope, receive, send)

    async def _send_all(self, send: Send) -> None:
        async with self._until_ended():
            await send(self._start())
            await self._send_events(send)
        if not self._is_gone:
            await write(send, b"", FAREWELL_SECONDS)

    async def _send_events(self, send: Send) -> None:
        await write(send, BEGIN, self.patience)
        # Accept clients while the process stops: a refused EventSource does not reconnect.
        while not (self._streams.is_stopping or self._is_over) and (frames := await self._next()):
            for piece in pieces(frames):
                await write(send, piece, self.patience)

    @property
    def _is_over(self) -> bool:
        return self._until is not None and self._until()

    async def _next(self) -> list[bytes]:
        """New events, or a keep-alive if there are none; an empty list after the end of the log."""
        try:
            found = await self._come()
            return [KEEP_ALIVE] if found is None else await self._encode(found)
        except (NotFound, ErasureInProgress):
            # The batch was deleted, or the tenant. A client that reconnects gets an error.
            return []

    async def _encode(self, entries: list[Entry]) -> list[bytes]:
        if self._show is None:
            return [encoded(entry) for entry in entries]
        frames = list[bytes]()
        for each in entries:
            frames.append(framed(each.id, await self._show(each.event)))
            if self._is_over:
                break
        return frames

    async def _come(self) -> list[Entry] | None:
        try:
            async with asyncio.timeout(self._streams.options.keep_alive):
                return await self._follower.next()
        except TimeoutError:
            return None


def encoded(entry: Entry) -> bytes:
    """Encodes each event once, for all streams."""
    if entry.encoded is None:
        entry.encoded = framed(entry.id, (entry.event.type, entry.event))
    return entry.encoded


def frame(event: Event) -> bytes:
    return framed(str(event.number), (event.type, event))


def framed(id: str, shown: Shown | list[Shown] | None) -> bytes:
    """An event in the wire format. Without data, a client only remembers the id. If it is shown as
    several, the last one has the id, so a client that loses the connection in between gets all of
    them again."""
    several = shown if isinstance(shown, list) else [shown] if shown else []
    ids = [*[b""] * (len(several) - 1), b"id: %b\n" % id.encode()]
    if not several:
        return ids[-1] + b"\n"
    return b"".join(
        b"%bevent: %b\ndata: %b\n\n" % (own, name.encode(), to_json(data))
        for own, (name, data) in zip(ids, several, strict=True)
    )


def number_in(after: str | None) -> int:
    if not after:
        return 0
    if not (after.isascii() and after.isdecimal() and len(after) <= DIGITS):
        raise BadRequest(
            "This is not a valid event number. Send the number of the last event that you "
            "have, or 0."
        )
    return int(after)
