"""Requests with size limits, and routes that answer every error in one format."""

from collections.abc import AsyncIterator, Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from batchmill.domain.payload import LIMIT
from batchmill.service.addresses import counted_as
from batchmill.service.caller import Caller, caller_of, client_address
from batchmill.service.json import parsed
from batchmill.service.problems import BadRequest, TooLarge, answer
from batchmill.service.service import Service, of_request
from batchmill.service.streaming import Refused

# Fits a schedule with the largest payload, twice as large because characters may be escaped.
# Other bodies are smaller, except batches, which are read in another way.
MOST_SINGLE = 2 * 65_536
# Characters of all options of a batch together.
MOST_OPTIONS = 131_072
# Jobs of a body up to this size stay in memory while the submit waits for a connection.
SMALL = 1_000_000
# Headers that must not be repeated: a proxy may use the first value, and a server the last.
SINGLE = (
    "authorization",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "idempotency-key",
    "if-range",
    "last-event-id",
    "origin",
    "range",
    "sec-fetch-site",
    "x-csrf-token",
)


class BoundedRequest(Request):
    """Limits the size of a body that is read at once, and accepts only unambiguous JSON."""

    def __init__(self, request: Request, most: int, *, is_anonymous: bool):
        super().__init__(request.scope, request.receive)
        self._most = most
        self._is_anonymous = is_anonymous

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            if not self._is_anonymous:
                # FastAPI reads the body before it authenticates, so authenticate here first.
                await caller_of(self)
            most = min(of_request(self).settings.max_body, self._most)
            self._body = b"".join([chunk async for chunk in bounded(self.stream(), most)])
        return self._body

    async def json(self) -> Any:
        return parsed(await self.body())


async def bounded(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise TooLarge(f"The body is larger than the limit of {most} bytes.")
        yield chunk


def most_payload(service: Service) -> int:
    """Twice the largest payload limit, because of escapes and whitespace."""
    limits = (task.payload_limit for task in service.mill.tasks.values())
    return 2 * max(LIMIT, *limits, 0)


class GuardedRoute(APIRoute):
    """A route for the router of an application: `APIRouter(route_class=GuardedRoute)`.

    It rejects ambiguous requests, limits bodies, forbids caching and content sniffing, and answers
    errors as problem details (RFC 9457). For another format, override `error_response`.

    FastAPI reads a body before it resolves the parameters of a route. So this route authenticates
    the caller first, unless it is `anonymous`. `max_body` limits bodies that FastAPI reads, in
    bytes; a form or a `request.stream()` has other limits.
    """

    anonymous = False
    max_body = MOST_SINGLE

    def error_response(self, error: Exception) -> Response:
        return answer(error)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_with_errors(request: Request) -> Response:
            try:
                require_sound(request)
                sent = BoundedRequest(request, self.max_body, is_anonymous=self.anonymous)
                response = patient(request, await handle(sent), self.error_response)
            except Exception as error:
                response = self.error_response(error)
            return guarded(response)

        return handle_with_errors


def patient(request: Request, response: Response, refused: Refused) -> Response:
    """Counts a large answer for its caller, or for the address of an anonymous one."""
    if request.method not in ("GET", "HEAD"):
        return response
    caller: Caller | None = getattr(request.state, "batchmill_caller", None)
    whose = caller.tenant if caller else counted_as(client_address(request))
    return of_request(request).downloads.patient(response, whose, refused)


def require_sound(request: Request) -> None:
    """Rejects repeated headers that must be unique, and text that Postgres cannot store."""
    names = [name.decode("latin-1") for name, _ in request.headers.raw]
    for name in SINGLE:
        if names.count(name) > 1:
            raise BadRequest(f"The header {name} occurs several times. Send it once.")
    if "\0" in request.url.path or "%00" in request.url.query:
        raise BadRequest("The URL contains a NUL character.")


def guarded(response: Response) -> Response:
    """Forbids content sniffing, and caching of answers unless a route allows it."""
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    # On a 304 this header would change how the client may use its cached answer.
    if response.status_code != HTTPStatus.NOT_MODIFIED:
        response.headers.setdefault("Cache-Control", "no-store")
    return response
