"""The estimated duration of a batch."""

from datetime import UTC, datetime, timedelta
from typing import cast

from apps.heatsync.estimate import seconds_for
from batchmill import BatchRecord

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)


class FinishedBatch:
    def __init__(self, total: int, seconds: float):
        self.total, self.started_at = total, BEGAN
        self.finished_at = BEGAN + timedelta(seconds=seconds)


def estimate(jobs: int, *batches: FinishedBatch) -> int:
    return seconds_for(jobs, cast("list[BatchRecord]", batches), at_once=3)


def test_the_first_batch_uses_a_default_duration() -> None:
    assert (estimate(1), estimate(15)) == (1, 5)


def test_the_estimate_counts_rounds_of_concurrent_jobs() -> None:
    assert estimate(15, FinishedBatch(3, 4.0)) == 20


def test_one_slow_batch_does_not_change_the_estimate() -> None:
    assert estimate(3, FinishedBatch(3, 2.0), FinishedBatch(3, 2.0), FinishedBatch(6, 600.0)) == 2
