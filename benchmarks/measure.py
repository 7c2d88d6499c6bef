"""What was measured: samples of systems, or of one system under several conditions."""

import statistics
from dataclasses import dataclass, field


@dataclass
class Series:
    """The same measurement several times. `name` is for programs, `title` and `unit` for people;
    a series that is not ranked stays in the order in which it was measured."""

    name: str
    title: str
    unit: str
    more_is_better: bool = True
    is_ranked: bool = True
    samples: dict[str, list[float]] = field(default_factory=dict)

    def add(self, who: str, value: float) -> None:
        self.samples.setdefault(who, []).append(value)

    def median(self, who: str) -> float:
        return statistics.median(self.samples[who])

    def quotient(self, who: str, other: str) -> float:
        """The one over the other; of repeats that stood beside each other in the run."""
        pairs = zip(self.samples[who], self.samples[other], strict=False)
        return statistics.median(a / b for a, b in pairs)

    @property
    def rows(self) -> list[str]:
        if not self.is_ranked:
            return list(self.samples)
        return sorted(self.samples, key=self.median, reverse=self.more_is_better)


def percentile(samples: list[float], percent: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
