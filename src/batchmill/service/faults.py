"""Validation errors of a body in FastAPI's format: the first ones only, without the values."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from batchmill.service.problems import MOST_FAULTS
from batchmill.service.schemas import NewJob

# Characters shown of a name that the client sent.
MOST_SHOWN = 100
EXTRA = "Extra inputs are not permitted"

Model = TypeVar("Model", bound=BaseModel)
Fault = dict[str, Any]


def validated(kind: type[Model], found: Any) -> Model:
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise RequestValidationError(_faults(error)) from None


def faults_of_job(job: Any, number: int) -> list[Fault]:
    """Checks the names first, because pydantic creates an error for each unknown name."""
    if isinstance(job, dict) and (faults := unknown_names(NewJob, job, "jobs", number)):
        return faults
    try:
        NewJob.model_validate(job)
    except ValidationError as error:
        return _faults(error, "jobs", number)
    return []


def unknown_names(kind: type[BaseModel], names: Iterable[str], *where: str | int) -> list[Fault]:
    unknown = (name for name in names if name not in kind.model_fields)
    return [
        {"type": "extra_forbidden", "loc": _place(*where, name), "msg": EXTRA}
        for name in islice(unknown, MOST_FAULTS)
    ]


def _faults(error: ValidationError, *where: str | int) -> list[Fault]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [{**each, "loc": _place(*where, *each["loc"])} for each in found[:MOST_FAULTS]]


def _place(*parts: str | int) -> tuple[str | int, ...]:
    return ("body", *(part[:MOST_SHOWN] if isinstance(part, str) else part for part in parts))
