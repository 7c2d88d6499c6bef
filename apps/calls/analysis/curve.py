"""A smooth curve through scores at points of time."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from apps.calls.analysis.models import CurvePoint

MOST_POINTS = 100
# Seconds between two points of short calls.
STEP = 5.0
# Each point is the mean of the scores around it: of a minute, or of a tenth of a long call.
WINDOW, WINDOW_SHARE = 60.0, 0.1


def mean(scores: Sequence[float]) -> float | None:
    return round(math.fsum(scores) / len(scores), 3) if scores else None


def curve_of(scored: Sequence[tuple[float, float]], length: float) -> list[CurvePoint]:
    """`scored` has times and scores. Points without a score near them are left out."""
    scored = sorted(scored)
    times = [time for time, _ in scored]
    # The difference of two sums is the sum of a window, so each point takes the same time.
    sums = [0.0, *accumulate(score for _, score in scored)]
    count = min(MOST_POINTS, max(1, math.ceil(length / STEP)))
    around = max(WINDOW, length * WINDOW_SHARE) / 2
    points = []
    for at in range(count):
        middle = length * (at + 0.5) / count
        first, last = bisect_left(times, middle - around), bisect_right(times, middle + around)
        if first < last:
            score = (sums[last] - sums[first]) / (last - first)
            points.append(CurvePoint(time=round(middle, 3), score=_rounded(score)))
    return points


def _rounded(score: float) -> float:
    """Without -0.0, which JSON would show."""
    return round(score, 3) + 0.0
