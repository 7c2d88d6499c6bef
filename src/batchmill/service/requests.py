"""Requests that are read with bounds, and routes that answer errors as problems."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from batchmill.domain.failure import storable
from batchmill.service.caller import caller_of
from batchmill.service.problems import BadRequest, TooLarge, answer
from batchmill.service.service import of_request

SMALL = 100_000
# More than a payload may have, by what a batch has around it.
DEEPEST = 110


class BoundedRequest(Request):
    """Reads no more of a body than it may have, and only JSON that means one thing."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            # FastAPI reads bodies before anything else; nobody else's is read here.
            await caller_of(self)
            most = of_request(self).settings.max_body
            self._body = b"".join([chunk async for chunk in bounded(self.stream(), most)])
        return self._body

    async def json(self) -> Any:
        body = await self.body()
        if len(body) < SMALL:
            return parsed(body)
        return await asyncio.to_thread(parsed, body)


async def bounded(chunks: AsyncIterator[bytes], most: int) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise TooLarge(f"The body has more than the {most} bytes that are taken.")
        yield chunk


def parsed(body: bytes) -> Any:
    try:
        # Decoded here: the parser would guess at an encoding.
        found = json.loads(
            body.decode(),
            object_pairs_hook=_distinct,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
        _require_plain(found)
    except RecursionError:
        raise BadRequest("The JSON is nested too deeply.") from None
    except ValueError as error:
        raise BadRequest(f"The body is no JSON that can be taken: {error}.") from None
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice in one object")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError("a number is too large")
    return found


def _require_plain(value: Any) -> None:
    """No text that Postgres cannot hold, and no deeper than anyone can read it."""
    level = [value]
    for _ in range(DEEPEST):
        for each in level:
            if isinstance(each, str) and storable(each) != each:
                raise ValueError("a text has a NUL character or a lone surrogate")
        level = [child for each in level for child in _children(each)]
        if not level:
            return
    raise RecursionError


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (*value, *value.values())
    return value if isinstance(value, list) else ()


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
