"""Feeds: the events of several batches of a tenant, in one order."""

import re
from typing import NamedTuple
from uuid import UUID

from batchmill.domain.text import checked_text
from batchmill.errors import InvalidInput

POSITION = re.compile(r"(\d{1,18})-(\d{1,18})", re.ASCII)
# The first event for a reader whose position is not known. All events of the feed follow.
RESTARTED = "feed_restarted"
NO_BATCH = UUID(int=0)
# Postgres can index no more.
MOST_BYTES = 2_600


class FeedKey(NamedTuple):
    """Which batches: all of the tenant, or if `label` is not empty, those with this label."""

    tenant: str
    label: str = ""
    value: str = ""

    @classmethod
    def of(cls, tenant: str, label: str | None, value: str | None) -> "FeedKey":
        if label is None and value is None:
            return cls(tenant)
        if label is None or value is None:
            raise InvalidInput("A feed needs the name and the value of a label, or neither.")
        key = cls(tenant, *(checked_text("The label of a feed", text) for text in (label, value)))
        if (size := len("".join(key).encode())) > MOST_BYTES:
            raise InvalidInput(
                f"The tenant, the name and the value of the label have {size} bytes together. "
                f"{MOST_BYTES} are allowed for a feed."
            )
        return key


class FeedPosition(NamedTuple):
    """The id of an event in a feed: the feed's own id, and the number of the event in the feed,
    starting at 1. A feed that was deleted and created again has another id. A feed without batches
    has the id 0."""

    feed: int
    number: int

    def __str__(self) -> str:
        return f"{self.feed}-{self.number}"

    @classmethod
    def read(cls, text: str) -> "FeedPosition":
        if not (found := POSITION.fullmatch(text)):
            raise InvalidInput(f"{text[:40]!r} is not the id of an event in a feed.")
        return cls(int(found[1]), int(found[2]))

    def number_in(self, feed: int) -> int:
        """The number to continue after in the feed with this id."""
        if self == BEFORE_ALL:
            return 0
        return self.number if self.feed == feed else UNKNOWN


# Before the first event of any feed: the position in a feed that has no batches yet.
BEFORE_ALL = FeedPosition(0, 0)
# Beyond the end of every feed.
UNKNOWN = 2**62
