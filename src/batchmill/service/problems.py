"""Errors over HTTP: problem details (RFC 9457) with a `code` for programs."""

import logging
import math
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from batchmill.errors import (
    ArtifactTooLarge,
    BatchmillError,
    ConfigurationError,
    Conflict,
    DatabaseUnavailable,
    FetchError,
    Forbidden,
    HandlerError,
    InvalidInput,
    InvalidLink,
    InvalidPayload,
    LeaseLost,
    LinkExpired,
    NotAuthenticated,
    NotFound,
    PayloadTooLarge,
    Permanent,
    QuotaExceeded,
    RangeNotSatisfiable,
    RequestInProgress,
    SchemaError,
    StorageError,
    StorageExceeded,
)

log = logging.getLogger("batchmill.service")

MEDIA_TYPE = "application/problem+json"
MOST_FAULTS = 100
# Jobs can end and streams can close at any time.
SOON = 30
# By then another request with the same key has probably ended; a busy database may still be busy.
AT_ONCE = 1
LATER = 5


class BadRequest(InvalidInput):
    """The request cannot be parsed: 400. A request that parses but is not valid is 422."""

    code = "bad_request"


class TooLarge(PayloadTooLarge):
    code = "too_large"


class ServerFull(BatchmillError):
    """This process has reached its capacity."""

    code = "server_full"


# The first class that matches decides.
STATUSES: list[tuple[type[BatchmillError], HTTPStatus]] = [
    (BadRequest, HTTPStatus.BAD_REQUEST),
    (PayloadTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (ArtifactTooLarge, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    (RangeNotSatisfiable, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE),
    (LinkExpired, HTTPStatus.GONE),
    (InvalidLink, HTTPStatus.FORBIDDEN),
    (StorageExceeded, HTTPStatus.INSUFFICIENT_STORAGE),
    (StorageError, HTTPStatus.SERVICE_UNAVAILABLE),
    (FetchError, HTTPStatus.UNPROCESSABLE_ENTITY),
    # What a stage of an application would refuse, its routes can refuse with the same error.
    (Permanent, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InvalidInput, HTTPStatus.UNPROCESSABLE_ENTITY),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Conflict, HTTPStatus.CONFLICT),
    (LeaseLost, HTTPStatus.CONFLICT),
    (NotAuthenticated, HTTPStatus.UNAUTHORIZED),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (QuotaExceeded, HTTPStatus.TOO_MANY_REQUESTS),
    (DatabaseUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (ServerFull, HTTPStatus.SERVICE_UNAVAILABLE),
    (SchemaError, HTTPStatus.SERVICE_UNAVAILABLE),
]
# Their messages describe internals, so callers do not see them.
PRIVATE = {
    DatabaseUnavailable: "The database is not available. Try again later.",
    SchemaError: "The service is being upgraded. Try again later.",
    StorageError: "The file storage is not available. Try again later.",
    ConfigurationError: "The service is not configured for this.",
}


class Problem(BaseModel):
    """An error, as defined by RFC 9457."""

    type: str = "about:blank"
    title: str = Field(description="The name of the HTTP status.")
    status: int
    detail: str = Field(description="A description for people.")
    code: str = Field(description="A code for programs, stable across versions.")
    errors: list[dict[str, str]] | None = Field(
        None, description="What is wrong with the request, each with a `path` and a `reason`."
    )
    used: int | None = Field(None, description="How much of the quota is used.")
    limit: int | None = Field(None, description="The size of the quota.")
    retry_after: float | None = Field(None, description="Seconds to wait before a retry.")

    @property
    def headers(self) -> dict[str, str]:
        """The headers that belong to the status."""
        found: dict[str, str] = {}
        if self.retry_after is not None:
            found["Retry-After"] = str(math.ceil(self.retry_after))
        if self.status == HTTPStatus.UNAUTHORIZED:
            found["WWW-Authenticate"] = "Bearer"
        return found


DOCUMENTED: dict[int | str, dict[str, Any]] = {
    key: {
        "description": description,
        "content": {MEDIA_TYPE: {"schema": Problem.model_json_schema()}},
    }
    for key, description in {
        "4XX": "The request is refused.",
        # Listed here, or FastAPI would describe its own format.
        "422": "The request is not valid.",
        "5XX": "The service cannot handle the request now.",
    }.items()
}


def answer(error: Exception) -> JSONResponse:
    """The response for an exception from a handler."""
    error = _unwrapped(error)
    headers = dict(getattr(error, "headers", None) or {})
    if isinstance(error, RangeNotSatisfiable):
        headers["Content-Range"] = f"bytes */{error.size}"
    return respond(problem_of(error), headers)


def problem_of(error: Exception) -> Problem:
    match _unwrapped(error):
        case BatchmillError() as ours:
            return _of_ours(ours)
        case RequestValidationError() as faults:
            return _of_validation(faults)
        case HTTPException(status_code=code):
            status = HTTPStatus(code)
            return _problem(status, status.name.lower(), f"{status.description or status.phrase}.")
        case ClientDisconnect():
            return _problem(
                HTTPStatus.BAD_REQUEST,
                "cut_off",
                "The connection was closed before the end of the body.",
            )
        case _:
            log.error("A request failed.", exc_info=error)
            return _problem(
                HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "An internal error occurred."
            )


def _unwrapped(error: Exception) -> Exception:
    """Errors while a body is read arrive wrapped in another exception."""
    is_wrapped = isinstance(error, HTTPException) and isinstance(error.__cause__, BatchmillError)
    return error.__cause__ if is_wrapped else error  # type: ignore[return-value]


def respond(problem: Problem, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(
        problem.model_dump(exclude_none=True),
        problem.status,
        (headers or {}) | problem.headers,
        media_type=MEDIA_TYPE,
    )


def _problem(status: HTTPStatus, code: str, detail: str, **more: Any) -> Problem:
    return Problem(title=status.phrase, status=status, detail=detail, code=code, **more)


def _of_ours(error: BatchmillError) -> Problem:
    status = next(
        (status for kind, status in STATUSES if isinstance(error, kind)),
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )
    if (detail := PRIVATE.get(type(error))) is not None:
        log.warning("A request failed: %s", error)
        if isinstance(error, StorageError) and error.is_full:
            status, detail = HTTPStatus.INSUFFICIENT_STORAGE, "The file storage is full."
        return _problem(status, error.code, detail, retry_after=LATER)
    more: dict[str, Any] = {}
    if isinstance(error, InvalidPayload):
        more["errors"] = [{"path": error.path, "reason": error.reason}]
    if isinstance(error, QuotaExceeded):
        more = {"used": error.used, "limit": error.limit, "retry_after": error.retry_after}
        if status is HTTPStatus.TOO_MANY_REQUESTS and error.retry_after is None:
            more["retry_after"] = SOON
    if isinstance(error, RequestInProgress):
        more["retry_after"] = AT_ONCE
    if isinstance(error, DatabaseUnavailable):
        more["retry_after"] = LATER
    code = error.error_code if isinstance(error, HandlerError) else error.code
    return _problem(status, code, str(error), **more)


def _of_validation(error: RequestValidationError) -> Problem:
    if all(each["loc"] == ("path", "id") for each in error.errors()):
        return _problem(HTTPStatus.NOT_FOUND, "not_found", "Nothing with this id exists.")
    faults = [
        {"path": ".".join(str(part) for part in each["loc"]), "reason": each["msg"]}
        for each in error.errors()[:MOST_FAULTS]
    ]
    detail = "; ".join(f"{fault['path']}: {fault['reason']}" for fault in faults[:3])
    return _problem(HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_request", detail, errors=faults)
