"""Pages of lists. A place in a list is the time and the id of a row."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Depends, Query

from batchmill.service import BadRequest

Place = tuple[datetime, UUID]
T = TypeVar("T")


def parsed_place(before: str | None = None) -> Place | None:
    if before is None:
        return None
    try:
        created_at, id = before.split(" ")
        return datetime.fromisoformat(created_at), UUID(id)
    except ValueError:
        raise BadRequest("before: Give the value of next on the previous page.") from None


Before = Annotated[Place | None, Depends(parsed_place)]
Count = Annotated[int, Query(ge=1, le=200)]


def split(
    rows: Sequence[T], count: int, place: Callable[[T], Place]
) -> tuple[Sequence[T], str | None]:
    """The rows of a page, and `before` of the next one. `rows` has one more if there is a next."""
    if len(rows) <= count:
        return rows, None
    created_at, id = place(rows[count - 1])
    return rows[:count], f"{created_at.isoformat()} {id}"


def place_of(row: Mapping[str, Any]) -> Place:
    return row["created_at"], row["id"]
