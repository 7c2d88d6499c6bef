"""Answers of the API: `{success: true, data}`, or `{success: false, error: {code, message, …}}`."""

from http import HTTPStatus
from typing import Any

from fastapi import Response
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from apps.resumes.document import InvalidDocument
from apps.resumes.options import InvalidOptions, shown_name
from batchmill import InvalidInput
from batchmill.service import GuardedRoute, Problem, problem_of

Answer = dict[str, Any]
# Parts of a request, which are not part of a field's name.
PLACES = ("body", "query", "header", "cookie", "path")


def answer(data: Any = None) -> Answer:
    return {"success": True, "data": data}


class ApiRoute(GuardedRoute):
    """Answers every error in the format of this API."""

    def error_response(self, error: Exception) -> Response:
        return error_response(error)


class OpenRoute(ApiRoute):
    """For requests without a key."""

    anonymous = True


class DocumentRoute(ApiRoute):
    """For requests with a document. Larger than a document may be, so that its reader refuses it
    with a reason."""

    max_body = 2 * 1_048_576


def error_response(error: Exception) -> JSONResponse:
    problem = problem_of(error)
    body = {
        "code": problem.code.upper(),
        "message": problem.detail,
        **quota_facts(problem),
        **(facts_of(error) if problem.status != HTTPStatus.NOT_FOUND else {}),
    }
    return JSONResponse(
        {"success": False, "error": jsonable_encoder(body)},
        status_of(error, problem),
        problem.headers,
    )


def status_of(error: Exception, problem: Problem) -> int:
    """What is not valid is a 400 here."""
    is_invalid = isinstance(error, InvalidInput | RequestValidationError)
    if is_invalid and problem.status == HTTPStatus.UNPROCESSABLE_ENTITY:
        return HTTPStatus.BAD_REQUEST
    return problem.status


def quota_facts(problem: Problem) -> dict[str, Any]:
    facts = {
        "used": problem.used,
        "limit": problem.limit,
        "retryAfter": problem.retry_after,
    }
    return {name: value for name, value in facts.items() if value is not None}


def facts_of(error: Exception) -> dict[str, Any]:
    """More about an error, for programs. Nothing of it quotes a document."""
    match error:
        case InvalidDocument():
            return {"path": error.path, "reason": error.reason}
        case InvalidOptions():
            return {"field": error.field, "reason": error.reason}
        case RequestValidationError():
            fault = error.errors()[0]
            field = field_of(fault["loc"])
            reason = str(fault["msg"])
            return {"message": f"{field}: {reason}", "field": field, "reason": reason}
        case _:
            return getattr(error, "facts", {})


def field_of(location: tuple[int | str, ...]) -> str:
    """The name of a field, such as `documentIds[3]`."""
    parts = location[1:] if location and location[0] in PLACES else location
    names = (f"[{part}]" if isinstance(part, int) else f".{shown_name(part)}" for part in parts)
    return "".join(names).removeprefix(".") or "body"
