"""Requests with size limits, and routes that answer errors as problem details."""

from collections.abc import AsyncIterator, Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from batchmill.domain.payload import LIMIT
from batchmill.service.caller import Caller, caller_of
from batchmill.service.json import parsed
from batchmill.service.problems import BadRequest, TooLarge, answer
from batchmill.service.service import Service, of_request

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
    "host",
    "idempotency-key",
    "if-range",
    "last-event-id",
    "origin",
    "range",
    "sec-fetch-site",
)


class BoundedRequest(Request):
    """Limits the size of a body, and accepts only unambiguous JSON."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            # FastAPI reads the body before it authenticates, so authenticate here first.
            await caller_of(self)
            most = min(of_request(self).settings.max_body, MOST_SINGLE)
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


class ProblemRoute(APIRoute):
    """Keeps the error format the same when the router is part of another application."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_with_problems(request: Request) -> Response:
            try:
                require_sound(request)
                response = await handle(BoundedRequest(request.scope, request.receive))
                response = patient(request, response)
            except Exception as error:
                response = answer(error)
            return guarded(response)

        return handle_with_problems


def patient(request: Request, response: Response) -> Response:
    if request.method not in ("GET", "HEAD"):
        return response
    caller: Caller | None = getattr(request.state, "batchmill_caller", None)
    return of_request(request).downloads.patient(response, caller and caller.tenant)


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
