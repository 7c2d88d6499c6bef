"""What a process itself counts: plain numbers, which a scrape turns into metrics."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from time import monotonic

from batchmill.telemetry.histogram import Histogram

# From milliseconds to an hour.
JOB_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
    *(600.0, 1_800.0, 3_600.0),
)
CALL_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class TaskMeter:
    def __init__(self) -> None:
        self.waits = Histogram(JOB_SECONDS)
        self.runs = Histogram(JOB_SECONDS)
        self.outcomes: Counter[str] = Counter()
        self.lease_expiries = 0
        self.usage: defaultdict[str, float] = defaultdict(float)


class Meter:
    """Not thread-safe: use it only on the event loop of its mill."""

    def __init__(self) -> None:
        self.tasks: defaultdict[str, TaskMeter] = defaultdict(TaskMeter)
        self.calls = Histogram(CALL_SECONDS)
        self.failed_calls = 0
        # Set only in a process that serves streams.
        self.stream_clients: Callable[[], int] | None = None

    def attempt_ended(self, task: str, outcome: str, begun_at: float | None) -> None:
        """`begun_at` is None if the handler was never called."""
        meter = self.tasks[task]
        meter.outcomes[outcome] += 1
        if begun_at is not None:
            meter.runs.add(monotonic() - begun_at)

    def used(self, task: str, amounts: Mapping[str, Decimal]) -> None:
        for name, amount in amounts.items():
            self.tasks[task].usage[name] += float(amount)

    def job_waited(self, task: str, seconds: float) -> None:
        self.tasks[task].waits.add(seconds)

    def lease_expired(self, task: str) -> None:
        self.tasks[task].lease_expiries += 1

    def called(self, seconds: float, *, failed: bool) -> None:
        self.calls.add(seconds)
        self.failed_calls += failed
