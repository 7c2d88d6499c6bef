"""What was measured: samples of systems, repeated and interleaved, with medians and spreads."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from benchmarks.servers import Servers
from benchmarks.system import Stage, System


@dataclass
class Series:
    """The same measurement of several systems; `unit` says what, `more_is_better` which way."""

    title: str
    unit: str
    more_is_better: bool = True
    samples: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, value: float) -> None:
        self.samples[name].append(value)

    def median(self, name: str) -> float:
        return statistics.median(self.samples[name])

    def ratio(self, name: str, other: str) -> float:
        """How much better the one is; of repeats that stood beside each other in the run."""
        pairs = zip(self.samples[name], self.samples[other], strict=False)
        ratio = statistics.median(a / b for a, b in pairs)
        return ratio if self.more_is_better else 1 / ratio

    @property
    def ranked(self) -> list[str]:
        return sorted(self.samples, key=self.median, reverse=self.more_is_better)


def interleaved(
    systems: Iterable[System],
    repeats: int,
    servers: Servers,
    measure: Callable[[Stage], None],
    **environment: str,
) -> None:
    """Every system once, then every system again: what disturbs the machine hits all alike."""
    chosen = list(systems)
    for _ in range(repeats):
        for system in chosen:
            stage = Stage(system, servers, **environment)
            try:
                measure(stage)
            except (TimeoutError, OSError, ValueError) as error:
                print(f"  {system.name}: {error}", flush=True)
            finally:
                servers.drop(stage.dsn)


def percentile(samples: list[float], percent: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
