"""Percentages from what ffmpeg writes to -progress."""

from collections.abc import Callable

Report = Callable[[float], None]

# 100 is reported only after all checks.
_MOST = 99.0


class Progress:
    """Reads the lines that ffmpeg writes twice a second, and reports a growing percentage."""

    def __init__(self, expected: float | None, report: Report):
        self._expected = expected
        self._report = report
        self._line = b""
        self._reported = 0.0

    def feed(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            name, _, value = line.partition(b"=")
            if name == b"out_time_us" and value.strip().isdigit():
                self._advance(int(value) / 1_000_000)

    def _advance(self, seconds: float) -> None:
        if not self._expected:
            return
        # More than the expected length is possible, because it may be an estimate.
        percent = min(_MOST, 100 * seconds / self._expected)
        if percent > self._reported:
            self._reported = percent
            self._report(percent)
