"""An event as it is cached in a process."""

from dataclasses import dataclass

from batchmill.domain.event import Event


@dataclass(slots=True, eq=False)
class Entry:
    """`number` is the event's place in its log, and `id` what streams send for it. `encoded` is the
    event in their format. The first stream that needs it encodes the event."""

    event: Event
    number: int
    id: str
    encoded: bytes | None = None

    @classmethod
    def of_batch(cls, event: Event) -> "Entry":
        return cls(event, event.number, str(event.number))
