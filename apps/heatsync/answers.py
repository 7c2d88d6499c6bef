"""Responses of the API: `success`, and the error if it is false."""

import math

from fastapi import Request, Response
from fastapi.exception_handlers import http_exception_handler
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from apps.heatsync.settings import MEGABYTE
from batchmill import NotFound
from batchmill.service import FileTooLarge, GuardedRoute, problem_of

MOST_BYTES = 65_536


class Refusal(Exception):
    """A rejected request: a code for programs, and a message for users."""

    def __init__(self, error: str, message: str, *, status: int = 400, wait: float | None = None):
        super().__init__(message)
        body = {"success": False, "error": error, "message": message}
        self.answer = JSONResponse(body, status, retry_headers(wait))


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


class ApiRoute(GuardedRoute):
    """Answers every error in the format of the API. Visitors have no key."""

    anonymous = True
    max_body = MOST_BYTES

    def error_response(self, error: Exception) -> Response:
        return error_response(error, self.path)


def error_response(error: Exception, path: str) -> JSONResponse:
    if isinstance(error, Refusal):
        return error.answer
    if isinstance(error, FileTooLarge):
        message = f"{error.file_name} is larger than {error.limit // MEGABYTE} MB."
        return Refusal("PDF_TOO_LARGE", message, status=413).answer
    problem = problem_of(error)
    if isinstance(error, NotFound) or problem.status == 404:
        what = "Result" if "/result/" in path else "Job" if "/jobs/" in path else "Batch"
        return JSONResponse({"success": False, "error": f"{what} not found"}, 404)
    body = {"success": False, "error": problem.code.upper(), "message": problem.detail}
    return JSONResponse(body, problem.status, problem.headers)


def retry_headers(seconds: float | None) -> dict[str, str]:
    """The `Retry-After` header, if the time is known."""
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}
