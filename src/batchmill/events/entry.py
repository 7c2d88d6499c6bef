"""An event as a process keeps it."""

from dataclasses import dataclass

from batchmill.domain.event import Event


@dataclass(slots=True, eq=False)
class Entry:
    """`encoded` is what streams send. It is made once, for the first of them."""

    event: Event
    encoded: bytes | None = None
