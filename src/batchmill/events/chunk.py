"""A range of an event log, the unit that is cached and shared."""

from batchmill.events.entry import Entry

# The first chunk holds numbers 1 to SIZE, and so on. Chunks have fixed boundaries, so that all
# readers in the same range share a chunk wherever they start.
SIZE = 256


class Chunk:
    """Entries numbered from `first`, without gaps. Entries missing at the start of its range were
    pruned from the log. Entries missing at the end do not exist yet."""

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
        """Returns the entries after a number, or none if the next entry is not in this chunk."""
        begin = number + 1 - self.first
        return self.entries[begin:] if begin >= 0 else []


def place_after(number: int) -> int:
    """Returns the index of the chunk that holds the entry after this number."""
    return number // SIZE
