"""A histogram that is cheap enough for a busy worker."""

from bisect import bisect_right
from collections.abc import Sequence

BLOCK = 1_000


class Histogram:
    """Values are collected, then sorted into buckets in blocks. This costs a fraction of finding
    the bucket for each value."""

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
        """The number of values up to each bound, the last of which is infinite, and their sum."""
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
