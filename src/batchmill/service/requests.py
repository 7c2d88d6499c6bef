"""Requests that are read with bounds, and routes that answer errors as problems."""

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

# A schedule whose payload is as large as may be, or twice that for those who escape characters.
# Batches are read otherwise, and nothing else is larger.
MOST_SINGLE = 2 * 65_536
# Characters of all options of a batch together.
MOST_OPTIONS = 131_072
# The jobs of a body up to this size are kept in memory while the submit waits for a connection.
SMALL = 1_000_000
# A proxy may believe the first of several, and a server the last.
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
    """Reads no more of a body than it may have, and only JSON that means one thing."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            # FastAPI reads bodies before anything else; nobody else's is read here.
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
            raise TooLarge(f"The body has more than the {most} bytes that are taken.")
        yield chunk


def most_payload(service: Service) -> int:
    """Twice what any payload may have: texts may be escaped, and have spaces between them."""
    limits = (task.payload_limit for task in service.mill.tasks.values())
    return 2 * max(LIMIT, *limits, 0)


class ProblemRoute(APIRoute):
    """So that errors look alike also where the router is part of another application."""

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
    """Each header once that means one thing, and no text that Postgres cannot store."""
    names = [name.decode("latin-1") for name, _ in request.headers.raw]
    for name in SINGLE:
        if names.count(name) > 1:
            raise BadRequest(f"The header {name} comes several times: send it once.")
    if "\0" in request.url.path or "%00" in request.url.query:
        raise BadRequest("The address has a NUL character in it.")


def guarded(response: Response) -> Response:
    """Answers are what they say they are; those about someone's work are kept by nobody."""
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    # A 304 would change what the client may do with the answer that it has.
    if response.status_code != HTTPStatus.NOT_MODIFIED:
        response.headers.setdefault("Cache-Control", "no-store")
    return response
