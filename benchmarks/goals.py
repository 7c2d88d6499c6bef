"""The performance goals of batchmill, and whether a run reached them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.measure import Series
from benchmarks.system import BATCHMILL, SYSTEMS

Measured = dict[str, Series]
OURS = BATCHMILL.name
RAW = "raw"
PEERS = [system.name for system in SYSTEMS if system.is_peer]


@dataclass(frozen=True)
class Bound:
    """A lower limit if `is_least`, otherwise an upper limit."""

    value: float
    unit: str
    is_least: bool

    def holds(self, measured: float) -> bool:
        return measured >= self.value if self.is_least else measured <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.is_least else '≤'} {self.value:g} {self.unit}"


def at_least(value: float, unit: str = "×") -> Bound:
    return Bound(value, unit, is_least=True)


def at_most(value: float, unit: str = "×") -> Bound:
    return Bound(value, unit, is_least=False)


@dataclass(frozen=True)
class Goal:
    """`measure` computes the figure from the series with the name `of`."""

    text: str
    of: str
    measure: Callable[[Series], float]
    bound: Bound


@dataclass(frozen=True)
class Verdict:
    text: str
    bound: Bound
    measured: float

    @property
    def is_reached(self) -> bool:
        return self.bound.holds(self.measured)


def over(other: str, of: str = OURS) -> Callable[[Series], float]:
    return lambda series: series.quotient(of, other)


def over_best_peer(series: Series) -> float:
    best = next(name for name in series.rows if name in PEERS)
    return series.quotient(OURS, best)


def median(of: str = OURS) -> Callable[[Series], float]:
    return lambda series: series.median(of)


GOALS = [
    Goal(
        "Drain, over graphile-worker with its local queue",
        "drain-one",
        over("graphile-worker-local-queue"),
        at_least(2),
    ),
    Goal("Drain, over pgqueuer", "drain-one", over("pgqueuer"), at_least(4)),
    Goal("Drain, over the raw loop", "drain-one", over(RAW), at_least(0.7)),
    Goal("Many limited batches, over the raw loop", "limited-many", over(RAW), at_least(0.8)),
    Goal("Bulk enqueue, over the best peer", "enqueue-bulk", over_best_peer, at_least(2.5)),
    Goal("Idle pickup p50, over the raw loop", "pickup-idle-p50", over(RAW), at_most(1.5)),
    Goal("Idle pickup p50, over the best peer", "pickup-idle-p50", over_best_peer, at_most(1)),
    Goal("Idle pickup p99, over p50", "pickup-idle-tail", median(), at_most(4)),
    Goal("Overhead of 20 ms handlers", "overhead", median(), at_most(10, "%")),
    *(
        Goal(f"Claim p95 by {what}", "growth", median(f"claim by {what}"), at_most(1.5))
        for what in ("waiting jobs", "finished jobs", "open batches")
    ),
    Goal(
        "1,000 jobs/s with a snapshot held, over before",
        "snapshot-steady",
        over("before", of="during"),
        at_least(0.95),
    ),
    Goal(
        "Claim p95 with a snapshot held, over before",
        "snapshot-claim-p95",
        over("before", of="during"),
        at_most(2),
    ),
    Goal("Full speed with a snapshot held", "snapshot-kept", median(), at_least(70, "%")),
    Goal("Idle worker: transactions", "idle-queries", median(), at_most(60, "a minute")),
    Goal("Idle worker: processor", "idle-processor", median(), at_most(0.5, "% of a core")),
    Goal("From start to ready", "ready", median(), at_most(1, "s")),
    Goal("Jobs run again after the database is back", "recovery", median(), at_most(2, "s")),
    Goal("import batchmill", "import", median("import batchmill"), at_most(0.3, "s")),
    Goal("Memory of submitting", "memory-submit", median(), at_most(50, "MB more")),
    Goal("Memory of a worker", "memory-worker", median(), at_most(50, "MB more")),
]


def judged(measured: Measured) -> Iterator[Verdict]:
    """Verdicts on the goals for which this run has all measurements."""
    for goal in GOALS:
        try:
            figure = goal.measure(measured[goal.of])
        except (LookupError, StopIteration, ValueError):
            continue
        yield Verdict(goal.text, goal.bound, figure)
