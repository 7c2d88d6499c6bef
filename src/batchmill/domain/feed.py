"""Feeds: the events of several batches of a tenant, in one order."""

import re
from typing import NamedTuple
from uuid import UUID

from batchmill.errors import InvalidInput

POSITION = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)
# The first event for a reader whose position is not known. All events of the feed follow.
RESTARTED = "feed_restarted"
NO_BATCH = UUID(int=0)


class FeedKey(NamedTuple):
    """Which batches: all of the tenant, or if `label` is not empty, those with this label."""

    tenant: str
    label: str = ""
    value: str = ""

    @classmethod
    def of(cls, tenant: str, label: str | None, value: str | None) -> "FeedKey":
        if (label is None) != (value is None) or label == "":
            raise InvalidInput("A feed needs the name and the value of a label, or neither.")
        return cls(tenant, label or "", value or "")


class FeedPosition(NamedTuple):
    """The id of an event in a feed: the feed's own id, and the number of the event in the feed,
    starting at 1. A feed that was deleted and created again has another id."""

    feed: int
    number: int

    def __str__(self) -> str:
        return f"{self.feed}-{self.number}"

    @classmethod
    def read(cls, text: str) -> "FeedPosition":
        if not (found := POSITION.fullmatch(text)):
            raise InvalidInput(f"{text[:40]!r} is not the id of an event in a feed.")
        return cls(int(found[1]), int(found[2]))
