"""Spaces the requests to a site."""


class Delay:
    """Keeps `seconds` between the starts of two requests. Times are those of one clock."""

    def __init__(self, seconds: float = 0.0):
        self.seconds = seconds
        self._next = float("-inf")
        self._last = float("-inf")

    def take(self, now: float) -> float:
        """Reserves the next start, and returns the seconds to wait for it."""
        start = max(now, self._next, self._last + self.seconds)
        self._last = start
        return start - now

    def rest(self, now: float, seconds: float) -> None:
        """For a server that asks for a pause."""
        self._next = max(self._next, now + seconds)
