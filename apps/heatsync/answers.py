"""How HeatSync answers: `success`, and when it is false what went wrong."""

import math
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from batchmill import NotFound
from batchmill.service.json import parsed
from batchmill.service.problems import problem_of
from batchmill.service.requests import bounded, guarded, require_sound

MOST_BYTES = 65_536


class Refusal(Exception):
    """What was asked for cannot be done: a code for programs, a sentence for people."""

    def __init__(self, error: str, message: str, *, status: int = 400, wait: float | None = None):
        super().__init__(message)
        body = {"success": False, "error": error, "message": message}
        self.answer = JSONResponse(body, status, wait_of(wait))


class SmallRequest(Request):
    """Takes no large body whole; a form is read as it comes."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            self._body = b"".join([chunk async for chunk in bounded(self.stream(), MOST_BYTES)])
        return self._body

    async def json(self) -> Any:
        return parsed(await self.body())


async def tell_of_no_route(request: Request, error: Exception) -> Response:
    """For paths and methods that are none of the API's; others are answered as ever."""
    assert isinstance(error, HTTPException)
    if not request.url.path.startswith("/api/"):
        return await http_exception_handler(request, error)
    problem = problem_of(error)
    message = f"The API has no {request.method} {request.url.path}; /docs says what it has."
    return JSONResponse(
        {"success": False, "error": problem.code.upper(), "message": message},
        problem.status,
        error.headers,
    )


class ApiRoute(APIRoute):
    """Answers every error in HeatSync's own form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_and_tell(request: Request) -> Response:
            try:
                require_sound(request)
                answer = await handle(SmallRequest(request.scope, request.receive))
            except Refusal as refusal:
                answer = refusal.answer
            except Exception as error:
                answer = told(error, self.path)
            return guarded(answer)

        return handle_and_tell


def told(error: Exception, path: str) -> JSONResponse:
    problem = problem_of(error)
    if isinstance(error, NotFound) or problem.status == 404:
        what = "Result" if "/result/" in path else "Job" if "/jobs/" in path else "Batch"
        return JSONResponse({"success": False, "error": f"{what} not found"}, 404)
    body = {"success": False, "error": problem.code.upper(), "message": problem.detail}
    return JSONResponse(body, problem.status, wait_of(problem.retry_after))


def wait_of(seconds: float | None) -> dict[str, str]:
    """When to come back, if anything is known of it."""
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}
