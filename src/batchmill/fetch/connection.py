"""HTTP/1.1 on a connection: requests and their responses, one after the other."""

import ssl
from collections.abc import Sequence
from contextlib import suppress

import h11
import httpcore
import httpx

from batchmill.fetch.limits import FetchLimits
from batchmill.fetch.url import host_of, port_of
from batchmill.fetch.wire import Meter, Wire

# The bytes that may wait for the end of the headers. `FetchLimits.headers` counts them too.
_HEAD = 100 * 1024
_SWITCHES = 101

Head = h11.Response | h11.InformationalResponse


class Connection:
    """Goes to one of `addresses`, which must have been checked for the host of `url`."""

    def __init__(self, url: httpx.URL, addresses: Sequence[str], limits: FetchLimits):
        self._host, self._port = host_of(url), port_of(url)
        self._wire = Wire(addresses, limits)
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD)
        self._has_ended = False

    async def open(self, tls: ssl.SSLContext | None) -> None:
        await self._wire.open(self._host, self._port, tls)

    async def send(self, method: str, target: bytes, headers: httpx.Headers, body: bytes) -> None:
        events = [
            h11.Request(method=method, target=target, headers=headers.raw),
            *([h11.Data(data=body)] if body else []),
            h11.EndOfMessage(),
        ]
        data = b"".join(self._http.send(event) or b"" for event in events)
        # A server may refuse a request before it has read it; its response is still readable.
        with suppress(httpcore.WriteError):
            await self._wire.write(data)

    async def head(self, meter: Meter) -> Head:
        while True:
            event = await self._event(meter)
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.InformationalResponse) and event.status_code == _SWITCHES:
                return event

    async def receive(self, meter: Meter) -> bytes:
        """The next bytes of the body; empty at its end."""
        while not self._has_ended:
            event = await self._event(meter)
            if isinstance(event, h11.Data):
                return bytes(event.data)
            self._has_ended = True
        return b""

    @property
    def is_done(self) -> bool:
        """Whether the response was received to its end, nothing came after it, and both sides keep
        the connection open. More bytes would be taken for the next response."""
        states = (self._http.our_state, self._http.their_state)
        return states == (h11.DONE, h11.DONE) and not self._http.trailing_data[0]

    async def renew(self) -> bool:
        """Prepares for the next request, if the server is still there and has sent nothing."""
        self._http.start_next_cycle()
        self._has_ended = False
        return await self._wire.is_silent()

    async def close(self) -> None:
        await self._wire.aclose()

    async def _event(self, meter: Meter) -> h11.Event | type[h11.PAUSED]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self._wire.read(meter)
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise h11.RemoteProtocolError("The connection ended before the headers.")
            self._http.receive_data(data)
        return event  # pyright: ignore[reportReturnType]
