"""Pages of lists. A place in a list is the time and the id of a row."""

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends

from batchmill.service import BadRequest

Place = tuple[datetime, UUID]


def parsed_place(before: str | None = None) -> Place | None:
    if before is None:
        return None
    try:
        text = base64.urlsafe_b64decode(before.encode() + b"==").decode()
        created_at, id = text.split(" ")
        return datetime.fromisoformat(created_at), UUID(id)
    except ValueError:
        raise BadRequest("before is invalid. Send the value of next from the last page.") from None


Before = Annotated[Place | None, Depends(parsed_place)]


def place_after(rows: list[dict[str, Any]], count: int) -> str | None:
    """`before` of the next page. `rows` has one more than `count` if there is a next page."""
    return written(rows[count - 1]) if len(rows) > count else None


def written(row: Mapping[str, Any]) -> str:
    text = f"{row['created_at'].isoformat()} {row['id']}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
