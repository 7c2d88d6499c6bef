"""Responses of the API: `success`, and the error if it is false."""

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
    """A rejected request: a code for programs, and a message for users."""

    def __init__(self, error: str, message: str, *, status: int = 400, wait: float | None = None):
        super().__init__(message)
        body = {"success": False, "error": error, "message": message}
        self.answer = JSONResponse(body, status, retry_headers(wait))


class SmallRequest(Request):
    """Limits the size of a body that is read at once. Forms are streamed and have other limits."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            self._body = b"".join([chunk async for chunk in bounded(self.stream(), MOST_BYTES)])
        return self._body

    async def json(self) -> Any:
        return parsed(await self.body())


async def answer_unknown_route(request: Request, error: Exception) -> Response:
    """Answers paths and methods that the API does not have in the format of the API."""
    assert isinstance(error, HTTPException)
    if not request.url.path.startswith("/api/"):
        return await http_exception_handler(request, error)
    problem = problem_of(error)
    message = f"The API has no {request.method} {request.url.path}. See /docs for what it has."
    return JSONResponse(
        {"success": False, "error": problem.code.upper(), "message": message},
        problem.status,
        error.headers,
    )


class ApiRoute(APIRoute):
    """Answers every error in the format of the API."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_with_errors(request: Request) -> Response:
            try:
                require_sound(request)
                answer = await handle(SmallRequest(request.scope, request.receive))
            except Refusal as refusal:
                answer = refusal.answer
            except Exception as error:
                answer = error_response(error, self.path)
            return guarded(answer)

        return handle_with_errors


def error_response(error: Exception, path: str) -> JSONResponse:
    problem = problem_of(error)
    if isinstance(error, NotFound) or problem.status == 404:
        what = "Result" if "/result/" in path else "Job" if "/jobs/" in path else "Batch"
        return JSONResponse({"success": False, "error": f"{what} not found"}, 404)
    body = {"success": False, "error": problem.code.upper(), "message": problem.detail}
    return JSONResponse(body, problem.status, retry_headers(problem.retry_after))


def retry_headers(seconds: float | None) -> dict[str, str]:
    """The `Retry-After` header, if the time is known."""
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}
