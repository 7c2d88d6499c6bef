"""HTTP/1.1 from unknown clients, with limits on size and time.

Uvicorn parses requests with httptools, which is fast. But it holds headers of any size, and waits
without a timeout for the rest of a request.
"""

import json
import logging
import math
import socket
from contextlib import suppress
from enum import Enum
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from batchmill.service.connections import Connections
from batchmill.service.problems import MEDIA_TYPE

log = logging.getLogger("batchmill.service")

# Per request: the request line and all headers, or the bytes between two pieces of the body.
MOST_HEADER_BYTES = 65_536
MOST_HEADERS = 200
MOST_PIPELINED = 16
# In the kernel's send buffer, beyond the data in flight to the client.
MOST_UNSENT_BYTES = 131_072
# Read this long from a client that still sends. Without this it gets a reset, and no answer.
LINGER_SECONDS = 5.0
LINGER_BODY_SECONDS = 30.0


class Phase(Enum):
    """What the server waits for."""

    REQUEST = "request"
    HEADERS = "headers"
    BODY = "body"
    # The request is complete; the application answers it, or an earlier pipelined request.
    ANSWER = "answer"
    # The last answer is written.
    CLOSE = "close"


class Refused(Exception):
    def __init__(self, status: HTTPStatus, detail: str):
        super().__init__(detail)
        self.status = status


class BoundedProtocol(HttpToolsProtocol):
    parser: httptools.HttpRequestParser

    def __init__(self, *args: Any, connections: Connections, **more: Any):
        super().__init__(*args, **more)
        self.address: str | None = None
        self._all = connections
        self._settings = connections.settings
        self._phase = Phase.REQUEST
        self._deadline = math.inf
        self._refused: Refused | None = None
        # Discard everything that the client still sends.
        self._is_deaf = False
        # Bytes since the last complete element: the headers, a piece of the body, the request.
        self._unfinished = 0
        self._body_bytes = 0
        self._was_held = False
        # Unsent bytes at the last check, and the time when the client last read some.
        self._unsent = 0
        self._read_at = 0.0

    # Callbacks of the transport

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        _bound_buffers(transport)
        self.address = self._all.counted_address(self.client[0]) if self.client else None
        self._read_at = self.loop.time()
        self._await(Phase.REQUEST, self._settings.header_seconds)
        if not self._all.enter(self):
            self._answer(
                HTTPStatus.SERVICE_UNAVAILABLE, "There are too many connections. Try again later."
            )
            self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline = math.inf
        self._all.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        while data and not self._is_deaf and not self.transport.is_closing():
            # The parser never gets more than it may hold.
            size = MOST_HEADER_BYTES - self._unfinished
            self._parse(data[:size])
            data = data[size:]

    def _parse(self, data: bytes) -> None:
        self._unfinished += len(data)
        try:
            self.parser.feed_data(data)
            if self._unfinished >= MOST_HEADER_BYTES:
                raise _headers_too_large()
        except httptools.HttpParserUpgrade:
            # Answer the request as if it did not ask for an upgrade.
            self._listen_no_more()
        except (httptools.HttpParserError, Refused) as error:
            refused = error if isinstance(error, Refused) else self._refused
            if refused is None:
                refused = Refused(HTTPStatus.BAD_REQUEST, "This is not valid HTTP/1.1.")
            self._refuse(refused.status, str(refused))

    # Callbacks of the parser. Their exceptions reach `_parse` as parser errors.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._phase is Phase.REQUEST:
            self._await(Phase.HEADERS, self._settings.header_seconds)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase is Phase.BODY:
            # A trailer. It must not pass as a header, because the header checks are over.
            return
        super().on_header(name, value)
        if len(self.headers) > MOST_HEADERS:
            self._raise(_headers_too_large())

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MOST_PIPELINED:
            self._raise(
                Refused(
                    HTTPStatus.BAD_REQUEST,
                    "Too many requests are waiting for a response on this connection.",
                )
            )
        self._require_unambiguous()
        super().on_headers_complete()
        self._unfinished = 0
        self._all.work(self)
        self._await_body()

    def on_body(self, body: bytes) -> None:
        self._unfinished = 0
        self._body_bytes += len(body)
        super().on_body(body)
        self._was_held |= self.flow.read_paused

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._unfinished = 0
        if self.cycle.response_complete:
            self._await_request()
        else:
            self._await(Phase.ANSWER, math.inf)

    def _require_unambiguous(self) -> None:
        """Prevents request smuggling: a proxy and this server may read one request as two."""
        version = self.parser.get_http_version()
        hosts = self._values(b"host")
        if len(hosts) > 1 or (not hosts and version == "1.1"):
            self._raise(Refused(HTTPStatus.BAD_REQUEST, "Send one Host header."))
        codings = self._values(b"transfer-encoding")
        if codings and (version != "1.1" or codings != [b"chunked"]):
            self._raise(
                Refused(HTTPStatus.BAD_REQUEST, "Only Transfer-Encoding: chunked is supported.")
            )
        if self.parser.should_upgrade() and (codings or self._values(b"content-length")):
            # The parser stops after the headers of such a request.
            self._raise(
                Refused(
                    HTTPStatus.BAD_REQUEST, "A request with a body must not have an Upgrade header."
                )
            )

    def _values(self, name: bytes) -> list[bytes]:
        return [value.lower() for each, value in self.headers if each == name]

    def _raise(self, refused: Refused) -> None:
        self._refused = refused
        raise refused

    # Callbacks of the application

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # This class limits the idle time itself, whatever the client sends in the meantime.
        self._unset_keepalive_if_required()
        if self.pipeline or not self.cycle.response_complete:
            return
        if self._phase is Phase.ANSWER:
            self._await_request()
        elif self._phase is Phase.BODY:
            self._await(Phase.BODY, LINGER_BODY_SECONDS)

    # Timeouts

    def check(self, now: float) -> None:
        if self._is_unread(now):
            log.info(
                "Closed the connection of %s: the client did not read the response.",
                self.address or "a proxy",
            )
            self.transport.abort()
        elif now >= self._deadline:
            self._end_phase()

    def _is_unread(self, now: float) -> bool:
        """Whether the client has read nothing of an answer for the whole `patience` period."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent < self._unsent:
            self._read_at = now
        self._unsent = unsent
        return now - self._read_at >= self._settings.patience

    def resume_writing(self) -> None:
        super().resume_writing()
        # The client has read, even if the buffer is as full again at the next check.
        self._read_at = self.loop.time()

    def _end_phase(self) -> None:
        match self._phase:
            case Phase.REQUEST:
                self._close()
            case Phase.HEADERS:
                self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The headers did not arrive in time.")
            case Phase.BODY if self.cycle.response_complete:
                self._close()
            case Phase.BODY if self._is_body_late:
                self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The body arrives too slowly.")
            case Phase.BODY:
                self._await_body()
            case Phase.CLOSE if self._unsent:
                self._await(Phase.CLOSE, LINGER_SECONDS)
            case _:
                self.transport.abort()

    def evict(self) -> None:
        """Closes this idle connection to make room for another one."""
        self.transport.abort()

    @property
    def _is_body_late(self) -> bool:
        """Whether the body was too slow in this period. Pauses of the server do not count."""
        has_to = self._settings.body_rate * self._settings.body_seconds
        return self._body_bytes < has_to and not (self._was_held or self._is_held)

    @property
    def _is_held(self) -> bool:
        """The server has paused reading, or has not requested the body yet."""
        return self.flow.read_paused or self.cycle.waiting_for_100_continue

    def _await(self, phase: Phase, seconds: float) -> None:
        self._phase = phase
        self._deadline = self.loop.time() + seconds

    def _await_body(self) -> None:
        self._body_bytes = 0
        self._was_held = self._is_held
        self._await(Phase.BODY, self._settings.body_seconds)

    def _await_request(self) -> None:
        self._await(Phase.REQUEST, self._settings.idle_seconds)
        self._all.wait(self)

    # Closing

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answers and stops reading. Does not answer if answers to earlier requests are pending."""
        if self._phase is Phase.ANSWER:
            self._listen_no_more()
            return
        if self._phase is Phase.BODY and not self._abandon():
            self.transport.abort()
            return
        self._is_deaf = True
        self._answer(status, detail)
        # Reading may be paused, because the application did not read the body.
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._await(Phase.CLOSE, LINGER_SECONDS)

    def _abandon(self) -> bool:
        """Prevents an answer by the application. Returns False if it is too late."""
        if self.cycle.response_started or self.pipeline:
            return False
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        return True

    def _listen_no_more(self) -> None:
        """Closes the connection after all requests up to this point are answered."""
        self._is_deaf = True
        self.cycle.keep_alive = False

    def _close(self) -> None:
        """Closes the connection after all data is sent."""
        self._is_deaf = True
        self._await(Phase.CLOSE, LINGER_SECONDS)
        self.transport.close()

    def _answer(self, status: HTTPStatus, detail: str) -> None:
        code = status.name.lower()
        problem = {"title": status.phrase, "status": status, "detail": detail, "code": code}
        body = json.dumps({"type": "about:blank", **problem}).encode()
        headers = [
            *self.server_state.default_headers,
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[status], lines, body))


def _bound_buffers(transport: Any) -> None:
    """Limits the unsent bytes in the kernel, which would otherwise accept megabytes. A client that
    does not read then costs little, and a slow reader is visible as a reader. One read takes no
    more from the client than uvicorn buffers anyway."""
    transport.max_size = HIGH_WATER_LIMIT
    at = transport.get_extra_info("socket")
    if at is not None and at.family in (socket.AF_INET, socket.AF_INET6):
        with suppress(AttributeError, OSError):
            at.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MOST_UNSENT_BYTES)


def _headers_too_large() -> Refused:
    return Refused(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        f"A request can have at most {MOST_HEADERS} headers with {MOST_HEADER_BYTES} bytes in "
        "total.",
    )
