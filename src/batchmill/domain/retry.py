"""How often a failed attempt is retried, and after which delay."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from batchmill.errors import InvalidInput

A_DAY = 86_400.0
A_YEAR = 365 * A_DAY


@dataclass(frozen=True, slots=True)
class Retry:
    """Waits `base`, `base·factor`, `base·factor²`… seconds, never over `cap`, spread by `jitter`.
    If an error carries a longer `Retry-After`, waits that long, but never over `max_retry_after`.

    `attempts` includes the first one. `jitter` is a fraction: 0.2 spreads a wait of 60 s over 48 to
    72 s. It applies to the cap too, so that jobs that fail together do not retry together.
    """

    attempts: int = 4
    base: float = 1.0
    factor: float = 2.0
    cap: float = 3600.0
    jitter: float = 0.1
    max_retry_after: float = A_DAY

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int) or self.attempts < 1:
            raise InvalidInput(
                f"attempts must be a whole number of at least 1, not {self.attempts!r}."
            )
        _require_number("base", self.base, 0, A_YEAR)
        _require_number("factor", self.factor, 1, math.inf)
        _require_number("cap", self.cap, 0, A_YEAR)
        _require_number("jitter", self.jitter, 0, 1)
        _require_number("max_retry_after", self.max_retry_after, 0, A_DAY)

    def exhausted(self, attempt: int) -> bool:
        return attempt >= self.attempts

    def delay(self, failed_attempt: int, random: float, retry_after: float | None = None) -> float:
        """Seconds to wait after the n-th failed attempt, counted from 1; `random` is in [0, 1)."""
        delay = self._backoff(failed_attempt) * (1 + self.jitter * (2 * random - 1))
        return max(delay, min(retry_after or 0.0, self.max_retry_after))

    def _backoff(self, failed_attempt: int) -> float:
        if self.base == 0:
            return 0.0
        try:
            return min(self.cap, self.base * float(self.factor) ** (failed_attempt - 1))
        except OverflowError:
            return self.cap

    def to_json(self) -> dict[str, Any]:
        """The policy as stored in the database, which applies it to attempts of lost workers. These
        have no Retry-After, and earlier versions do not know `max_retry_after`."""
        return {name: value for name, value in asdict(self).items() if name != "max_retry_after"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**data)


def _require_number(name: str, value: object, low: float, high: float) -> None:
    if isinstance(value, int | float) and low <= value <= high and math.isfinite(value):
        return
    wanted = f"of at least {low:,}" if high == math.inf else f"from {low:,} to {high:,.0f}"
    raise InvalidInput(f"{name} must be a number {wanted}, not {value!r}.")
