"""What holds for every value of a document, also for those that are ignored: they are stored."""

import math
from typing import Any

from apps.resumes.document.errors import InvalidDocument
from apps.resumes.document.names import KNOWN
from apps.resumes.document.text import fault_of

MAX_DEPTH = 20


def check(value: Any, path: str = "$", depth: int = 0) -> None:
    if depth > MAX_DEPTH:
        raise InvalidDocument(path, f"It is nested more than {MAX_DEPTH} levels deep.")
    match value:
        case None | bool() | int():
            pass
        case str():
            check_text(value, path)
        case float():
            check_number(value, path)
        case dict():
            check_object(value, path, depth)
        case list():
            for index, item in enumerate(value):
                check(item, f"{path}[{index}]", depth + 1)
        case _:
            raise InvalidDocument(path, "It is not a JSON value.")


def check_object(value: dict[Any, Any], path: str, depth: int) -> None:
    for name, item in value.items():
        if not isinstance(name, str) or fault_of(name):
            raise InvalidDocument(path, "The name of a field is not a valid text.")
        check(item, child(path, name), depth + 1)


def child(path: str, name: str) -> str:
    """The path of a field. A name that JSON Resume does not define is content."""
    return f"{path}.{name}" if name in KNOWN else f"{path}.*"


def check_text(value: str, path: str) -> None:
    if fault := fault_of(value):
        raise InvalidDocument(path, fault)


def check_number(value: float, path: str) -> None:
    if not math.isfinite(value):
        raise InvalidDocument(path, "It is not a finite number.")
