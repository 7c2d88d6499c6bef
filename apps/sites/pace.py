"""How fast runs go through their phases."""

from dataclasses import dataclass

from apps.sites.settings import Pace
from batchmill import Rate


@dataclass(frozen=True, slots=True)
class Pacing:
    """`delay` is waited before the first phase. `rate` limits the starts of each phase."""

    delay: float
    rate: Rate | None
    attempts: int
    lease: float


# The original system also looked for new runs once a minute. Here they are found at once.
PACES: dict[Pace, Pacing] = {
    "fast": Pacing(delay=0, rate=None, attempts=4, lease=10),
    "original": Pacing(delay=30, rate=Rate(3, 5), attempts=3, lease=300),
}
