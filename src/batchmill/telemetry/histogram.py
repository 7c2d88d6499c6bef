"""Counts values by their size, as cheaply as a busy worker needs it."""

from bisect import bisect_right
from collections.abc import Sequence

BLOCK = 1_000


class Histogram:
    """Values are kept as they come and sorted into buckets by the block, which costs a fraction of
    finding the bucket of each."""

    def __init__(self, bounds: Sequence[float]):
        self._bounds = bounds
        self._upto = [0] * len(bounds)
        self._count = 0
        self._sum = 0.0
        self._fresh: list[float] = []

    def add(self, value: float) -> None:
        self._fresh.append(value)
        if len(self._fresh) >= BLOCK:
            self._sort_in()

    def read(self) -> tuple[list[tuple[str, int]], float]:
        """How many values are up to each bound, the last of which is infinite; and their sum."""
        self._sort_in()
        buckets = [(str(bound), n) for bound, n in zip(self._bounds, self._upto, strict=True)]
        return [*buckets, ("+Inf", self._count)], self._sum

    def _sort_in(self) -> None:
        values = sorted(self._fresh)
        self._fresh.clear()
        self._count += len(values)
        self._sum += sum(values)
        for place, bound in enumerate(self._bounds):
            self._upto[place] += bisect_right(values, bound)
