"""Requests that are read with bounds, and routes that answer errors as problems."""

from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from batchmill.domain.payload import LIMIT
from batchmill.service.caller import caller_of
from batchmill.service.json import parsed
from batchmill.service.problems import BadRequest, TooLarge, answer
from batchmill.service.service import of_request
from batchmill.submission import in_slow_thread

SMALL = 32_768
# One payload, as the tasks of most have it, and what is around it. Batches are read otherwise.
MOST_SINGLE = LIMIT + 65_536


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
        body = await self.body()
        if len(body) < SMALL:
            return parsed(body)
        return await in_slow_thread(partial(parsed, body))


async def bounded(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise TooLarge(f"The body has more than the {most} bytes that are taken.")
        yield chunk


class ProblemRoute(APIRoute):
    """So that errors look alike also where the router is part of another application."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_with_problems(request: Request) -> Response:
            try:
                require_storable(request)
                return await handle(BoundedRequest(request.scope, request.receive))
            except Exception as error:
                return answer(error)

        return handle_with_problems


def require_storable(request: Request) -> None:
    """No name or text that Postgres can store has a NUL character in it."""
    if "\0" in request.url.path or "%00" in request.url.query:
        raise BadRequest("The address has a NUL character in it.")
