"""Estimates how long a batch takes, from the durations of recent batches."""

import math
from collections.abc import Iterable
from statistics import median

from batchmill import BatchRecord

FIRST_GUESS = 1.0


def seconds_for(jobs: int, recent: Iterable[BatchRecord], at_once: int) -> int:
    """Counts in rounds, because `at_once` jobs of a batch run at the same time."""
    rounds = [
        (batch.finished_at - batch.started_at).total_seconds() / math.ceil(batch.total / at_once)
        for batch in recent
        if batch.finished_at and batch.started_at
    ]
    each = median(rounds) if rounds else FIRST_GUESS
    return max(1, math.ceil(each * math.ceil(jobs / at_once)))
