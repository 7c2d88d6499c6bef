"""Samples of several systems, or of one system under several conditions."""

import statistics
from dataclasses import dataclass, field


@dataclass
class Series:
    """Samples of one measurement for each row. `name` identifies the series in files, `title` and
    `unit` describe it. A series that is not ranked keeps the order in which it was measured."""

    name: str
    title: str
    unit: str
    more_is_better: bool = True
    is_ranked: bool = True
    samples: dict[str, list[float]] = field(default_factory=dict)

    def add(self, row: str, value: float) -> None:
        self.samples.setdefault(row, []).append(value)

    def median(self, row: str) -> float:
        return statistics.median(self.samples[row])

    def quotient(self, row: str, other: str) -> float:
        """The median ratio of the two rows. Samples of the same repeat are compared."""
        pairs = zip(self.samples[row], self.samples[other], strict=False)
        return statistics.median(a / b for a, b in pairs)

    @property
    def rows(self) -> list[str]:
        if not self.is_ranked:
            return list(self.samples)
        return sorted(self.samples, key=self.median, reverse=self.more_is_better)


def percentile(samples: list[float], percent: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
