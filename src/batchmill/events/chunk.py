"""A stretch of a log, as it is kept and shared."""

from batchmill.events.entry import Entry

# Numbers 1 to SIZE stand in the first chunk, and so on: whoever reads anywhere in a stretch of the
# log wants the same chunk, wherever it begins.
SIZE = 256


class Chunk:
    """Entries numbered from `first` on, without a gap. What a chunk lacks at its beginning is gone
    from the log; what it lacks at its end has not come yet."""

    __slots__ = ("entries", "first")

    def __init__(self, first: int):
        self.first = first
        self.entries: list[Entry] = []

    @property
    def next_number(self) -> int:
        return self.first + len(self.entries)

    @property
    def place(self) -> int:
        return place_after(self.first - 1)

    @property
    def is_full(self) -> bool:
        return place_after(self.next_number - 1) != self.place

    def after(self, number: int) -> list[Entry]:
        """What follows; nothing if the next one is not here."""
        begin = number + 1 - self.first
        return self.entries[begin:] if begin >= 0 else []


def place_after(number: int) -> int:
    """Which chunk has the entry that comes next."""
    return number // SIZE
