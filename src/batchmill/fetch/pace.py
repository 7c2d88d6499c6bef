"""The minimum speed of a response."""

from batchmill.fetch.limits import FetchLimits


class Pace:
    """From its first byte on, a response must bring `pace` bytes a second on average over every
    `grace` seconds of waiting. A server that sends single bytes is therefore given up soon."""

    def __init__(self, limits: FetchLimits):
        self._grace = limits.grace
        self._needed = limits.pace * limits.grace
        self._waited = 0.0
        self._came = 0
        self._has_begun = False

    @property
    def patience(self) -> float | None:
        """Seconds to wait for the next bytes; None before the first byte."""
        return max(self._grace - self._waited, 0.0) if self._has_begun and self._needed else None

    def count(self, data: bytes, waited: float) -> None:
        self._waited += waited if self._has_begun else 0.0
        self._has_begun = True
        self._came += len(data)
        if self._came >= self._needed:
            self._waited, self._came = 0.0, 0
