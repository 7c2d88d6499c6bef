"""Pages of lists: a signed cursor marks where the next page begins."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Query
from pydantic import BeforeValidator

from batchmill.errors import InvalidLink
from batchmill.service.caller import Caller
from batchmill.service.problems import BadRequest


def digits(given: object) -> object:
    """Accepts a number in a URL only as plain digits, so that it has one spelling."""
    if isinstance(given, str) and not (given.isascii() and given.isdecimal()):
        raise ValueError("use digits only")
    return given


Size = Annotated[
    int,
    BeforeValidator(digits),
    Query(ge=1, le=1_000, description="The maximum number of entries."),
]
Cursor = Annotated[str | None, Query(max_length=1_000, description="`next` of the previous page.")]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of one list, for one caller. A place is the sort key of an entry."""

    caller: Caller
    of: str

    async def place(self, cursor: str | None, *kinds: Callable[[str], Any]) -> Any:
        """The sort key before the page, converted by `kinds`; None for the first page."""
        if cursor is None:
            return None
        try:
            text = await self.caller.client.signer.check_text(self._purpose, cursor)
        except InvalidLink:
            raise BadRequest(
                "This is not a valid cursor. Use `next` of the previous page."
            ) from None
        return tuple(kind(part) for kind, part in zip(kinds, json.loads(text), strict=True))

    async def next(
        self, found: Sequence[T], size: int, place: Callable[[T], tuple[Any, ...]]
    ) -> str | None:
        """The cursor after the first `size` entries, if there are more."""
        return await self.cursor(*place(found[size - 1])) if len(found) > size else None

    async def cursor(self, *place: Any) -> str:
        text = json.dumps([str(part) for part in place])
        return await self.caller.client.signer.sign_text(self._purpose, text)

    @property
    def _purpose(self) -> str:
        return f"cursor:{self.caller.tenant}:{self.of}"
