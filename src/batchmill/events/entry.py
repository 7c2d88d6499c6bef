"""An event as it is cached in a process."""

from dataclasses import dataclass

from batchmill.domain.event import Event


@dataclass(slots=True, eq=False)
class Entry:
    """`encoded` is what streams send. The first stream that needs it encodes the event."""

    event: Event
    encoded: bytes | None = None
