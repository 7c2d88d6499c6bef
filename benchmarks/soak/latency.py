"""The durations of requests, and their failures."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx


@dataclass
class Latencies:
    """`taken` has the durations of each operation in seconds, `failures` counts errors."""

    taken: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def of(self, operation: str, due: float | None = None) -> Iterator[None]:
        """Measures from the time when the request was `due`, or from now."""
        began = time.monotonic() if due is None else due
        try:
            yield
        except httpx.HTTPStatusError as error:
            self.failures[f"{operation}: {error.response.status_code}"] += 1
        except (httpx.HTTPError, TimeoutError, AssertionError) as error:
            self.failures[f"{operation}: {type(error).__name__}"] += 1
        finally:
            self.taken[operation].append(time.monotonic() - began)

    def forget(self) -> None:
        self.taken.clear()

    def all_of(self, operations: set[str]) -> list[float]:
        return [second for name in operations for second in self.taken.get(name, ())]


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
