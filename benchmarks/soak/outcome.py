"""The measurements of a soak test, and the goals that it missed."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.soak.gauges import Connections, Gauge
from benchmarks.soak.latency import Latencies, quantile
from benchmarks.soak.tenant import Tenant
from benchmarks.soak.visitor import Visitor

MEGABYTE = 1_000_000
MOST_P99 = 0.3
# The longest single request. A longer one means that a server was blocked.
MOST_WAIT = 2.0
MOST_MEMORY = 400 * MEGABYTE
# What may stay open after all clients have left: pools keep some connections.
MORE_FILES = 20
MORE_CONNECTIONS = 10


@dataclass
class Outcome:
    minutes: float
    tenant: Latencies
    visitor: Latencies
    gauges: dict[str, Gauge]
    connections: Connections
    files_before: dict[str, int] = field(default_factory=dict)
    connections_before: int = 0
    answers: dict[str, Counter[str]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    has_recovered: bool = False
    seconds: float = 0.0
    p99_alone: float = 0.0

    @property
    def p99(self) -> float:
        return quantile(self.tenant.all_of(Tenant.PLAIN), 0.99)

    @property
    def longest(self) -> float:
        return quantile(self.tenant.all_of(Tenant.PLAIN), 1)

    @property
    def visitor_p99(self) -> float:
        return quantile(self.visitor.all_of(Visitor.PLAIN), 0.99)

    @property
    def visitor_longest(self) -> float:
        return quantile(self.visitor.all_of(Visitor.PLAIN), 1)

    @property
    def is_back(self) -> bool:
        """Whether connections and file handles are back to their earlier numbers."""
        return self.connections.now <= self.connections_before + MORE_CONNECTIONS and all(
            self.gauges[name].files <= files + MORE_FILES
            for name, files in self.files_before.items()
        )

    def misses(self) -> list[str]:
        """A sentence for each goal that was missed."""
        return [
            *slow("tenant's plain requests", "at p99", self.p99, MOST_P99),
            *slow("tenant's plain requests", "at most", self.longest, MOST_WAIT),
            *slow("visitor's plain requests", "at p99", self.visitor_p99, MOST_P99),
            *slow("visitor's plain requests", "at most", self.visitor_longest, MOST_WAIT),
            *(
                f"{name} used {self.gauges[name].most_memory / MEGABYTE:.0f} MB at most, over "
                f"{MOST_MEMORY / MEGABYTE:.0f} MB."
                for name in self.files_before
                if self.gauges[name].most_memory > MOST_MEMORY
            ),
            *(
                f"The {who}: {count} × {failure}."
                for who, latencies in (("tenant", self.tenant), ("visitor", self.visitor))
                for failure, count in latencies.failures.items()
            ),
            *(f"An invariant is broken: {each}" for each in self.broken),
            *([] if self.has_recovered else ["Connections or file handles did not return."]),
        ]

    def data(self) -> dict[str, Any]:
        return {
            "minutes": self.minutes,
            "goals missed": self.misses(),
            "p99": {"alone": self.p99_alone, "tenant": self.p99, "visitor": self.visitor_p99},
            "max": {"tenant": self.longest, "visitor": self.visitor_longest},
            "tenant": rows_of(self.tenant),
            "visitor": rows_of(self.visitor),
            "failures": {"tenant": self.tenant.failures, "visitor": self.visitor.failures},
            "processes": {
                name: asdict(gauge) | {"processor_share": gauge.processor / max(self.seconds, 1)}
                for name, gauge in self.gauges.items()
            },
            "connections": {"most": self.connections.most, "idle_long": self.connections.idle},
            "abusers": self.answers,
        }


def slow(requests: str, how: str, seconds: float, goal: float) -> list[str]:
    if seconds <= goal:
        return []
    return [f"The {requests} took {seconds * 1e3:.0f} ms {how}, over {goal * 1e3:.0f} ms."]


def rows_of(latencies: Latencies) -> dict[str, dict[str, float]]:
    return {
        operation: {
            "requests": len(taken),
            **{
                f"p{share:g}": round(quantile(taken, share / 100) * 1e3, 1)
                for share in (50, 95, 99)
            },
            "max": round(max(taken) * 1e3, 1),
        }
        for operation, taken in sorted(latencies.taken.items())
        if operation != "right"
    }
