"""Pages of lists. A place in a list is the time and the id of a row. In a URL it is the number of
microseconds since 1970, a hyphen and the id."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Depends, Query

from batchmill.service import BadRequest

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

Place = tuple[datetime, UUID]
T = TypeVar("T")


def parsed_place(before: str | None = None) -> Place | None:
    if before is None:
        return None
    try:
        number, _, id = before.partition("-")
        return EPOCH + int(number) * MICROSECOND, UUID(id)
    except (ValueError, OverflowError):
        raise BadRequest("before must be the `next` value of the previous page.") from None


Before = Annotated[Place | None, Depends(parsed_place)]
Count = Annotated[int, Query(ge=1, le=200)]


def split(
    rows: Sequence[T], count: int, place: Callable[[T], Place]
) -> tuple[Sequence[T], str | None]:
    """The rows of a page, and `before` of the next one. `rows` has one more if there is a next."""
    if len(rows) <= count:
        return rows, None
    created_at, id = place(rows[count - 1])
    return rows[:count], f"{(created_at - EPOCH) // MICROSECOND}-{id}"


def place_of(row: Mapping[str, Any]) -> Place:
    return row["created_at"], row["id"]
